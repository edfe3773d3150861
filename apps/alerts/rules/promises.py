"""The rule about the service objective: is the budget burnt so fast that it will not last.

Two windows: a short one finds a sudden fall and pages, a long one finds a slow leak.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from apps.alerts.rules.base import Finding, Values
from apps.alerts.rules.facts import Facts, Promise
from apps.delivery.messages import Severity
from apps.workloads.models import ServiceObjective
from apps.workloads.objectives import Judged, Outcome, judge
from gangdash.engine.verdict import Who
from gangdash.reasons.wording import duration

_WINDOWS = (("fast", Severity.PAGE), ("slow", Severity.TICKET))


@dataclass(frozen=True, slots=True)
class Burn:
    """Which starts counted within a window."""

    met: tuple[Judged, ...]
    missed: tuple[Judged, ...]

    def rate(self, share: float) -> float:
        """Return how many times as fast as allowed the budget is burnt."""
        total = len(self.met) + len(self.missed)
        return len(self.missed) / total / (1 - share) if total else 0.0


def slo_burn(facts: Facts, values: Values) -> list[Finding]:
    """Find objectives whose budget burns too fast in the short or the long window; the short one goes first."""
    found = []
    for promise in facts.promises:
        for name, severity in _WINDOWS:
            window = timedelta(seconds=values[f"{name}_seconds"])
            burn = burn_of(facts, promise, window)
            if len(burn.missed) >= values["missed"] and burn.rate(promise.share) >= values[f"{name}_burn"]:
                found.append(_finding(facts, promise, burn, window, severity))
                break
    return found


def burn_of(facts: Facts, promise: Promise, window: timedelta) -> Burn:
    """Judge the starts that became eligible within a window that ends now."""
    judged = list(_judged(facts, promise, window))
    return Burn(
        met=tuple(item for item in judged if item.outcome is Outcome.MET),
        missed=tuple(item for item in judged if item.outcome is Outcome.MISSED),
    )


def _judged(facts: Facts, promise: Promise, window: timedelta) -> Iterator[Judged]:
    objective = ServiceObjective(
        share=promise.share, gpus_max=promise.gpus_max, within_seconds=promise.within_seconds, queue=promise.queue
    )
    starts = promise.starts
    low = bisect.bisect_right(starts, facts.at - window, key=lambda row: row.eligible_at)
    high = bisect.bisect_right(starts, facts.at, key=lambda row: row.eligible_at)
    for start in starts[low:high]:
        yield judge(start, objective=objective, end=facts.at, is_over=promise.shares.is_over)


def _finding(facts: Facts, promise: Promise, burn: Burn, window: timedelta, severity: Severity) -> Finding:
    missed, total = len(burn.missed), len(burn.missed) + len(burn.met)
    rate = burn.rate(promise.share)
    since = min(item.start.eligible_at for item in burn.missed) + timedelta(seconds=promise.within_seconds)
    waiting = {row.gang for row in facts.standing}
    return Finding(
        signature=f"SLO_BURN||{promise.name}",
        since=since,
        title=f"The start objective of {promise.name} burns {rate:.1f} times as fast as allowed",
        text=f"{missed} of {total} starts of the last {duration(window.total_seconds())} took longer than "
        f"{duration(promise.within_seconds)}; {promise.share:.2%} are promised to be faster.",
        subject=promise.name,
        who=Who.CLUSTER_ADMIN,
        queue=promise.queue,
        gangs=tuple(item.start.gang_id for item in burn.missed if item.start.gang_id in waiting),
        severity=severity,
    )
