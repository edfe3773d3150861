"""Is the trouble of a gang over on a changed snapshot, where it is not that the cycle leaves the gang waiting?

A placed gang that breaks a rule is asked again once the cycle has placed what it places; a gang that its node's NUMA
zones refuse, which the replay does not know, is asked again about its zones. Everything else is told by the cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from gangdash.engine.changes.change import unbound
from gangdash.engine.explain.capacity import is_split, room_of
from gangdash.engine.explain.context import Context
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.placeable import placed_by_replay
from gangdash.engine.explain.violated import violated
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.cycle import PodOutcome, PodResult
from gangdash.engine.model.pod import Pod
from gangdash.engine.verdict import Finding, ReasonCode, Verdict
from gangdash.engine.whatif import Cycles

_GIVEN = frozenset({PodOutcome.BOUND, PodOutcome.PIPELINED, PodOutcome.MOVED})


class Outcome:
    """A changed snapshot with the cycles run on it."""

    def __init__(self, changed: ClusterSnapshot, cycles: Cycles) -> None:
        self._changed = changed
        self._cycles = cycles

    @cached_property
    def context(self) -> Context:
        return Context(self._changed, self._cycles)

    @cached_property
    def settled(self) -> Context:
        """Everything where the cycle puts it."""
        pods = {(pod.namespace, pod.name): pod for cycle in self._cycles for gang in cycle.gangs for pod in gang.pods}
        moved = tuple(_moved(pod, pods.get((pod.meta.namespace, pod.meta.name))) for pod in self._changed.pods)
        return Context(replace(self._changed, pods=moved), ())


def _moved(pod: Pod, result: PodResult | None) -> Pod:
    if result is not None and result.outcome in _GIVEN:
        return replace(pod, node_name=result.node or "", phase="Running")
    if result is not None and result.outcome is PodOutcome.EVICTED:
        return unbound(pod)
    return pod


Check = Callable[[Outcome], bool]


def check_of(gang: Gang, finding: Finding) -> Check | None:
    """Return how to tell that the trouble is over; None where it is over when the gang starts."""
    key = (gang.meta.namespace, gang.meta.name)
    if finding.verdict is Verdict.VIOLATED:
        return lambda outcome: _is_kept(outcome, key, finding.code)
    if finding.code is ReasonCode.NUMA_SPLIT:
        return lambda outcome: _is_together(outcome, key)
    return None


def _is_kept(outcome: Outcome, key: tuple[str, str], code: ReasonCode) -> bool:
    """Whether the gang runs within the rule, or has ended; a gang that now waits instead has not been helped."""
    podgroup = outcome.settled.podgroups.get(key)
    if podgroup is None:
        return True
    gang = Gang(outcome.settled, podgroup)
    if gang.alive and not gang.is_satisfied:
        return False
    return all(found.code is not code for found in violated(gang))


def _is_together(outcome: Outcome, key: tuple[str, str]) -> bool:
    podgroup = outcome.context.podgroups.get(key)
    if podgroup is None:
        return False
    gang = Gang(outcome.context, podgroup)
    return placed_by_replay(gang) and not is_split(gang, room_of(gang))
