"""A gang's case as it is once a change has been made that was needed and not enough."""

from __future__ import annotations

from collections.abc import Sequence

from gangdash.engine.changes import Change, ChangeError, apply
from gangdash.engine.explain.capacity import room_of
from gangdash.engine.explain.context import Context
from gangdash.engine.explain.decide import explain_gang
from gangdash.engine.explain.gang import Gang
from gangdash.engine.fixes.candidate import Case
from gangdash.engine.fixes.spare import SpareRoom
from gangdash.engine.verdict import Explanation
from gangdash.engine.whatif import run_all


def case_of(gang: Gang, item: Explanation) -> Case | None:
    """Return what fixes of a gang are guessed from; None where the scheduler does not see it."""
    job = gang.job
    if job is None or gang.shard is None:
        return None
    room = room_of(gang)
    return Case(gang, job, SpareRoom.of(room) if room is not None else None, item)


def with_changes(case: Case, changes: Sequence[Change]) -> Case | None:
    """Return the gang's case after the changes, explained anew; None where they cannot be made."""
    try:
        snapshot = apply(case.gang.context.snapshot, changes)
    except ChangeError:
        return None
    context = Context(snapshot, run_all(snapshot))
    podgroup = context.podgroups.get((case.gang.meta.namespace, case.gang.meta.name))
    if podgroup is None:
        return None
    gang = Gang(context, podgroup)
    return case_of(gang, explain_gang(gang))
