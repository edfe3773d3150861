"""What each queue holds, asks for, and may have: usage and fair share as a cycle begins.

Per resource the cluster's total goes to the top-level queues, and each queue's share to its children:
first what is deserved, then the rest by weight within one priority after the other, in whole units,
then the units that rounding left over. Mirrors pkg/scheduler/plugins/proportion/proportion.go and
resource_division/resource_division.go (KAI d5bc503a), rounding included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gangdash.engine.session import (
    ACTIVE_USED,
    ALLOCATED,
    UNLIMITED,
    Amounts,
    NodeState,
    QueueState,
    RequestKind,
    Session,
    Status,
    TaskState,
)
from gangdash.engine.session.build import is_utility_pod

DEFAULT_K = 1.0
"""How strongly historic use counts against a queue's weight."""


@dataclass(frozen=True, slots=True)
class Division:
    """How a session divides, kept in its memo so that it can be done again."""

    k: float


def divide_cluster(session: Session, *, k: float = DEFAULT_K) -> None:
    """Work out total, usage and fair share for the whole queue tree."""
    session.total = cluster_total(session)
    count_usage(session)
    session.memo[Division] = Division(k)
    divide_again(session)


def divide_again(session: Session) -> None:
    """Work out fair shares from what queues ask, deserve and may hold now; nothing without the proportion plugin."""
    division = session.memo.get(Division)
    if isinstance(division, Division):
        top = [queue for queue in session.queues.values() if not queue.parent]
        _divide_level(session, session.total, top, division.k)


def _divide_level(session: Session, total: Amounts, queues: Sequence[QueueState], k: float) -> None:
    if not queues:
        return
    shares = [share_resource(total[slot], k, slot, queues) for slot in range(3)]
    for index, queue in enumerate(queues):
        queue.fair_share = (shares[0][index], shares[1][index], shares[2][index])
    for queue in queues:
        _divide_level(session, queue.fair_share, [session.queues[name] for name in queue.children], k)


# Total and usage


def cluster_total(session: Session) -> Amounts:
    """Return what ready nodes offer less what pods of other schedulers ask for."""
    total = (0.0, 0.0, 0.0)
    for node in session.nodes.values():
        if not node.not_ready:
            offered = _node_offer(session, node)
            total = (total[0] + offered[0], total[1] + offered[1], total[2] + offered[2])
    return total


def _node_offer(session: Session, node: NodeState) -> Amounts:
    params = session.params
    cpu, memory, gpu = session.layout.amounts(node.allocatable)
    if params.restrict_node_scheduling and params.gpu_worker_label_key not in node.node.meta.labels:
        gpu = 0
    for placed in node.placed.values():
        pod = placed.task.pod
        if pod.scheduler_name == params.scheduler_name or not placed.status & ACTIVE_USED:
            continue
        if not is_utility_pod(pod, params):
            asked = placed.task.request_amounts
            cpu, memory, gpu = cpu - asked[0], memory - asked[1], gpu - asked[2]
    return (cpu, memory, gpu)


def count_usage(session: Session) -> None:
    """Charge every gang's tasks to its queue and all queues above."""
    for job in session.jobs.values():
        queue = session.queues.get(job.queue)
        if queue is None:
            continue
        for task in job.tasks.values():
            if task.status & ALLOCATED:
                for member in queue.ancestors:
                    member.charge(task.accepted_amounts, 1, preemptible=job.is_preemptible)
                    member.request = _plus(member.request, task.accepted_amounts)
            elif task.status is Status.PENDING:
                asked = pending_amounts(session, task)
                for member in queue.ancestors:
                    member.request = _plus(member.request, asked)
    for queue in session.queues.values():
        queue.allocated_before = queue.allocated


def pending_amounts(session: Session, task: TaskState) -> Amounts:
    """Return what a pending task asks of its queue; GPU memory as a share of the smallest GPU of the shard."""
    cpu, memory, gpu = task.request_amounts
    if task.kind is RequestKind.GPU_MEMORY:
        gpu += task.gpu.memory_as_gpus(session.min_gpu_memory)
    return (cpu, memory, gpu)


def _plus(left: Amounts, right: Amounts) -> Amounts:
    return (left[0] + right[0], left[1] + right[1], left[2] + right[2])


# Division of one resource among siblings


@dataclass(slots=True)
class _Claim:
    """One queue's part in the division of one resource."""

    queue: QueueState
    deserved: float
    limit: float
    weight: float
    usage: float
    request: float
    share: float = 0.0
    rest: float = 0.0
    """What rounding down has kept from it, 0 when nothing."""

    @property
    def requestable(self) -> float:
        return self.request if self.limit == UNLIMITED else min(self.limit, self.request)

    @property
    def wanted(self) -> float:
        """What it could still use."""
        return max(0.0, self.requestable - self.share)

    @property
    def is_satisfied(self) -> bool:
        return self.request <= self.share or (self.limit != UNLIMITED and self.limit <= self.share)


def share_resource(total: float, k: float, slot: int, queues: Iterable[QueueState]) -> list[float]:
    """Return each queue's fair share of one resource, in the order given."""
    claims = [
        _Claim(q, q.deserved[slot], q.limit[slot], q.weight[slot], q.usage[slot], q.request[slot]) for q in queues
    ]
    left = total
    for claim in claims:
        deserved = total if claim.deserved == UNLIMITED else claim.deserved
        claim.share = min(deserved, claim.requestable)
        left -= claim.share
    if left > 0:
        _divide_over_quota(left, k, claims)
    return [claim.share for claim in claims]


def _divide_over_quota(left: float, k: float, claims: list[_Claim]) -> None:
    groups = [
        [claim for claim in claims if claim.queue.priority == priority]
        for priority in sorted({claim.queue.priority for claim in claims}, reverse=True)
    ]
    for group in groups:
        left = _divide_by_weight(left, k, group)
    for group in groups:
        if left <= 0:
            return
        left = _divide_rests(left, group)


def _divide_by_weight(left: float, k: float, group: list[_Claim]) -> float:
    """Give in rounds until nobody asks for less than its part; return what is left."""
    again = True
    while again and left != 0:
        again = False
        amount, parts = left, _parts(group, k)
        whole = sum(parts.values())
        if whole == 0:
            break
        for claim in group:
            if left == 0:
                break
            if claim.is_satisfied or claim.weight == 0:
                continue
            fair = amount * (parts[claim.queue.name] / whole)
            wanted = claim.wanted
            given = _give(claim, fair, wanted)
            if given == 0:
                continue
            claim.share += given
            left -= given
            again = again or wanted < fair
    return left


def _parts(group: list[_Claim], k: float) -> dict[str, float]:
    weights = sum(claim.weight for claim in group if claim.wanted > 0)
    if weights == 0:
        return {}
    return {
        claim.queue.name: max(0.0, claim.weight / weights + k * (claim.weight / weights - claim.usage))
        for claim in group
        if not claim.is_satisfied
    }


def _give(claim: _Claim, fair: float, wanted: float) -> float:
    if wanted <= fair:
        claim.rest = 0.0
        return wanted
    given = float(max(math.floor(fair), 0))
    if fair - given > 0:
        claim.rest = fair - given
    return given


def _divide_rests(left: float, group: list[_Claim]) -> float:
    """Hand out what rounding left, one unit each, to those it took most from."""
    waiting = [claim for claim in group if claim.rest > 0]
    for claim in sorted(waiting, key=lambda claim: (-claim.rest, claim.queue.created, claim.queue.name)):
        if left == 0:
            break
        given = min(1.0, left)
        claim.share += given
        left -= given
    return left
