"""How far the data of a span can be trusted: readings that failed, gaps, kinds not read, analyses, engine limits.

Records of polls are kept for days, not weeks; how much of the span they cover is part of the answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import nlargest

from django.conf import settings
from django.db.models import Count

from apps.clusters.choices import PollOutcome
from apps.clusters.models import Cluster, KindFreshness, PollRun
from apps.clusters.selectors import STALE_POLLS
from apps.diagnosis.models import Snapshot
from apps.reports.facts.period import Period

GOOD = (PollOutcome.READ, PollOutcome.PARTIAL)
GAPS_KEPT = 10
ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class Gap:
    """A span without a good reading that is longer than what makes a cluster stale."""

    start: datetime
    end: datetime
    reason: str

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()


@dataclass(frozen=True, slots=True)
class UnreadKind:
    """A kind that some reading of the span could not read: the reason it gave last, and over how many readings."""

    kind: str
    reason: str
    polls: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class QualityFacts:
    """``polls_from`` is how far back records of polls reach inside the span, None where there are none.

    ``gaps`` are the longest ones, longest first. ``not_modelled`` and ``oddities`` are those of the newest analysis.
    """

    polls: Mapping[str, int] = field(default_factory=dict)
    polls_from: datetime | None = None
    gaps: tuple[Gap, ...] = ()
    gaps_total: int = 0
    gap_seconds: float = 0.0
    unread: tuple[UnreadKind, ...] = ()
    analyses: Mapping[str, int] = field(default_factory=dict)
    not_modelled: tuple[tuple[str, str, int], ...] = ()
    oddities: int = 0
    skew_seconds: float | None = None
    first_analysis: datetime | None = None
    last_analysis: datetime | None = None
    engine: str = ""

    @property
    def good_polls(self) -> int:
        return sum(self.polls.get(outcome, 0) for outcome in GOOD)

    @property
    def all_polls(self) -> int:
        return sum(self.polls.values())


def quality_facts(cluster: Cluster, period: Period) -> QualityFacts:
    """Read the records of polls and analyses of one span."""
    runs = PollRun.objects.filter(cluster=cluster, started_at__gte=period.start, started_at__lt=period.end)
    runs = runs.exclude(outcome=PollOutcome.RUNNING)
    first = runs.order_by("started_at").values_list("started_at", flat=True).first()
    gaps, total, seconds = _gaps(cluster, period, first)
    done = Snapshot.objects.filter(cluster=cluster, as_of__gte=period.start, as_of__lte=period.end)
    newest = done.filter(outcome="done").defer("history").order_by("-as_of").first()
    oldest = done.filter(outcome="done").order_by("as_of").values_list("as_of", flat=True).first()
    return QualityFacts(
        polls=dict(runs.order_by().values_list("outcome").annotate(Count("pk"))),
        polls_from=first,
        gaps=tuple(Gap(start, end, _reason(cluster, start, end)) for start, end in gaps),
        gaps_total=total,
        gap_seconds=seconds,
        unread=tuple(_unread(cluster, period)),
        analyses=dict(done.order_by().values_list("outcome").annotate(Count("pk"))),
        not_modelled=tuple((i["what"], i["why"], i["matters_to"]) for i in newest.not_modelled) if newest else (),
        oddities=len(newest.oddities) if newest else 0,
        skew_seconds=cluster.skew_seconds,
        first_analysis=oldest,
        last_analysis=newest.as_of if newest else None,
        engine=newest.engine if newest else "",
    )


def _gaps(
    cluster: Cluster, period: Period, first: datetime | None
) -> tuple[list[tuple[datetime, datetime]], int, float]:
    """Return the longest spans between good readings, from the first record of the span on; number and sum of all."""
    found: list[tuple[datetime, datetime]] = []
    total, seconds = 0, 0.0
    if first is None:
        return found, total, seconds
    longest = timedelta(seconds=settings.GANGDASH_POLL_SECONDS * STALE_POLLS)
    runs = PollRun.objects.filter(cluster=cluster, ended_at__gte=period.start, ended_at__lt=period.end)
    good = runs.filter(outcome__in=GOOD).order_by("ended_at").values_list("ended_at", flat=True)
    moments: Iterable[datetime | None] = itertools.chain([first], good.iterator(ROWS_AT_ONCE), [period.end])
    for before, after in itertools.pairwise(moments):
        if before is not None and after is not None and after - before > longest:
            total, seconds = total + 1, seconds + (after - before).total_seconds()
            found = nlargest(GAPS_KEPT, [*found, (before, after)], key=_length)
    return found, total, seconds


def _length(gap: tuple[datetime, datetime]) -> timedelta:
    return gap[1] - gap[0]


def _reason(cluster: Cluster, start: datetime, end: datetime) -> str:
    """Return what the last poll that failed in a gap gave as its reason; empty where none was made."""
    failed = PollRun.objects.filter(cluster=cluster, started_at__gte=start, started_at__lt=end)
    failed = failed.exclude(outcome__in=GOOD).exclude(detail="")
    return failed.order_by("-started_at").values_list("detail", flat=True).first() or ""


def _unread(cluster: Cluster, period: Period) -> Iterator[UnreadKind]:
    """Yield kinds by name that were not read at some time; those of now where no record of a poll is kept."""
    found: dict[str, UnreadKind] = {}
    runs = PollRun.objects.filter(cluster=cluster, started_at__gte=period.start, started_at__lt=period.end)
    for at, kinds in runs.order_by("started_at").values_list("started_at", "kinds").iterator(ROWS_AT_ONCE):
        for kind in kinds:
            if kind.get("reason"):
                seen = found.get(kind["kind"])
                first, polls = (seen.first_at, seen.polls) if seen else (at, 0)
                found[kind["kind"]] = UnreadKind(kind["kind"], kind["reason"], polls + 1, first, at)
    if not runs.exists() and cluster.read_as_of is not None and cluster.read_as_of < period.end:
        standing = KindFreshness.objects.filter(cluster=cluster, is_read=False).exclude(reason="")
        for row in standing:
            found[row.kind] = UnreadKind(row.kind, row.reason, 0, row.checked_at, row.checked_at)
    yield from (found[kind] for kind in sorted(found))
