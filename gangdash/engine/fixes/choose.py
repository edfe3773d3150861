"""Which candidates are tried for a gang, in which order, and which of them become fixes.

What is guessed depends on the codes found; what is printed depends on the re-run alone. Where one change is not
enough because two things are in the way, the cheapest changes for both are tried together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gangdash.engine.changes import change_text
from gangdash.engine.fixes import caps, demands, holders, nodes, waits
from gangdash.engine.fixes.candidate import Candidate, Case
from gangdash.engine.fixes.reruns import Reruns
from gangdash.engine.fixes.spare import SpareRoom
from gangdash.engine.verdict import FactValue, Fix, FixKind, ReasonCode
from gangdash.engine.whatif import Effect

MOST_FIXES = 5
MOST_RUNS = 14
"""Cycles that may be re-run for one gang."""
_MOST_TOGETHER = 4
_MOST_FIRST = 2
_CAP_KINDS = frozenset({FixKind.RAISE_LIMIT, FixKind.RAISE_QUOTA})

Source = Callable[[Case], Iterable[Candidate]]


def _with_room(source: Callable[[Case, SpareRoom], Iterable[Candidate]]) -> Source:
    """Return a source that has nothing to offer where there is no step to make room for."""

    def candidates(case: Case) -> Iterable[Candidate]:
        return source(case, case.room) if case.room is not None else ()

    return candidates


def _of_room(source: Callable[[SpareRoom], Iterable[Candidate]]) -> Source:
    return _with_room(lambda _, room: source(room))


_MENDED, _FREED, _LABELLED = _of_room(nodes.mended_nodes), _of_room(nodes.freed), _of_room(nodes.labelled)
_UNTAINTED = _with_room(nodes.untainted)
_STOPPED, _UNPROTECTED = _with_room(holders.stopped), _with_room(holders.unprotected)
_RESELECTED, _SHRUNK_PODS = _with_room(demands.reselected), _with_room(demands.shrunk_pods)


def _shrunk_gang(case: Case) -> Iterable[Candidate]:
    return demands.shrunk_gang(case, case.room)


_LESS: tuple[Source, ...] = (demands.relaxed, _SHRUNK_PODS, _shrunk_gang)
_ROOM: tuple[Source, ...] = (_MENDED, demands.relaxed, _UNPROTECTED, _STOPPED, _SHRUNK_PODS, _shrunk_gang, _FREED)
_STATE: tuple[Source, ...] = (_MENDED, _RESELECTED, _UNTAINTED, _STOPPED, *_LESS)
_CHECKS: tuple[Source, ...] = (_RESELECTED, _LABELLED, _UNTAINTED, *_LESS)

_CAPS: Mapping[ReasonCode, tuple[Source, ...]] = {
    ReasonCode.QUEUE_LIMIT: (caps.raised, caps.moved, holders.own_queue, _shrunk_gang),
    ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA: (caps.raised, caps.preemptible, caps.moved, _shrunk_gang),
}
"""While a cap is in the way, only what changes the caps, or what is asked under them, can help by itself."""
_SOURCES: Mapping[ReasonCode, tuple[Source, ...]] = {
    ReasonCode.FAIR_SHARE_REACHED: (caps.claimed, caps.moved, demands.promoted, *_ROOM),
    ReasonCode.HOLDERS_PROTECTED: (waits.protection, demands.promoted, *_ROOM),
    ReasonCode.PREEMPTION_DELAY: (waits.delay, *_ROOM),
    ReasonCode.QUEUED_BEHIND: (demands.promoted, caps.claimed, caps.moved, holders.ahead, *_ROOM),
    ReasonCode.GPUS_BUSY: (demands.promoted, *_ROOM),
    ReasonCode.FRAGMENTED: (demands.promoted, *_ROOM),
    ReasonCode.DOMAIN_BUSY: (demands.promoted, *_ROOM),
    ReasonCode.RESOURCE_SHORT: (demands.promoted, *_ROOM),
    ReasonCode.POD_SLOTS: (demands.promoted, *_ROOM),
    ReasonCode.GPU_SHAPE: (demands.promoted, demands.shrunk_share, *_ROOM, _RESELECTED),
    ReasonCode.CLAIM_UNALLOCATABLE: _ROOM,
    ReasonCode.NODE_TOO_SMALL: _LESS,
    ReasonCode.CLUSTER_TOO_SMALL: _LESS,
    ReasonCode.DOMAIN_TOO_SMALL: _LESS,
    ReasonCode.SELECTOR_MISMATCH: _CHECKS,
    ReasonCode.TAINT_NOT_TOLERATED: _CHECKS,
    ReasonCode.POD_AFFINITY: _CHECKS,
    ReasonCode.VOLUME: _CHECKS,
    ReasonCode.CONFLICTING_CONSTRAINTS: (*_CHECKS, *_ROOM),
    ReasonCode.NUMA_SPLIT: _ROOM,
    ReasonCode.NODES_CORDONED: _STATE,
    ReasonCode.NODES_NOT_READY: _STATE,
    ReasonCode.NODES_TAINTED_BY_STATE: _STATE,
    ReasonCode.DEVICES_UNHEALTHY: _STATE,
    ReasonCode.DEVICE_PLUGIN_MISSING: _STATE,
    ReasonCode.TERMINATING_PODS_HOLD: _STATE,
    ReasonCode.GREEDY_MISS: (demands.preferred, _STOPPED, *_LESS),
}


@dataclass(slots=True)
class Search:
    """The fixes found so far for one gang, ``namespace/name``; ``refused`` counts changes that were re-run in vain."""

    key: str
    reruns: Reruns
    runs_left: int = MOST_RUNS
    fixes: list[Fix] = field(default_factory=list)
    refused: int = 0

    @property
    def is_over(self) -> bool:
        return len(self.fixes) >= MOST_FIXES or self.runs_left <= 0

    def try_(self, candidate: Candidate) -> bool:
        """Re-run the cycle with a candidate and keep it if the gang starts; one fix of a kind is enough."""
        if self.is_over or any(fix.kind is candidate.kind for fix in self.fixes) or not self.starts(candidate):
            return False
        self.keep(candidate)
        return True

    def starts(self, candidate: Candidate) -> bool:
        """Whether the gang starts in the cycle with the changes; a change that cannot be made does not count."""
        if not self.reruns.knows(candidate.all_changes):
            self.runs_left -= 1
        effect = self.reruns.effect(candidate.all_changes)
        if effect is None:
            return False
        starts = self.key in effect.starts
        self.refused += not starts
        return starts

    def keep(self, candidate: Candidate) -> None:
        effect = self.reruns.effect(candidate.all_changes)
        if effect is not None:
            self.fixes.append(fix_of(candidate, effect))


def fix_of(candidate: Candidate, effect: Effect) -> Fix:
    first, *rest = candidate.all_changes
    change: dict[str, FactValue] = {"object": first.object, **first.values}
    if rest:
        change["also"] = tuple(change_text(other) for other in rest)
    return Fix(
        kind=candidate.kind,
        change=change,
        facts=candidate.facts,
        form=candidate.form,
        verified=True,
        starts=effect.starts,
        moves=effect.moves,
        delays=effect.delays,
        sets_back=effect.sets_back,
        evicts=effect.evicts,
        who=candidate.who,
        cost=candidate.cost + bool(effect.evicts),
        beside=tuple(fix_of(other, effect) for other in candidate.beside),
    )


def search(found: Search, case: Case, needed: Sequence[Candidate]) -> None:
    """Look for fixes of one gang; ``needed`` are changes already known not to be enough by themselves."""
    singles = _guessed(case, _CAPS if case.broken else _SOURCES)
    for candidate in singles:
        found.try_(candidate)
    if not case.broken and _lacks_room(case):
        _add_nodes(found, case, ())
    if not found.fixes:
        first = (*needed, *(item for item in singles if item.kind in _CAP_KINDS or item.lifts or item.tasks))
        for candidate in first[:_MOST_FIRST]:
            _together(found, case, candidate)


def _guessed(case: Case, table: Mapping[ReasonCode, tuple[Source, ...]]) -> list[Candidate]:
    """Return what the codes found suggest, cheapest first; each source is asked once."""
    sources = dict.fromkeys(source for finding in case.findings for source in table.get(finding.code, ()))
    candidates = [candidate for source in sources for candidate in source(case)]
    return sorted(candidates, key=lambda candidate: candidate.cost)


def _lacks_room(case: Case) -> bool:
    return any(finding.code in _SOURCES for finding in case.findings)


def _together(found: Search, case: Case, first: Candidate) -> None:
    """Try a change that is needed with each change that makes room after it, and with more nodes."""
    after = case.after(first)
    others = sorted((item for source in _ROOM for item in source(after)), key=lambda item: item.cost)
    known = len(found.fixes)
    for other in others[:_MOST_TOGETHER]:
        if other.kind is not first.kind:
            found.try_(replace(first, beside=(*first.beside, other)))
    if len(found.fixes) == known:
        _add_nodes(found, after, (first,))


# More nodes


def _add_nodes(found: Search, case: Case, needed: tuple[Candidate, ...]) -> None:
    """Try the fewest nodes of the best shapes: for what is short, for all that is asked, for others that go first."""
    for shape in nodes.shapes(case.room) if case.room is not None else ():
        low = shape.fewest - 1
        for count in dict.fromkeys((shape.fewest, shape.most, shape.most * 2, shape.most * 4)):
            if found.is_over:
                return
            if found.starts(_with_nodes(shape, count, needed)):
                found.keep(_with_nodes(shape, _fewest(found, shape, (low, count), needed), needed))
                return
            low = max(low, count)


def _fewest(found: Search, shape: nodes.Shape, between: tuple[int, int], needed: tuple[Candidate, ...]) -> int:
    """Halve between a number that is too few and one that is enough, as long as runs are left."""
    low, high = between
    while high - low > 1 and not found.is_over:
        middle = (low + high) // 2
        if found.starts(_with_nodes(shape, middle, needed)):
            high = middle
        else:
            low = middle
    return high


def _with_nodes(shape: nodes.Shape, count: int, needed: tuple[Candidate, ...]) -> Candidate:
    more = nodes.added(shape, count)
    if not needed:
        return more
    return replace(needed[0], beside=(*needed[0].beside, more))
