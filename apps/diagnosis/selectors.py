"""Reads of explanations, timelines and analysed moments, always inside what the reader may see."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import F, FilteredRelation, OuterRef, Q, QuerySet, Subquery

from apps.accounts.models import User
from apps.accounts.scope import Scope
from apps.clusters.choices import PollOutcome
from apps.clusters.models import PollRun
from apps.clusters.selectors import STALE_POLLS
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline, Snapshot, Upload
from apps.workloads.choices import GangState
from apps.workloads.models import Attempt, Gang
from apps.workloads.selectors import VERDICT_ORDER, GangFilter, attempt_list, gang_all
from apps.workloads.veil import veil_for

THEN_COLUMNS = ("verdict", "code", "who", "state", "sentence", "gpus", "opened_at")
SERIES_POINTS_MAX = 1500
"""More change points than this are thinned to an even grid: a chart has no more pixels."""


@dataclass(frozen=True, slots=True)
class WaitingSeries:
    """Waiting GPUs over time. ``verdicts`` holds one list as long as ``times`` per verdict that occurs.

    A value is true from its time to the next one. ``gaps`` are spans in which nothing was read.
    """

    times: tuple[datetime, ...]
    verdicts: dict[str, tuple[float, ...]]
    gaps: tuple[tuple[datetime, datetime], ...]


def explanation_get(*, gang: Gang) -> ExplanationRecord | None:
    """Return what is said of a gang now, None before its first diagnosis."""
    return (
        ExplanationRecord.objects.filter(gang=gang, is_current=True)
        .select_related("snapshot__reading", "snapshot__cluster", "gang__cluster")
        .first()
    )


def explanation_at(*, gang: Gang, moment: datetime) -> ExplanationRecord | None:
    """Return the document that opened the reason which held at a moment; None where none held or it is not kept.

    Always that one, however long the reason lasted: a pinned moment says the same whenever it is asked for.
    """
    held = timeline_at(gang=gang, moment=moment)
    if held is None:
        return None
    kept = ExplanationRecord.objects.filter(gang=gang, snapshot__as_of__range=(held.opened_at, moment))
    kept = kept.select_related("snapshot__reading", "snapshot__cluster", "gang__cluster")
    return kept.order_by("snapshot__as_of", "-pk").first()


def timeline_at(*, gang: Gang, moment: datetime) -> ReasonTimeline | None:
    """Return the reason that held at a moment, None where none did or that time is not kept."""
    rows = ReasonTimeline.objects.filter(Q(closed_at=None) | Q(closed_at__gt=moment), gang=gang, opened_at__lte=moment)
    return rows.order_by("-opened_at", "-pk").first()


def document_text(*, record: ExplanationRecord, scope: Scope) -> str:
    """Return the document as it was written; gangs of namespaces that the reader may not see lose their names.

    Who sees everything gets the very bytes that the command line prints.
    """
    if scope.sees_all:
        return record.document
    document = veil_for(scope=scope).value(record.data(), cluster=record.gang.cluster.name)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def gang_list_at(*, scope: Scope, at: datetime, view: GangFilter | None = None) -> QuerySet[Gang]:
    """Return the gangs that had a verdict at a moment, with it in ``then_`` columns; ``gang_then`` applies them."""
    held = Q(timeline__opened_at__lte=at) & (Q(timeline__closed_at=None) | Q(timeline__closed_at__gt=at))
    gangs = gang_all(scope=scope).annotate(past=FilteredRelation("timeline", condition=held)).exclude(past=None)
    if view:
        gangs = gangs.filter(view.condition(verdicts="past__"))
    return gangs.annotate(**{f"then_{name}": F(f"past__{name}") for name in THEN_COLUMNS})


def gang_then(gang: Gang, *, at: datetime) -> Gang:
    """Return a row of ``gang_list_at`` as it was: what is not kept for past moments is empty or None."""
    then: Any = gang
    for name in ("verdict", "code", "who", "state", "sentence"):
        setattr(gang, name, getattr(then, f"then_{name}"))
    for name in ("pods_total", "pods_placed", "pods_waiting", "gpus"):
        setattr(gang, name, None)
    gang.shape = ""
    gang.gpus_waiting = then.then_gpus
    gang.certainty = gang.subject = gang.stage = ""
    gang.waiting_since = gang.waiting_since if gang.waiting_since and gang.waiting_since <= at else None
    gang.gone_at = gang.gone_at if gang.gone_at and gang.gone_at <= at else None
    gang.diagnosed_as_of = at
    return gang


def gang_as_of(*, scope: Scope, gang: Gang, at: datetime) -> Gang:
    """Return a gang as it was at a moment; without a verdict where none is known of then."""
    then = gang_list_at(scope=scope, at=at).filter(pk=gang.pk).first()
    if then is not None:
        return gang_then(then, at=at)
    for name in ("verdict", "code", "who", "certainty", "sentence", "subject", "stage"):
        setattr(gang, name, "")
    gang.pods_total = gang.pods_placed = gang.pods_waiting = gang.gpus = gang.gpus_waiting = None
    gang.state = GangState.UNKNOWN
    return gang


def attempt_diagnosed_list(*, scope: Scope, gang: Gang) -> QuerySet[Attempt]:
    """Return the visible attempts that a gang is one of, oldest first, each with the time of its first verdict."""
    visible = scope.namespace_filter(cluster_field="gang__cluster__name", namespace_field="gang__namespace")
    first = ReasonTimeline.objects.filter(gang=OuterRef("gang")).order_by("opened_at").values("opened_at")[:1]
    return attempt_list(gang=gang).filter(visible).annotate(diagnosed_at=Subquery(first))


def explanation_current_list(*, gangs: Iterable[Gang]) -> dict[int, ExplanationRecord]:
    """Return the current explanations of some gangs by the gang's key; one query."""
    rows = ExplanationRecord.objects.filter(gang__in=[gang.pk for gang in gangs], is_current=True)
    return {row.gang_id: row for row in rows}


