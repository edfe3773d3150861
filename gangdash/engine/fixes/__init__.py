"""What would start each waiting gang, proved: candidates from facts, kept where the re-run cycle starts the gang.

``with_fixes`` is the entry; it adds fixes to explanations and decides nothing else. Each fix is one whole cycle with
the change beside the whole cycle without it. The work is bounded by numbers of cycles, so the answer never depends
on a clock; what was not run is not claimed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from gangdash.engine.changes import is_modelled
from gangdash.engine.explain.capacity import room_of
from gangdash.engine.explain.context import Context
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.placeable import placed_by_replay
from gangdash.engine.fixes import told
from gangdash.engine.fixes.candidate import Candidate, Case
from gangdash.engine.fixes.choose import MOST_FIXES, Search, search
from gangdash.engine.fixes.reruns import Reruns
from gangdash.engine.fixes.spare import SpareRoom
from gangdash.engine.verdict import Explanation, Fix, FixKind, Verdict
from gangdash.engine.whatif import Cycles

logger = logging.getLogger(__name__)

_SETTLED = frozenset({Verdict.HEALTHY, Verdict.STARTING, Verdict.NO_VERDICT})


def with_fixes(context: Context, cycles: Cycles, explanations: Iterable[Explanation]) -> list[Explanation]:
    """Return the explanations with the fixes that hold."""
    reruns = Reruns(context.snapshot, cycles)
    return [_safely(context, reruns, item) for item in explanations]


def _safely(context: Context, reruns: Reruns, item: Explanation) -> Explanation:
    try:
        return _with_fixes(context, reruns, item)
    except Exception:  # per-gang boundary: the verdict stands without fixes
        logger.exception("fixes_failed", extra={"gang": item.gang.key})
        return replace(item, fixes=tuple(fix for fix in item.fixes if not is_modelled(fix.kind)))


def _with_fixes(context: Context, reruns: Reruns, item: Explanation) -> Explanation:
    podgroup = context.podgroups.get((item.gang.namespace, item.gang.name))
    if podgroup is None or item.gang.kind != "PodGroup" or item.finding.verdict in _SETTLED:
        return item
    gang = Gang(context, podgroup)
    if placed_by_replay(gang):
        return replace(item, fixes=tuple(_waited(gang, fix) for fix in item.fixes))
    if not gang.waits:
        return item
    found = Search(podgroup.key, reruns)
    unproved, needed = _told(gang, found, item.fixes)
    if gang.job is not None and gang.shard is not None:
        search(found, Case(gang, gang.job, _room(gang), item), needed)
    every = sorted((*found.fixes, *unproved), key=lambda fix: (not fix.verified, fix.cost))
    return replace(item, fixes=tuple(every[:MOST_FIXES]), fixes_refused=found.refused)


def _waited(gang: Gang, fix: Fix) -> Fix:
    """Return a wait for what the cycle as it is brings: the replay has shown that the gang starts."""
    if fix.kind is not FixKind.WAIT_FOR:
        return fix
    return replace(fix, verified=True, starts=(gang.podgroup.key,))


def _told(gang: Gang, found: Search, fixes: Iterable[Fix]) -> tuple[list[Fix], list[Candidate]]:
    """Re-run what findings name; return what no replay can show, and what is needed but not enough."""
    unproved, needed = [], []
    for fix in fixes:
        candidates = told.candidates(gang, fix)
        if not candidates:
            unproved.append(fix)
        needed += [candidate for candidate in candidates if not found.try_(candidate)]
    return unproved, needed


def _room(gang: Gang) -> SpareRoom | None:
    room = room_of(gang)
    return SpareRoom(room.stock, room.job, room.tasks) if room is not None else None
