"""One scheduling cycle of one shard, replayed: what happens to every gang, pod and queue.

Runs the configured actions over a session and reads the outcome off its log. Pure and deterministic: the
same snapshot, its lists in any order, gives the same result. Mirrors pkg/scheduler/scheduler.go and the
closing half of cache/status_updater (KAI d5bc503a).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from gangdash.engine.actions import allocate, consolidation, preempt, reclaim, stale
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.config import Shard
from gangdash.engine.model.cycle import (
    Amounts,
    CycleResult,
    FitError,
    GangOutcome,
    GangResult,
    PodOutcome,
    PodResult,
    QueueUse,
)
from gangdash.engine.model.pod import Pod
from gangdash.engine.plugins import open_session
from gangdash.engine.rules.messages import gang_message, pod_message
from gangdash.engine.rules.versions import differences
from gangdash.engine.session import ACTIVE_USED, JobState, Kind, QueueState, Session, Status, TaskState
from gangdash.engine.session.build import GROUP_ANNOTATION
from gangdash.engine.statement import Listener
from gangdash.engine.statement.request import whole

ACTIONS: dict[str, Callable[[Session], None]] = {
    allocate.NAME: allocate.execute,
    consolidation.NAME: consolidation.execute,
    reclaim.NAME: reclaim.execute,
    preempt.NAME: preempt.execute,
    stale.NAME: stale.execute,
}
_WAITING = (PodOutcome.PENDING, PodOutcome.GATED)
_UNPLACED = (Status.PENDING, Status.GATED)


class _Story(NamedTuple):
    """What the cycle did to one task: whether it lost a node, whether it was placed after that, and who acted last."""

    was_evicted: bool
    """From a node it held before or was bound to in this cycle; a promise taken back is no loss."""
    placed: Kind | None
    action: str


class _Log(NamedTuple):
    """What was committed: the story of each task by uid, and the last action per gang that changed anything."""

    stories: dict[str, _Story]
    last_action: dict[str, str]


def run_cycle(
    snapshot: ClusterSnapshot,
    shard: Shard,
    on_phase: Callable[[str], None] | None = None,
    listeners: Sequence[Listener] = (),
) -> CycleResult:
    """Replay one cycle; ``on_phase`` is told the name of each phase as it begins, ``listeners`` of every operation."""
    tell = on_phase or (lambda _: None)
    tell("open")
    session = open_session(snapshot, shard)
    session.listeners.extend(listeners)
    ready = {key: job.is_ready for key, job in session.jobs.items()}
    for name in shard.config.actions:
        action = ACTIONS.get(name)
        if action is not None:
            tell(name)
            action(session)
    tell("close")
    return close_session(session, ready)


def close_session(session: Session, ready: dict[str, bool]) -> CycleResult:
    """Return what became of everything the session holds."""
    log = _read_log(session)
    failed = _failed_pods(session.snapshot.pods)
    gangs = [_gang(session, job, log, failed[key], ready=ready[key]) for key, job in session.jobs.items()]
    gangs.sort(key=lambda gang: (gang.namespace, gang.name))
    queues = [_queue(session, queue) for _, queue in sorted(session.queues.items())]
    return CycleResult(session.shard.name, tuple(gangs), tuple(queues))


def _read_log(session: Session) -> _Log:
    log = _Log({}, {})
    for action, (kind, task, _, _) in session.done:
        before = log.stories.get(task.uid)
        held = task.start_status & ACTIVE_USED if before is None else before.placed is Kind.ALLOCATE
        was_evicted = (kind is Kind.EVICT and bool(held)) or (before is not None and before.was_evicted)
        log.stories[task.uid] = _Story(was_evicted, None if kind is Kind.EVICT else kind, action)
        if task.job is not None:
            log.last_action[task.job.key] = action
    return log


def _failed_pods(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Return failed pods by gang: the scheduler does not see them, their gang's row still lists them."""
    failed: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.phase == "Failed":
            failed[pod.meta.annotations.get(GROUP_ANNOTATION, "")].append(pod)
    return failed


