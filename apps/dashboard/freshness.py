"""The strip under the top bar: how old everything on the page is, and what could not be read.

Several clusters make one strip: the worst state rules, because a page that sums over clusters is as old as its
oldest part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.clusters.choices import Freshness
from apps.clusters.models import KindFreshness
from apps.clusters.selectors import ClusterFreshness

# From worst to best; removed clusters do not age a page.
ORDER = (Freshness.BLIND, Freshness.STALE, Freshness.FIRST_READ, Freshness.LIVE)
WORDS = {
    Freshness.BLIND: "Blind",
    Freshness.STALE: "Stale",
    Freshness.FIRST_READ: "First read",
    Freshness.LIVE: "Live",
    Freshness.REMOVED: "No longer read",
}
GAPS_NAMED = 2
NOT_SERVED = "not served"


@dataclass(frozen=True, slots=True)
class Strip:
    """``read_as_of`` and ``diagnosed_as_of`` are those of the oldest cluster in it; None before the first.

    ``gaps`` are kinds that should have been readable; ``not_served`` counts optional ones that nobody installed.
    """

    state: str
    word: str
    cluster: str
    read_as_of: datetime | None
    diagnosed_as_of: datetime | None
    poll_seconds: int
    clusters: int
    worst: tuple[str, ...]
    gaps: tuple[KindFreshness, ...]
    not_served: int
    kinds_total: int
    failures: int
    fault: str
    digest: str
    engine: str

    @property
    def css(self) -> str:
        """Return the class of the strip's state; live needs none."""
        return self.state if self.state in {Freshness.STALE, Freshness.BLIND} else ""

    @property
    def is_old(self) -> bool:
        return self.state in {Freshness.STALE, Freshness.BLIND, Freshness.REMOVED}

    @property
    def gap_words(self) -> str:
        """Name the kinds that could not be read, with the reason the server gave."""
        named = [f"{gap.kind} ({gap.reason})" if gap.reason else gap.kind for gap in self.gaps[:GAPS_NAMED]]
        rest = len(self.gaps) - len(named)
        return ", ".join([*named, f"{rest} more"] if rest > 0 else named)

    @property
    def is_analysis_behind(self) -> bool:
        """Tell whether the verdicts belong to an older reading than the one on show."""
        if self.read_as_of is None or self.diagnosed_as_of is None:
            return False
        return (self.read_as_of - self.diagnosed_as_of).total_seconds() > 2 * self.poll_seconds


def strip_of(rows: Sequence[ClusterFreshness]) -> Strip | None:
    """Return the strip over some clusters; None where there is no cluster at all."""
    if not rows:
        return None
    counted = [row for row in rows if row.state != Freshness.REMOVED] or list(rows)
    state = next((step for step in ORDER if any(row.state == step for row in counted)), Freshness.REMOVED)
    worst = [row for row in counted if row.state == state]
    oldest = min(worst, key=lambda row: row.cluster.read_as_of.timestamp() if row.cluster.read_as_of else 0.0)
    return Strip(
        state=state,
        word=WORDS[state],
        cluster=counted[0].cluster.name if len(counted) == 1 else "",
        read_as_of=oldest.cluster.read_as_of,
        diagnosed_as_of=oldest.cluster.diagnosed_as_of,
        poll_seconds=oldest.poll_seconds,
        clusters=len(counted),
        worst=tuple(row.cluster.name for row in worst),
        gaps=tuple(gap for row in counted for gap in row.not_read if not is_absent(gap)),
        not_served=sum(is_absent(gap) for row in counted for gap in row.not_read),
        kinds_total=sum(row.kinds_total for row in counted),
        failures=oldest.cluster.failures,
        fault=oldest.cluster.fault,
        digest=counted[0].cluster.diagnosed_digest if len(counted) == 1 else "",
        engine=oldest.cluster.engine,
    )


def is_absent(kind: KindFreshness) -> bool:
    """Tell whether a kind was not read because the cluster has no such thing, and can do without it."""
    return kind.reason.startswith(NOT_SERVED) and not kind.is_required
