"""How the objectives of a cluster stand: over their window for the budget, over the span for the counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nlargest

from apps.reports.facts.period import Period
from apps.reports.facts.waits import GangFacts
from apps.workloads.models import Gang, ServiceObjective
from apps.workloads.objectives import (
    Judged,
    Outcome,
    Standing,
    judge,
    objective_list,
    queue_shares,
    standing_of,
    start_rows,
)

SIZES = (8.0, 32.0, 64.0)
"""Upper ends of the size classes; the last one ends where the objective does."""
MISSED_SHOWN = 10
COUNTED = frozenset({Outcome.MET, Outcome.MISSED})


@dataclass(frozen=True, slots=True)
class Group:
    """Starts that count, of one size class or queue."""

    label: str
    met: int
    missed: int

    @property
    def total(self) -> int:
        return self.met + self.missed


@dataclass(frozen=True, slots=True)
class Miss:
    """A gang that started late or has not; ``seconds`` is what it took, or has taken so far."""

    gang: GangFacts
    seconds: float
    is_bound: bool


@dataclass(frozen=True, slots=True)
class ObjectiveFacts:
    """One objective: its terms, its standing over its window and over the span, and the span's starts by kind."""

    queue: str
    share: float
    gpus_max: float
    within_seconds: int
    window_days: int
    is_default: bool
    window: Standing
    span: Standing
    sizes: tuple[Group, ...]
    queues: tuple[Group, ...]
    missed: tuple[Miss, ...]

    @property
    def missed_by(self) -> int:
        """Return how many more starts would have had to be in time; 0 where the objective was met."""
        total = self.span.total
        return next((n for n in range(total + 1) if self.span.met + n >= self.share * total - 1e-9), 0)


def objective_facts(period: Period) -> tuple[ObjectiveFacts, ...]:
    """Return every objective of the cluster as it stood at the end of the span, the cluster's own first."""
    return tuple(_facts(objective, period) for objective in objective_list(cluster_id=period.cluster_id))


def _facts(objective: ServiceObjective, period: Period) -> ObjectiveFacts:
    end = min(period.end, period.now)
    opened = end - timedelta(days=objective.window_days)
    shares = queue_shares(cluster_id=objective.cluster_id, end=end)
    window, span = [], []
    for start in start_rows(objective=objective, start=min(opened, period.start), end=end):
        judged = judge(start, objective=objective, end=end, is_over=shares.is_over)
        if start.eligible_at > opened:
            window.append(judged)
        if start.eligible_at > period.start:
            span.append(judged)
    return ObjectiveFacts(
        queue=objective.queue,
        share=objective.share,
        gpus_max=objective.gpus_max,
        within_seconds=objective.within_seconds,
        window_days=objective.window_days,
        is_default=objective.pk is None,
        window=standing_of(window, objective=objective, start=opened, end=end),
        span=standing_of(span, objective=objective, start=period.start, end=end),
        sizes=tuple(_sizes(span, objective.gpus_max)),
        queues=_groups((item.start.queue, item) for item in span),
        missed=_missed(span, end),
    )


def _sizes(span: Sequence[Judged], gpus_max: float) -> Iterable[Group]:
    ends = [*(size for size in SIZES if size < gpus_max), gpus_max]
    below = -1.0
    for size in ends:
        inside = [item for item in span if item.start.gpus is not None and below < item.start.gpus <= size]
        label = f"up to {size:g} GPUs" if below < 0 else f"more than {below:g}, up to {size:g} GPUs"
        counts = Counter(item.outcome for item in inside)
        yield Group(label, counts[Outcome.MET], counts[Outcome.MISSED])
        below = size


def _groups(items: Iterable[tuple[str, Judged]]) -> tuple[Group, ...]:
    counts: dict[str, Counter[Outcome]] = {}
    for label, item in items:
        if item.outcome in COUNTED:
            counts.setdefault(label, Counter())[item.outcome] += 1
    groups = [Group(label, count[Outcome.MET], count[Outcome.MISSED]) for label, count in counts.items()]
    return tuple(sorted(groups, key=lambda group: (-group.missed, -group.total, group.label)))


def _missed(span: Iterable[Judged], end: datetime) -> tuple[Miss, ...]:
    found = [(_took(item, end), item) for item in span if item.outcome is Outcome.MISSED]
    worst = nlargest(MISSED_SHOWN, found, key=lambda pair: (pair[0], -pair[1].start.gang_id))
    rows = Gang.objects.filter(pk__in=[item.start.gang_id for _, item in worst])
    columns = ("pk", "uid", "namespace", "name", "queue", "gpus")
    gangs = {row[0]: GangFacts(*row) for row in rows.values_list(*columns)}
    return tuple(
        Miss(gangs[item.start.gang_id], took, item.start.bound_at is not None and item.start.bound_at <= end)
        for took, item in worst
        if item.start.gang_id in gangs
    )


def _took(item: Judged, end: datetime) -> float:
    until = min(moment for moment in (item.start.bound_at, item.start.ended_at, end) if moment is not None)
    return (until - item.start.eligible_at).total_seconds()
