"""Did gangs start as fast as was promised: which starts count, which met the objective, how much budget is left.

A start is eligible once its gates are removed, else when it was made. Work over its queue's quota and gangs that not
even an empty cluster could hold do not count, so that a cluster that is merely full burns no budget. Quotas are those
of now, as older ones are not kept; what a queue held is taken from the capacity samples.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from apps.inventory.models import CapacitySample, Queue
from apps.workloads.models import Attempt, Gang, ServiceObjective
from gangdash.engine.verdict import ReasonCode

NEVER_FIT_CODES = frozenset({ReasonCode.NODE_TOO_SMALL, ReasonCode.CLUSTER_TOO_SMALL, ReasonCode.DOMAIN_TOO_SMALL})
"""The codes that an exact search over an empty cluster stands behind."""
OVER_QUOTA_CODES = frozenset(
    {ReasonCode.QUEUE_LIMIT, ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA, ReasonCode.FAIR_SHARE_REACHED}
)
"""The codes of work that its queue has no claim to the GPUs for."""
UNLIMITED = -1
BATCH = 2000


class Outcome(StrEnum):
    """How one start counts; only the first two do."""

    MET = "met"
    MISSED = "missed"
    UNDECIDED = "undecided"
    """Still within its time, or ended by its owner before that was over."""
    OVER_QUOTA = "over_quota"
    NEVER_FITS = "never_fits"
    TOO_LARGE = "too_large"
    SIZE_UNKNOWN = "size_unknown"


@dataclass(frozen=True, slots=True)
class Start:
    """One gang on its way to its first nodes. ``never_at`` and ``over_at`` are when a code of that kind first came."""

    gang_id: int
    queue: str
    gpus: float | None
    eligible_at: datetime
    bound_at: datetime | None
    ended_at: datetime | None
    never_at: datetime | None
    over_at: datetime | None


@dataclass(frozen=True, slots=True)
class Judged:
    """A start with its outcome; ``quota_known`` is false where it could not be told whether it was within quota."""

    start: Start
    outcome: Outcome
    quota_known: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """How an objective stands over a span. ``quota_unknown`` counts those of met and missed that are taken to have
    been within quota because nothing is known."""

    objective_share: float
    start: datetime
    end: datetime
    met: int
    missed: int
    undecided: int
    over_quota: int
    never_fits: int
    too_large: int
    size_unknown: int
    quota_unknown: int

    @property
    def total(self) -> int:
        return self.met + self.missed

    @property
    def share(self) -> float | None:
        """Return the part that was met; None where nothing counted."""
        return self.met / self.total if self.total else None

    @property
    def burn(self) -> float | None:
        """Return how many times as fast as allowed the budget was burnt: 1 ends with none left."""
        return self.missed / self.total / (1 - self.objective_share) if self.total else None

    @property
    def budget_left(self) -> float | None:
        """Return the part of the budget of this span that is left, below zero once overspent."""
        return None if self.burn is None else 1 - self.burn


class QueueShares:
    """What queues held at past moments against the quota that they have now."""

    def __init__(self, samples: Sequence[tuple[datetime, Mapping[str, Sequence[float | None]]]],
                 quotas: Mapping[str, float | None]) -> None:  # fmt: skip
        self._times = [at for at, _ in samples]
        self._held = [held for _, held in samples]
        self._quotas = quotas

    def is_over(self, queue: str, gpus: float, at: datetime) -> bool | None:
        """Tell whether a gang would have taken its queue over quota; None where that is not known."""
        index = bisect.bisect_right(self._times, at) - 1
        if queue not in self._quotas or index < 0:
            return None
        quota, held = self._quotas[queue], self._held[index].get(queue, (None, None))[0]
        if quota == UNLIMITED:
            return False
        # A small slack, as held amounts are sums of shares of GPUs.
        return None if held is None else held + gpus > (quota or 0.0) + 1e-6


def objective_default(*, cluster_id: int) -> ServiceObjective:
    """Return the objective of a cluster for which nobody has set one; it is not stored."""
    return ServiceObjective(cluster_id=cluster_id)


def objective_list(*, cluster_id: int) -> list[ServiceObjective]:
    """Return what was promised for a cluster and its queues; the default where nothing was set."""
    rows = list(ServiceObjective.objects.filter(cluster=cluster_id).select_related("cluster"))
    return rows or [objective_default(cluster_id=cluster_id)]


def objective_standing(*, objective: ServiceObjective, now: datetime, window: timedelta | None = None) -> Standing:
    """Return how an objective stands at a moment, over its own window or another one that ends then."""
    start = now - (window or timedelta(days=objective.window_days))
    return standing_of(
        starts_judged(objective=objective, start=start, end=now), objective=objective, start=start, end=now
    )


def objective_standings(*, cluster_id: int, now: datetime) -> list[tuple[ServiceObjective, Standing]]:
    """Return every objective of a cluster with how it stands, the cluster's own first."""
    return [
        (objective, objective_standing(objective=objective, now=now))
        for objective in objective_list(cluster_id=cluster_id)
    ]


