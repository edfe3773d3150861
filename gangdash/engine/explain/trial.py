"""Re-runs of the cycle for one gang with queue-side rules taken away: does the scheduler itself start it then?

A trial keeps everything that runs and drops the other gangs' waiting pods, so that only rules and room decide. Victim
search and priorities are the scheduler's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum

from gangdash.engine.cycle import run_cycle
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.queues import chain
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.cycle import GangOutcome, GangResult
from gangdash.engine.model.podgroup import PodGroup
from gangdash.engine.model.queue import Queue, QueueResource
from gangdash.engine.session.build import GROUP_ANNOTATION


class Rule(StrEnum):
    """A queue-side rule that a trial takes away."""

    LIMIT = "limit"
    QUOTA = "quota"
    ORDER = "order"
    DELAY = "delay"
    MIN_RUNTIME = "min_runtime"
    SHARE = "share"
    PROTECTION = "protection"


Rules = frozenset[Rule]


class Trials:
    """The trials of one gang; each set of rules is run once."""

    def __init__(self, gang: Gang) -> None:
        self.gang = gang
        self._done: dict[Rules, GangResult | None] = {}

    def result(self, lifted: Iterable[Rule]) -> GangResult | None:
        """Return what becomes of the gang with these rules lifted."""
        rules = frozenset(lifted)
        if rules not in self._done:
            self._done[rules] = self._run(rules)
        return self._done[rules]

    def starts(self, *lifted: Rule) -> bool:
        result = self.result(lifted)
        return result is not None and result.outcome in {GangOutcome.BOUND, GangOutcome.PIPELINED}

    def _run(self, rules: Rules) -> GangResult | None:
        shard = self.gang.shard
        if shard is None:
            return None
        snapshot = self.gang.context.snapshot
        for rule in sorted(rules):
            snapshot = _LIFTS[rule](self.gang, snapshot)
        meta = self.gang.meta
        cycle = run_cycle(snapshot, shard)
        return next((g for g in cycle.gangs if (g.namespace, g.name) == (meta.namespace, meta.name)), None)


def _alone(gang: Gang, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Drop the waiting pods of all other gangs, those with a failed BindRequest among them."""
    own = {pod.key for pod in gang.pods}
    pods = tuple(
        pod
        for pod in snapshot.pods
        if pod.key in own
        or pod.node_name
        or pod.phase != "Pending"
        or GROUP_ANNOTATION not in pod.meta.annotations
        or gang.has_live_bind_request(pod)
    )
    return replace(snapshot, pods=pods)


def _each_queue(snapshot: ClusterSnapshot, change: Callable[[Queue], Queue]) -> ClusterSnapshot:
    return replace(snapshot, queues=tuple(change(queue) for queue in snapshot.queues))


def _with(queue: Queue, **numbers: float) -> Queue:
    parts = {name: replace(getattr(queue, name) or QueueResource(), **numbers) for name in ("cpu", "memory", "gpu")}
    return replace(queue, has_resources=True, cpu=parts["cpu"], memory=parts["memory"], gpu=parts["gpu"])


def _own(gang: Gang) -> set[str]:
    return {queue.name for queue in chain(gang)}


def _no_limit(gang: Gang, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    own = _own(gang)
    return _each_queue(snapshot, lambda queue: _with(queue, limit=-1) if queue.name in own else queue)


def _no_quota(gang: Gang, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    own = _own(gang)
    return _each_queue(snapshot, lambda queue: _with(queue, quota=-1) if queue.name in own else queue)


def _first_claim(gang: Gang, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Give the gang's queues a claim to everything and all others to nothing."""
    own = _own(gang)
    return _each_queue(snapshot, lambda queue: _with(queue, quota=-1) if queue.name in own else _with(queue, quota=0))


def _no_delay(gang: Gang, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    return _each_podgroup(
        snapshot, lambda group: replace(group, preemption_delay=None) if group is gang.podgroup else group
    )


def _each_podgroup(snapshot: ClusterSnapshot, change: Callable[[PodGroup], PodGroup]) -> ClusterSnapshot:
    return replace(snapshot, podgroups=tuple(change(group) for group in snapshot.podgroups))


def _no_min_runtime(gang: Gang, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    return _each_queue(snapshot, lambda queue: replace(queue, preempt_min_runtime=0.0, reclaim_min_runtime=0.0))


def _no_protection(gang: Gang, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Make gangs of other queues preemptible; whether their queue is above its quota stays the scheduler's question."""
    return _each_podgroup(
        snapshot,
        lambda group: group if group.queue == gang.podgroup.queue else replace(group, preemptibility="preemptible"),
    )


_LIFTS: Mapping[Rule, Callable[[Gang, ClusterSnapshot], ClusterSnapshot]] = {
    Rule.ORDER: _alone,
    Rule.LIMIT: _no_limit,
    Rule.QUOTA: _no_quota,
    Rule.SHARE: _first_claim,
    Rule.DELAY: _no_delay,
    Rule.MIN_RUNTIME: _no_min_runtime,
    Rule.PROTECTION: _no_protection,
}
