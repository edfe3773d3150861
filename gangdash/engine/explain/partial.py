"""Do some members hold nodes while the required set is not complete, and is the missing grouping itself the cause?"""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.explain import membership
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.times import annotation_time
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.session.build import STALE_ANNOTATION
from gangdash.engine.verdict import Constraint, FactValue, Finding, ReasonCode, Waiting


def below_minimum(gang: Gang) -> Iterator[Finding]:
    """Yield that fewer pods run than the gang needs, with the time at which the scheduler evicts the rest."""
    if gang.is_satisfied or not gang.placed or gang.finished:
        return
    grace = gang.podgroup.staleness_grace
    if grace is None:
        grace = gang.params.staleness_grace
    since = annotation_time(gang.meta, STALE_ANNOTATION)
    until = since + grace if since is not None and grace >= 0 else None
    facts: dict[str, FactValue] = {"placed": len(gang.placed), "needed": gang.needed, "until": until, "grace": grace}
    form = "kept" if grace < 0 else "" if until is not None else "soon"
    yield Finding(
        ReasonCode.BELOW_MINIMUM,
        form=form,
        facts=facts,
        binding=(
            Constraint(
                ConstraintId.GANG_ENFORCED,
                gang.meta.name,
                gang.needed,
                len(gang.placed),
                Unit.PODS,
                f"PodGroup/{gang.podgroup.key}",
            ),
            membership.member_constraint(gang, gang.needed, len(gang.alive)),
        ),
        waiting=Waiting(helps="no" if form != "kept" else "unknown", until=None),
    )