def _gang(session: Session, job: JobState, log: _Log, failed: list[Pod], *, ready: bool) -> GangResult:
    action = log.last_action.get(job.key)
    tasks = [*job.tasks.values(), *job.invalid_tasks.values()]
    pods = [_pod(task, log.stories.get(task.uid)) for task in tasks]
    if ready and job.pending:
        told = {task.uid: pod_message(session, job, task) for task in tasks}
        pods = [replace(pod, message=told[task.uid]) for pod, task in zip(pods, tasks, strict=True)]
    pods.extend(_kept(pod) for pod in failed)
    pods.sort(key=lambda pod: (pod.namespace, pod.name))
    outcome = _gang_outcome(pods, ready=ready)
    waits = outcome in (GangOutcome.NOT_READY, GangOutcome.UNSCHEDULABLE)
    return GangResult(
        namespace=job.namespace,
        name=job.name,
        uid=job.podgroup.meta.uid,
        shard=session.shard.name,
        queue=job.queue,
        ready=ready,
        outcome=outcome,
        action=action,
        pods=tuple(pods),
        errors=tuple(_errors(job)) if any(task.start_status in _UNPLACED for task in tasks) else (),
        one_of_several=job.key in session.one_of_several,
        budget_hit=session.budget_hits.get(job.key, ""),
        not_modelled=(*session.not_modelled.get(job.key, ()), *differences(session, job, action)),
        message=gang_message(session, job) if ready and job.pending else "",
        fit=session.fits.get(job.key) if waits else None,
    )


def _errors(job: JobState) -> Iterable[FitError]:
    """Return the errors noted for a gang, each once; several texts of one error are set apart by bars."""
    seen: set[FitError] = set()
    for error in job.errors:
        told = FitError(error.reason, " | ".join(error.messages))
        if told not in seen:
            seen.add(told)
            yield told


def _gang_outcome(pods: list[PodResult], *, ready: bool) -> GangOutcome:
    outcomes = {pod.outcome for pod in pods}
    for pod_outcome, outcome in ((PodOutcome.PIPELINED, GangOutcome.PIPELINED), (PodOutcome.BOUND, GangOutcome.BOUND)):
        if pod_outcome in outcomes:
            return outcome
    if not outcomes.isdisjoint(_WAITING):
        return GangOutcome.UNSCHEDULABLE if ready else GangOutcome.NOT_READY
    if PodOutcome.EVICTED in outcomes:
        return GangOutcome.EVICTED
    return GangOutcome.MOVED if PodOutcome.MOVED in outcomes else GangOutcome.KEPT


def _pod(task: TaskState, story: _Story | None) -> PodResult:
    outcome, node, action = _pod_outcome(task, story)
    return PodResult(task.name, outcome, node, action, task.namespace, task.pod.meta.uid)


def _pod_outcome(task: TaskState, story: _Story | None) -> tuple[PodOutcome, str | None, str | None]:
    if story is None:
        if task.start_status is Status.PENDING:
            return PodOutcome.PENDING, None, None
        if task.start_status is Status.GATED:
            return PodOutcome.GATED, None, None
        return PodOutcome.KEPT, task.start_node or task.pod.node_name or None, None
    if story.placed is None:
        return PodOutcome.EVICTED, task.node_name, story.action
    if story.was_evicted:
        return PodOutcome.MOVED, task.node_name, story.action
    return (PodOutcome.BOUND if story.placed is Kind.ALLOCATE else PodOutcome.PIPELINED), task.node_name, story.action


def _kept(pod: Pod) -> PodResult:
    return PodResult(pod.meta.name, PodOutcome.KEPT, pod.node_name or None, None, pod.meta.namespace, pod.meta.uid)


def _queue(session: Session, queue: QueueState) -> QueueUse:
    fair_share = _reported(queue.fair_share) if session.charges_queues else None
    return QueueUse(queue.name, session.shard.name, fair_share, queue.allocated_before, queue.allocated)


def _reported(share: Amounts) -> Amounts:
    """Return a fair share as the scheduler hands it out: GPUs cut to whole ones from 1 on, else to hundredths."""
    cpu, memory, gpu = share
    return (cpu, memory, whole(gpu).gpus if gpu >= 0 else gpu)
