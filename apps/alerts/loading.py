"""Reads of what is kept of one cluster, as the plain rows that rules look at; no more queries than kinds of rows.

A live evaluation is given ``now``: stamps that lie ahead of it (the clock went back) are taken as now, so that what is
true stays visible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q, QuerySet

from apps.alerts.history import BASELINE_SPAN, History, day_of
from apps.alerts.models import Observation
from apps.alerts.rules.facts import AttemptFact, Baseline, GangFact, Promise, Sample, Seen, StateFact, Stretch
from apps.alerts.rules.progress import baselines
from apps.clusters.models import Cluster
from apps.diagnosis.models import ReasonTimeline
from apps.inventory.models import CapacitySample, Queue, StateChange
from apps.workloads.choices import GangState
from apps.workloads.models import Attempt, Gang
from apps.workloads.objectives import QueueShares, objective_list, start_rows
from gangdash.engine.verdict import ReasonCode

BATCH = 2000
_GANG = ("gang_id", "gang__uid", "gang__namespace", "gang__name", "gang__queue", "gang__gpus", "gang__created_at")
_STRETCH = ("verdict", "code", "who", "state", "subject", "gpus", "opened_at", "closed_at", "gang__attempt__lineage")
_STEPS = (
    "created_at", "seen_at", "gated_at", "gates_removed_at", "decided_at", "bound_at", "ready_at", "ended_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """Which time is asked for. ``now`` is set for a live evaluation, which ends there."""

    since: datetime
    until: datetime
    now: datetime | None = None

    def clamp(self, moment: datetime) -> datetime:
        return moment if self.now is None else min(moment, self.now)

    def clamped(self, moment: datetime | None) -> datetime | None:
        return None if moment is None else self.clamp(moment)


def history_load(
    *,
    cluster: Cluster,
    since: datetime,
    until: datetime,
    now: datetime | None = None,
    known_baselines: Mapping[datetime, Mapping[str, Baseline]] | None = None,
) -> History:
    """Return what is kept of a span; attempts reach further back where days without known baselines need them."""
    span = Span(since, until, now)
    gangs: dict[int, GangFact] = {}
    stretches = list(_stretches(cluster, span, gangs))
    runs_since = since if known_baselines else day_of(since) - BASELINE_SPAN
    attempts = list(_attempts(cluster, span, gangs, runs_since))
    samples = list(_samples(cluster, span))
    return History(
        cluster=cluster.name,
        gangs=gangs,
        stretches=stretches,
        attempts=attempts,
        samples=samples,
        states=list(_states(cluster, span)),
        seen=list(_seen(cluster, span)),
        promises=list(_promises(cluster, span, samples)),
        known_baselines=known_baselines or {},
    )


def _stretches(cluster: Cluster, span: Span, gangs: dict[int, GangFact]) -> Iterator[Stretch]:
    """Yield the reasons of the span, and the earlier ones of gangs that wait in it: they tell since when."""
    mine = ReasonTimeline.objects.filter(gang__cluster=cluster, opened_at__lte=_end(span)).order_by()
    within = Q(closed_at=None) | Q(closed_at__gte=span.since)
    waiting: QuerySet[Any, Any]
    if span.now is None:
        waiting = mine.filter(within, state=GangState.WAITS).values("gang")
    else:
        waiting = Gang.objects.filter(cluster=cluster, gone_at=None, state=GangState.WAITS).order_by().values("pk")
    rows = mine.filter(within | Q(gang__in=waiting))
    for row in rows.values_list(*_GANG, *_STRETCH).iterator(BATCH):
        verdict, code, who, state, subject, gpus, opened, closed, lineage = row[len(_GANG) :]
        _note(gangs, row[: len(_GANG)], lineage)
        yield Stretch(
            row[0], verdict, code, who, state, subject, gpus, span.clamp(opened), span.clamped(closed)
        )  # fmt: skip


def _end(span: Span) -> datetime:
    """Return up to when rows count; a live evaluation takes those that a clock ahead of ours has written too."""
    return span.until if span.now is None else datetime.max.replace(tzinfo=UTC)


def _note(gangs: dict[int, GangFact], row: tuple[Any, ...], lineage: str | None) -> None:
    if row[0] not in gangs:
        key, uid, namespace, name, queue, gpus, created = row
        gangs[key] = GangFact(key, uid, namespace, name, queue, gpus, created, lineage or "")


def _attempts(cluster: Cluster, span: Span, gangs: dict[int, GangFact], runs_since: datetime) -> Iterator[AttemptFact]:
    wanted = Q(ended_at=None) | Q(ended_at__gte=span.since) | Q(seen_at__gte=runs_since)
    rows = Attempt.objects.filter(wanted, cluster=cluster).order_by()
    for row in rows.values_list(*_GANG, "lineage", "eviction_times", *_STEPS).iterator(BATCH):
        lineage, evictions, created, seen, *steps = row[len(_GANG) :]
        _note(gangs, row[: len(_GANG)], lineage)
        gated, ungated, decided, bound, ready, ended = map(span.clamped, steps)
        lost = tuple(span.clamp(datetime.fromtimestamp(stamp, UTC)) for stamp in evictions)
        yield AttemptFact(
            row[0], span.clamped(created), span.clamp(seen), gated, ungated, decided, bound, ready, ended, lost
        )


def _samples(cluster: Cluster, span: Span) -> Iterator[Sample]:
    """Yield the samples of the span and the one before it, which is true at its beginning."""
    rows = CapacitySample.objects.filter(cluster=cluster, at__lte=_end(span)).order_by("at")
    first = rows.filter(at__lte=span.since).order_by("-at").values_list("at", flat=True).first()
    if first is not None:
        rows = rows.filter(at__gte=first)
    for at, queues, domains in rows.values_list("at", "queues", "domains").iterator(BATCH):
        yield Sample(span.clamp(at), queues, domains)


def _states(cluster: Cluster, span: Span) -> Iterator[StateFact]:
    """Yield all changes of parts of the platform, which are few, and those of nodes within the span."""
    wanted = Q(kind="Deployment") | Q(at__gte=span.since)
    rows = StateChange.objects.filter(wanted, cluster=cluster, at__lte=_end(span)).order_by("at", "pk")
    for kind, subject, at, state in rows.values_list("kind", "subject", "at", "state").iterator(BATCH):
        yield StateFact(kind, subject, span.clamp(at), state)


def _seen(cluster: Cluster, span: Span) -> Iterator[Seen]:
    wanted = Q(closed_at=None) | Q(closed_at__gte=span.since)
    rows = Observation.objects.filter(wanted, cluster=cluster, opened_at__lte=_end(span)).order_by("opened_at", "pk")
    for topic, subject, value, opened, closed in rows.values_list(
        "topic", "subject", "value", "opened_at", "closed_at"
    ).iterator(BATCH):
        yield Seen(topic, subject, value, span.clamp(opened), span.clamped(closed))


def _promises(cluster: Cluster, span: Span, samples: Sequence[Sample]) -> Iterator[Promise]:
    """Yield the objectives with their starts; what queues held is taken from the samples that are read anyway."""
    quotas = dict(Queue.objects.filter(cluster=cluster).values_list("name", "gpu_quota"))
    shares = QueueShares([(sample.at, sample.queues) for sample in samples], quotas)
    for objective in objective_list(cluster_id=cluster.pk):
        starts = list(start_rows(objective=objective, start=span.since, end=span.until))
        yield Promise(
            name=f"queue {objective.queue}" if objective.queue else cluster.name,
            queue=objective.queue,
            share=objective.share,
            gpus_max=objective.gpus_max,
            within_seconds=objective.within_seconds,
            starts=sorted(starts, key=lambda start: start.eligible_at),
            shares=shares,
        )


def baselines_load(*, cluster: Cluster, day: datetime) -> dict[str, Baseline]:
    """Return how long each stage took in the runs of the days before one."""
    span = Span(day - BASELINE_SPAN, day)
    gangs: dict[int, GangFact] = {}
    rows = ReasonTimeline.objects.filter(
        gang__cluster=cluster, code=ReasonCode.UPSTREAM_STAGE, opened_at__gte=span.since, closed_at__lte=day
    )
    upstream = [
        Stretch(gang, "", ReasonCode.UPSTREAM_STAGE, "", "", "", 0.0, opened, closed)
        for gang, opened, closed in rows.order_by().values_list("gang_id", "opened_at", "closed_at")
    ]
    runs = (row for row in _attempts(cluster, span, gangs, span.since) if row.seen >= span.since)
    return baselines(runs, upstream, before=day)