def timeline_list(*, gang: Gang) -> QuerySet[ReasonTimeline]:
    """Return the reasons of a gang, oldest first."""
    return ReasonTimeline.objects.filter(gang=gang).select_related("gang__cluster").order_by("opened_at", "pk")


def change_list(*, scope: Scope, since: datetime, cluster: str = "") -> QuerySet[ReasonTimeline]:
    """Return what changed since a moment, newest first; ``was_verdict`` and ``was_code`` say what it was before."""
    rows = _timelines(scope, cluster).filter(opened_at__gte=since).select_related("gang__cluster")
    before = ReasonTimeline.objects.filter(gang=OuterRef("gang"), opened_at__lt=OuterRef("opened_at"))
    before = before.order_by("-opened_at")
    return rows.annotate(
        was_verdict=Subquery(before.values("verdict")[:1]), was_code=Subquery(before.values("code")[:1])
    ).order_by("-opened_at", "-pk")


def snapshot_newest(*, cluster_id: int) -> Snapshot | None:
    """Return the newest finished analysis of a cluster, None before the first."""
    return Snapshot.objects.filter(cluster=cluster_id, outcome="done").order_by("-as_of", "-pk").first()


def waiting_series(*, scope: Scope, since: datetime, until: datetime, cluster: str = "") -> WaitingSeries:
    """Return waiting GPUs by verdict between two moments, from the timelines; two queries."""
    rows = _timelines(scope, cluster).filter(
        Q(closed_at=None) | Q(closed_at__gt=since), opened_at__lt=until, state=GangState.WAITS, gpus__gt=0
    )
    steps: dict[datetime, dict[str, float]] = {since: {}, until: {}}
    for verdict, gpus, opened, closed in rows.order_by().values_list("verdict", "gpus", "opened_at", "closed_at"):
        _add(steps, max(opened, since), verdict, gpus)
        if closed is not None and closed < until:
            _add(steps, closed, verdict, -gpus)
    times, levels = _accumulate(steps)
    keep = _thinned(times)
    return WaitingSeries(
        times=tuple(times[index] for index in keep),
        verdicts={
            verdict: tuple(level.get(verdict, 0.0) for level in (levels[index] for index in keep))
            for verdict in VERDICT_ORDER
            if any(verdict in change for change in steps.values())
        },
        gaps=reading_gaps(scope=scope, since=since, until=until, cluster=cluster),
    )


def upload_list(*, user: User) -> QuerySet[Upload]:
    """Return the uploads that a person may see, newest first, without their content."""
    uploads = Upload.objects.defer("packed", "document")
    return uploads if user.is_admin else uploads.filter(user=user)


def upload_get(*, user: User, upload_id: str) -> Upload:
    """Return one upload with its answer; ``Upload.DoesNotExist`` where it is not there or not visible."""
    try:
        key = uuid.UUID(upload_id)
    except ValueError as error:
        raise Upload.DoesNotExist from error
    uploads = Upload.objects.defer("packed")
    return uploads.get(pk=key) if user.is_admin else uploads.get(pk=key, user=user)


def _timelines(scope: Scope, cluster: str) -> QuerySet[ReasonTimeline]:
    fields = {"cluster_field": "gang__cluster__name", "namespace_field": "gang__namespace"}
    rows = ReasonTimeline.objects.filter(scope.namespace_filter(**fields))
    return rows.filter(gang__cluster__name=cluster) if cluster else rows


def _add(steps: dict[datetime, dict[str, float]], moment: datetime, verdict: str, gpus: float) -> None:
    change = steps.setdefault(moment, {})
    change[verdict] = change.get(verdict, 0.0) + gpus


def _accumulate(steps: dict[datetime, dict[str, float]]) -> tuple[list[datetime], list[dict[str, float]]]:
    times = sorted(steps)
    level: dict[str, float] = {}
    levels = []
    for moment in times:
        for verdict, gpus in steps[moment].items():
            # Rounded, as a sum of fractions that came and went must end at zero.
            level[verdict] = round(level.get(verdict, 0.0) + gpus, 6)
        levels.append(dict(level))
    return times, levels


def _thinned(times: list[datetime]) -> list[int]:
    if len(times) <= SERIES_POINTS_MAX:
        return list(range(len(times)))
    span = (times[-1] - times[0]) / SERIES_POINTS_MAX
    keep, due = [], times[0]
    for index, moment in enumerate(times):
        if moment >= due or index == len(times) - 1:
            keep.append(index)
            due = moment + span
    return keep


def reading_gaps(
    *, scope: Scope, since: datetime, until: datetime, cluster: str
) -> tuple[tuple[datetime, datetime], ...]:
    """Return spans between good polls that are longer than what makes a cluster stale.

    Only for one cluster: over several, what one reads hides what another misses.
    """
    if not cluster:
        return ()
    longest = timedelta(seconds=settings.GANGDASH_POLL_SECONDS * STALE_POLLS)
    runs = PollRun.objects.filter(scope.cluster_filter(cluster_field="cluster__name"), cluster__name=cluster)
    good = runs.filter(outcome__in=[PollOutcome.READ, PollOutcome.PARTIAL], ended_at__range=(since, until))
    moments = list(good.order_by("ended_at").annotate(moment=F("ended_at")).values_list("moment", flat=True))
    pairs = itertools.pairwise(moments)
    return tuple((before, after) for before, after in pairs if after - before > longest)
