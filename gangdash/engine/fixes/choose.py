"""Which candidates are tried for a gang, in which order, and which of them become fixes.

What is guessed depends on the codes found; what is printed depends on the re-run alone. Where one change is not
enough because two things are in the way, the cheapest changes for both are tried together. ``search`` asks for
re-runs one by one; whether and when they are made is for ``rounds`` to say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gangdash.engine.changes import change_text
from gangdash.engine.fixes import caps, demands, holders, nodes, placed, queues, waits
from gangdash.engine.fixes.candidate import Candidate, Case
from gangdash.engine.fixes.next_case import with_changes
from gangdash.engine.fixes.spare import SpareRoom
from gangdash.engine.verdict import VERDICT_OF, FactValue, Fix, FixKind, ReasonCode, Verdict
from gangdash.engine.whatif import Effect

MOST_FIXES = 5
_MOST_TOGETHER = 4
_MOST_FIRST = 2
_SCALE = 4
"""Each number of nodes of the scale is so many times the one before."""
_CAP_KINDS = frozenset({FixKind.RAISE_LIMIT, FixKind.RAISE_QUOTA})

_EVICTED = tuple(code for code in ReasonCode if VERDICT_OF[code] is Verdict.EVICTED)

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
    **dict.fromkeys(_EVICTED, (caps.claimed, caps.moved, demands.promoted, *_ROOM)),
    ReasonCode.QUEUE_ORPHANED: (queues.adopted, caps.moved),
    ReasonCode.TOPOLOGY_NOT_KEPT: (placed.lawful,),
    ReasonCode.LIMIT_EXCEEDED: (placed.lawful,),
    ReasonCode.GREEDY_MISS: (demands.preferred, _STOPPED, *_LESS),
}


class Tried(NamedTuple):
    """What came of one change; ``effect`` is None where it cannot be made, ``helps`` whether the trouble is over."""

    candidate: Candidate
    effect: Effect | None
    helps: bool


Steps = Generator[Sequence[Candidate], Tried, None]
"""A search: gives the changes that it would like to see re-run next, the dearest to it first, and is told of one."""


@dataclass(slots=True)
class Found:
    """The fixes found so far for one gang, ``namespace/name``; ``refused`` counts changes that were re-run in vain."""

    key: str
    fixes: list[Fix] = field(default_factory=list)
    refused: int = 0

    @property
    def is_over(self) -> bool:
        return len(self.fixes) >= MOST_FIXES

    def wants(self, candidate: Candidate) -> bool:
        """Whether the candidate could still become a fix; one of a kind is enough."""
        return not self.is_over and all(fix.kind is not candidate.kind for fix in self.fixes)

    def is_helped(self, tried: Tried) -> bool:
        """Whether the change does it; one that cannot be made does not count as refused."""
        self.refused += tried.effect is not None and not tried.helps
        return tried.helps

    def keep(self, tried: Tried) -> None:
        if tried.effect is not None:
            self.fixes.append(fix_of(tried.candidate, tried.effect))


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


def search(found: Found, case: Case, told: Sequence[Candidate]) -> Steps:
    """Look for fixes of one gang; ``told`` are the changes that its findings name."""
    yield from each(found, told)
    if not case.job.is_ready:
        # The scheduler does not try it, whatever else is changed.
        if not found.fixes:
            yield from _further(found, case, told)
        return
    singles = guessed(case)
    yield from each(found, singles)
    if not case.gang.waits:
        return
    if not case.broken and _lacks_room(case):
        yield from _add_nodes(found, case, ())
    if not found.fixes:
        for candidate in _needed(told, singles)[:_MOST_FIRST]:
            yield from _together(found, case, candidate)


def _further(found: Found, case: Case, told: Sequence[Candidate]) -> Steps:
    """Make a change that is needed and not enough, and try it with what the gang would need then."""
    for first in told[:_MOST_FIRST]:
        after = with_changes(case, first.all_changes)
        if after is not None:
            others = [other for other in guessed(after) if other.kind is not first.kind]
            yield from each(found, [replace(first, beside=(*first.beside, other)) for other in others[:_MOST_TOGETHER]])


def search_large(found: Found, case: Case, told: Sequence[Candidate]) -> Steps:
    """Look for fixes where re-runs are scarce: numbers of nodes that all gangs try come first, then what is cheap.

    Where limits or quotas are in the way too, they are raised by as much as all gangs of the queue ask for, and nodes
    are added with that where the caps are not all that is in the way.
    """
    yield from each(found, told)
    if not case.job.is_ready:
        return
    if not case.broken and _lacks_room(case):
        yield from _nodes_on_scale(found, case, ())
    singles = guessed(case)
    raised = [candidate for candidate in singles if case.broken and candidate.kind in _CAP_KINDS][-1:]
    if not case.is_capped_only:
        for candidate in raised:
            yield from _nodes_on_scale(found, case.after(candidate), (candidate,))
    yield from each(found, (*raised, *singles))


def _needed(told: Sequence[Candidate], singles: Sequence[Candidate]) -> list[Candidate]:
    return [*told, *(item for item in singles if item.kind in _CAP_KINDS or item.lifts or item.tasks)]


def each(found: Found, candidates: Iterable[Candidate]) -> Steps:
    """Ask for all candidates, in the order in which whoever re-runs them likes."""
    left = list(candidates)
    while left := [candidate for candidate in left if found.wants(candidate)]:
        tried = yield tuple(left)
        left.remove(tried.candidate)
        if found.is_helped(tried):
            found.keep(tried)


def guessed(case: Case) -> list[Candidate]:
    """Return what the codes found suggest, cheapest first; each source is asked once."""
    table = _CAPS if case.broken else _SOURCES
    sources = dict.fromkeys(source for finding in case.findings for source in table.get(finding.code, ()))
    candidates = [candidate for source in sources for candidate in source(case)]
    return sorted(candidates, key=lambda candidate: candidate.cost)


def _lacks_room(case: Case) -> bool:
    return any(_SHRUNK_PODS in _SOURCES.get(finding.code, ()) for finding in case.findings)


def _together(found: Found, case: Case, first: Candidate) -> Steps:
    """Try a change that is needed with each change that makes room after it, and with more nodes."""
    after = case.after(first)
    others = sorted((item for source in _ROOM for item in source(after)), key=lambda item: item.cost)
    known = len(found.fixes)
    pairs = [replace(first, beside=(*first.beside, other)) for other in others[:_MOST_TOGETHER]]
    yield from each(found, [pair for pair, other in zip(pairs, others, strict=False) if other.kind is not first.kind])
    if len(found.fixes) == known:
        yield from _add_nodes(found, after, (first,))


# More nodes


def _nodes_on_scale(found: Found, case: Case, needed: tuple[Candidate, ...]) -> Steps:
    """Try ever fewer copies of one node, as long as they do: as many as there are nodes, a quarter of that, and so on.

    With so many nodes every gang before this one finds room, and a cycle in which nobody has to be evicted costs
    little. All gangs try the same node and the same numbers.
    """
    shape = nodes.common_shape(case.room) if case.room is not None else None
    if shape is None or case.room is None:
        return
    count = _SCALE ** max(1, math.ceil(math.log(len(case.room.nodes), _SCALE)))
    kept = False
    while count >= shape.fewest:
        candidate = _with_nodes(shape, count, needed)
        if not kept and not found.wants(candidate):
            return
        tried = yield (candidate,)
        if not found.is_helped(tried):
            return
        if kept:
            found.fixes.pop()
        found.keep(tried)
        kept, count = True, count // _SCALE


def _add_nodes(found: Found, case: Case, needed: tuple[Candidate, ...]) -> Steps:
    """Try the fewest nodes of the best shapes: for what is short, for all that is asked, for others that go first."""
    for shape in nodes.shapes(case.room) if case.room is not None else ():
        low = shape.fewest - 1
        for count in dict.fromkeys((shape.fewest, shape.most, shape.most * 2, shape.most * 4)):
            candidate = _with_nodes(shape, count, needed)
            if not found.wants(candidate):
                return
            tried = yield (candidate,)
            if found.is_helped(tried):
                found.keep(tried)
                yield from _fewest(found, shape, (low, count), needed)
                return
            low = max(low, count)


def _fewest(found: Found, shape: nodes.Shape, between: tuple[int, int], needed: tuple[Candidate, ...]) -> Steps:
    """Halve between a number that is too few and one that is enough; the fix kept last is the least so far."""
    low, high = between
    while high - low > 1:
        middle = (low + high) // 2
        tried = yield (_with_nodes(shape, middle, needed),)
        if found.is_helped(tried):
            high = middle
            found.fixes.pop()
            found.keep(tried)
        else:
            low = middle


def _with_nodes(shape: nodes.Shape, count: int, needed: tuple[Candidate, ...]) -> Candidate:
    more = nodes.added(shape, count)
    if not needed:
        return more
    return replace(needed[0], beside=(*needed[0].beside, more))