def standing_of(judged: Iterable[Judged], *, objective: ServiceObjective, start: datetime, end: datetime) -> Standing:
    """Count outcomes."""
    counts: Counter[Outcome] = Counter()
    unknown = 0
    for item in judged:
        counts[item.outcome] += 1
        unknown += not item.quota_known and item.outcome in {Outcome.MET, Outcome.MISSED}
    return Standing(
        objective_share=objective.share,
        start=start,
        end=end,
        quota_unknown=unknown,
        **{str(outcome): counts[outcome] for outcome in Outcome},
    )


def starts_judged(*, objective: ServiceObjective, start: datetime, end: datetime) -> Iterator[Judged]:
    """Yield each start that became eligible in a span, judged as of its end."""
    shares = queue_shares(cluster_id=objective.cluster_id, end=end)
    for item in start_rows(objective=objective, start=start, end=end):
        yield judge(item, objective=objective, end=end, is_over=shares.is_over)


def judge(
    item: Start, *, objective: ServiceObjective, end: datetime, is_over: Callable[[str, float, datetime], bool | None]
) -> Judged:
    """Say how one start counts. What came after ``end`` has not happened yet."""
    if item.gpus is None:
        return Judged(item, Outcome.SIZE_UNKNOWN, quota_known=False)
    over = is_over(item.queue, item.gpus, item.eligible_at)
    deadline = item.eligible_at + timedelta(seconds=objective.within_seconds)
    until = min(deadline, end)
    if item.gpus > objective.gpus_max:
        outcome = Outcome.TOO_LARGE
    elif _by(item.never_at, until):
        outcome = Outcome.NEVER_FITS
    elif over or _by(item.over_at, until):
        outcome = Outcome.OVER_QUOTA
    elif _by(item.bound_at, until):
        outcome = Outcome.MET
    else:
        outcome = Outcome.UNDECIDED if deadline > end or _by(item.ended_at, deadline) else Outcome.MISSED
    return Judged(item, outcome, quota_known=over is not None)


def _by(moment: datetime | None, until: datetime) -> bool:
    return moment is not None and moment <= until


def start_rows(*, objective: ServiceObjective, start: datetime, end: datetime) -> Iterator[Start]:
    """Yield the starts that became eligible after ``start`` and until ``end``, in the order of their rows."""
    eligible = Q(gated_at=None) | Q(gates_removed_at__isnull=False)
    rows = Attempt.objects.filter(eligible, cluster=objective.cluster_id).order_by("pk")
    if objective.queue:
        below = queues_below(cluster_id=objective.cluster_id, queue=objective.queue)
        rows = rows.filter(gang__queue__in=sorted(below))
    rows = rows.annotate(
        eligible_at=Coalesce("gates_removed_at", "created_at", "seen_at"),
        never_at=_first(NEVER_FIT_CODES),
        over_at=_first(OVER_QUOTA_CODES),
    ).filter(eligible_at__gt=start, eligible_at__lte=end)
    columns = ("gang_id", "gang__queue", "gang__gpus", "eligible_at", "bound_at", "ended_at", "never_at", "over_at")
    for row in rows.values_list(*columns).iterator(BATCH):
        yield Start(*row)


def _first(codes: Iterable[str]) -> Subquery:
    """Return when one of these codes first held of an attempt's gang."""
    held: QuerySet[Gang] = Gang.objects.filter(pk=OuterRef("gang"), timeline__code__in=sorted(codes))
    return Subquery(held.order_by("timeline__opened_at").annotate(at=F("timeline__opened_at")).values("at")[:1])


def queues_below(*, cluster_id: int, queue: str) -> frozenset[str]:
    """Return a queue and all that are below it, as the queues stand now."""
    children: dict[str, list[str]] = {}
    for name, parent in Queue.objects.filter(cluster=cluster_id).values_list("name", "parent"):
        children.setdefault(parent, []).append(name)
    found, left = {queue}, [queue]
    while left:
        # A name that was seen is not followed again: parents may form a ring.
        fresh = [name for name in children.get(left.pop(), ()) if name not in found]
        found.update(fresh)
        left.extend(fresh)
    return frozenset(found)


def queue_shares(*, cluster_id: int, end: datetime) -> QueueShares:
    """Return what is kept of the shares of a cluster's queues up to a moment."""
    samples = CapacitySample.objects.filter(cluster=cluster_id, at__lte=end).order_by("at")
    quotas = dict(Queue.objects.filter(cluster=cluster_id).values_list("name", "gpu_quota"))
    return QueueShares(list(samples.values_list("at", "queues").iterator(BATCH)), quotas)
