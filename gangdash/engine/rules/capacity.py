"""May the queue take this step? Limits and quotas of the queue and everything above it.

First the limit on the whole way up, then, for gangs that are not preemptible, the quota against what is
held without being preemptible; per queue cpu, memory, GPUs; the first violation is the answer. Being
exactly at a limit is allowed. Mirrors plugins/proportion/capacity_policy (KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gangdash.engine.rules import humanize
from gangdash.engine.session import (
    UNLIMITED,
    Amounts,
    GangError,
    JobState,
    NodeState,
    QueueState,
    RequestKind,
    Session,
    TaskState,
)
from gangdash.engine.statement.sharing import portion_of

OVER_LIMIT = "OverLimit"
OVER_QUOTA = "NonPreemptibleOverQuota"

_UNITS = (("CPU cores", humanize.CORES), ("memory", humanize.GIGABYTES), ("GPUs", 1))


@dataclass(frozen=True, slots=True)
class Violation:
    """``slot`` is 0 for cpu, 1 for memory, 2 for GPUs; amounts are in the queue's own units."""

    queue: QueueState
    slot: int
    reason: str
    cap: float
    held: float
    asked: float

    @property
    def message(self) -> str:
        name, unit = _UNITS[self.slot]
        cap, held = humanize.amount(self.cap, unit), humanize.amount(self.held, unit)
        asked = humanize.amount(self.asked, unit)
        if self.reason == OVER_LIMIT:
            short = ("cores", "GB", "GPUs")[self.slot]
            currently = f"currently {held} {short} allocated and workload requested {asked} {short}"
            return (
                f"{self.queue.shown_name} quota has reached the allowable limit of {name}. "
                f"Limit is {cap} {short}, {currently}"
            )
        if self.slot == 2:
            asked = humanize.shortest(self.asked)
        what, short = (("CPU cores", "cores"), ("GB memory", "GB"), ("GPUs", "GPUs"))[self.slot]
        return (
            f"Non-preemptible workload is over quota. Workload requested {asked} {what}, "
            f"but {self.queue.shown_name} quota is {cap} {short}, "
            f"while {held} {short} are already allocated for non-preemptible pods. "
            "Use a preemptible workload to go over quota."
        )


def install(session: Session) -> None:
    """Hang both checks of a step into the session's hooks."""
    session.hooks.over_capacity.append(lambda job, tasks: _error(violation(session, job, step_quota(session, tasks))))
    session.hooks.non_preemptible_over_quota.append(
        lambda job, tasks: _error(quota_violation(session, job, step_quota(session, tasks)))
    )


def node_check(session: Session) -> Callable[[TaskState, JobState, NodeState], tuple[str, ...]]:
    """Return the check of one task on one node, which node predicates begin with."""

    def check(task: TaskState, job: JobState, node: NodeState) -> tuple[str, ...]:
        found = violation(session, job, node_quota(node, task))
        if found is None:
            return ()
        return (f"node does not have enough capacity. Reason: {found.reason}, Details: {found.message}",)

    return check


def violation(session: Session, job: JobState, asked: Amounts) -> Violation | None:
    """Return the first limit or quota that the amounts would break."""
    return limit_violation(session, job, asked) or quota_violation(session, job, asked)


def limit_violation(session: Session, job: JobState, asked: Amounts) -> Violation | None:
    for queue in _chain(session, job):
        for slot, cap in enumerate(queue.limit):
            if cap != UNLIMITED and asked[slot] and cap < queue.allocated[slot] + asked[slot]:
                return Violation(queue, slot, OVER_LIMIT, cap, queue.allocated[slot], asked[slot])
    return None


def quota_violation(session: Session, job: JobState, asked: Amounts) -> Violation | None:
    if job.is_preemptible:
        return None
    for queue in _chain(session, job):
        held = queue.allocated_non_preemptible
        for slot, cap in enumerate(queue.deserved):
            if cap != UNLIMITED and asked[slot] and cap < held[slot] + asked[slot]:
                return Violation(queue, slot, OVER_QUOTA, cap, held[slot], asked[slot])
    return None


def _chain(session: Session, job: JobState) -> Sequence[QueueState]:
    queue = session.queues.get(job.queue)
    return queue.ancestors if queue is not None else ()


def step_quota(session: Session, tasks: Sequence[TaskState]) -> Amounts:
    """Return what tasks ask together; GPU memory as a share of the shard's largest GPU, so never too much."""
    cpu = memory = gpu = 0.0
    for task in tasks:
        asked = task.request_amounts
        cpu, memory = cpu + asked[0], memory + asked[1]
        if task.kind is RequestKind.GPU_MEMORY:
            gpu += task.gpu.memory_as_gpus(session.max_gpu_memory)
        else:
            gpu += asked[2]
    return (cpu, memory, gpu)


def node_quota(node: NodeState, task: TaskState) -> Amounts:
    """Return what a task would ask on this node; devices of claims are not part of it."""
    gpu = task.gpu
    if gpu.mig:
        gpus = gpu.quota_gpus
    elif gpu.count:
        gpus = gpu.count * portion_of(node.memory_need(gpu), node.gpu_memory)
    else:
        gpus = 0
    return (task.request[0], task.request[1], gpus)


def _error(found: Violation | None) -> GangError | None:
    return None if found is None else GangError(found.reason, (found.message,))
