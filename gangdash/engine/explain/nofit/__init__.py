"""Facts for "no placement exists": never, because something is too small, or not now, because it is in use.

Each finding takes the smallest set of things in the way and tells the numbers behind one of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.explain.nofit.busy import in_use
from gangdash.engine.explain.nofit.case import Case
from gangdash.engine.explain.nofit.checks import CHECKS
from gangdash.engine.explain.nofit.domain import no_domain
from gangdash.engine.explain.nofit.size import too_small
from gangdash.engine.explain.room import DOMAIN, reason_lift
from gangdash.engine.verdict import Finding

__all__ = ["Case", "findings"]


def findings(case: Case) -> Iterator[Finding]:
    """Yield one finding per thing in the way, the one that an admin should see first in front."""
    for reason, build in CHECKS.items():
        if reason_lift(reason) in case.binding:
            yield build(case)
    amounts = [lift.what for lift in sorted(case.binding) if lift.kind in {"busy", "size"}]
    if DOMAIN in case.binding:
        yield no_domain(case)
    if amounts and case.never:
        yield too_small(case.room, amounts)
    elif amounts:
        yield from in_use(case, amounts)
