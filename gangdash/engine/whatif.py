"""What a change does to the whole cycle: run it with and without, and tell the difference by gang.

Both runs are complete replays of every shard; nothing is estimated. The answer is true for the snapshot
whose digest it carries and for nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gangdash.engine.cycle import run_cycle
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.cycle import CycleResult, GangOutcome, GangResult, PodOutcome
from gangdash.engine.statement import Listener

Cycles = tuple[CycleResult, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """Gangs as ``namespace/name``, sorted. A gang is in the first of these lists that applies to it.

    ``starts``: waits without the change, placed with it. ``evicts``: loses pods only with it. ``moves``:
    pods promised another place only with it. ``delays``: placed without, waits with. ``sets_back``: waits
    either way, and fewer of its pods find a place with the change.
    """

    starts: tuple[str, ...] = ()
    moves: tuple[str, ...] = ()
    delays: tuple[str, ...] = ()
    sets_back: tuple[str, ...] = ()
    evicts: tuple[str, ...] = ()


def run_all(snapshot: ClusterSnapshot, listeners: Sequence[Listener] = ()) -> Cycles:
    """Run one cycle of each shard over the same snapshot."""
    return tuple(run_cycle(snapshot, shard, listeners=listeners) for shard in snapshot.shards)


def gangs_by_key(cycles: Sequence[CycleResult]) -> dict[str, GangResult]:
    return {f"{gang.namespace}/{gang.name}": gang for cycle in cycles for gang in cycle.gangs}


def is_placed(gang: GangResult) -> bool:
    """Whether this cycle gives the gang what it waits for, now or once releases are through."""
    return gang.outcome in (GangOutcome.BOUND, GangOutcome.PIPELINED)


def is_waiting(gang: GangResult) -> bool:
    return gang.outcome in (GangOutcome.UNSCHEDULABLE, GangOutcome.NOT_READY)


def difference(before: Sequence[CycleResult], after: Sequence[CycleResult]) -> Effect:
    """Tell what the second run does to each gang that the first one does not."""
    old, new = gangs_by_key(before), gangs_by_key(after)
    lists: dict[str, list[str]] = {"starts": [], "moves": [], "delays": [], "sets_back": [], "evicts": []}
    for key in sorted(set(old) | set(new)):
        effect = _effect_on(old.get(key), new.get(key))
        if effect:
            lists[effect].append(key)
    return Effect(**{name: tuple(keys) for name, keys in lists.items()})


def _effect_on(old: GangResult | None, new: GangResult | None) -> str | None:
    if new is None:
        return None
    if _is_given_room(new) and (old is None or is_waiting(old)):
        return "starts"
    if _pods(new, PodOutcome.EVICTED) - _pods(old, PodOutcome.EVICTED):
        return "evicts"
    if _pods(new, PodOutcome.MOVED) - _pods(old, PodOutcome.MOVED):
        return "moves"
    if old is None or not is_waiting(new):
        return None
    if is_placed(old):
        return "delays"
    if is_waiting(old) and _is_further(old, new):
        return "sets_back"
    # A gang whose pods were running before the change and wait after it was taken off its nodes by the change.
    return "evicts" if old.outcome in (GangOutcome.KEPT, GangOutcome.MOVED) else None


def _is_given_room(gang: GangResult) -> bool:
    """Whether the cycle places the gang, be it that it binds it and moves it on in the same cycle."""
    return is_placed(gang) or gang.outcome is GangOutcome.MOVED


def _pods(gang: GangResult | None, outcome: PodOutcome) -> set[str]:
    return {pod.name for pod in gang.pods if pod.outcome is outcome} if gang else set()


def _is_further(old: GangResult, new: GangResult) -> bool:
    return old.fit is not None and new.fit is not None and new.fit < old.fit
