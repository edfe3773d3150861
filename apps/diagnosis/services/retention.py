"""What is kept and for how long; everything here may run at any time, twice, or not at all for a while.

Kept while they are needed: the newest reading, the one under analysis, and those that current explanations came from.
Kept up to an age and a size: objects of past moments for replays, timelines, explanations, the rows of gone gangs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from apps.clusters.models import Cluster
from apps.collector.models import Reading
from apps.collector.selectors import reading_newest
from apps.collector.services import contents_prune
from apps.diagnosis.choices import AnalysisOutcome, UploadState
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline, Snapshot, Upload
from apps.workloads.models import Gang

BATCH = 500
MINUTES_FOR = timedelta(days=1)
"""How long one reading of each minute is kept; of each hour after that."""
GONE_GANGS_MAX = 50_000
TIMELINE_ROWS_MAX = 200_000
EXPLANATIONS_MAX = 20_000
"""Past explanations of one cluster, some 5 kB each."""


def readings_prune(*, cluster: Cluster, now: datetime) -> int:
    """Delete readings that are too old, too many or too large, oldest first, and return how many.

    One of each minute of the last day stays, one of each hour before that, and those at which some reason changed.
    A content that several of them have counts once.
    """
    readings = Reading.objects.filter(cluster=cluster).order_by("-as_of", "-pk")
    needed, changes = _needed(cluster), _changes(cluster)
    left = settings.GANGDASH_KEEP_SNAPSHOT_MEGABYTES * 10**6
    before = now - timedelta(hours=settings.GANGDASH_KEEP_SNAPSHOT_HOURS)
    slots: set[datetime] = set()
    contents: set[str] = set()
    drop = []
    for pk, as_of, key, packed_bytes in readings.values_list("pk", "as_of", "content_key", "packed_bytes"):
        size = 0 if key in contents else packed_bytes
        is_wanted = as_of >= before and size <= left and (pk in changes or _slot(as_of, now) not in slots)
        if pk in needed or is_wanted:
            slots.add(_slot(as_of, now))
            contents.add(key)
            left -= size
        else:
            drop.append(pk)
    for part in _batches(drop):
        Reading.objects.filter(pk__in=part).delete()
    if drop:
        contents_prune(cluster=cluster)
    return len(drop)


def _slot(moment: datetime, now: datetime) -> datetime:
    """Return the minute, or before the last day the hour, of which one reading is kept."""
    minute = moment.replace(second=0, microsecond=0)
    return minute if now - moment < MINUTES_FOR else minute.replace(minute=0)


def _needed(cluster: Cluster) -> set[int | None]:
    """Return the newest reading, those being analysed, and those that answers about now rest on."""
    newest = reading_newest(cluster=cluster)
    running = Snapshot.objects.filter(cluster=cluster, outcome=AnalysisOutcome.RUNNING)
    failed = Snapshot.objects.filter(cluster=cluster, outcome=AnalysisOutcome.FAILED).order_by("-as_of")[:1]
    found: set[int | None] = {newest.pk} if newest else set()
    for snapshots in (running, failed):
        found |= set(snapshots.values_list("reading", flat=True))
    current = ExplanationRecord.objects.filter(snapshot__cluster=cluster, is_current=True, gang__gone_at=None)
    moments = Snapshot.objects.filter(pk__in=current.order_by().values("snapshot"))
    return found | set(moments.values_list("reading", flat=True))


def _changes(cluster: Cluster) -> set[int | None]:
    """Return the readings at which some reason changed."""
    records = ExplanationRecord.objects.filter(snapshot__cluster=cluster, opens_timeline=True)
    moments = Snapshot.objects.filter(pk__in=records.order_by().values("snapshot"))
    return set(moments.values_list("reading", flat=True))


def dumps_prune(*, now: datetime) -> int:
    """Delete what is kept of the clusters' objects beyond age, number and size; the explanations stay."""
    deleted = sum(readings_prune(cluster=cluster, now=now) for cluster in Cluster.objects.all())
    # What was known before a moment is only good for replaying it.
    Snapshot.objects.filter(reading=None).exclude(outcome=AnalysisOutcome.RUNNING).exclude(history={}).update(
        history={}
    )
    return deleted


def history_prune(*, now: datetime) -> int:
    """Delete gangs that have been gone for long, closed timeline rows, and analysed moments that nothing rests on.

    Each has a number beside its age, so that a cluster in a loop cannot fill the disk within the time.
    """
    before = now - timedelta(days=settings.GANGDASH_KEEP_HISTORY_DAYS)
    deleted = 0
    for cluster in Cluster.objects.all():
        gone = Gang.objects.filter(cluster=cluster).exclude(gone_at=None).order_by("-gone_at", "-pk")
        closed = ReasonTimeline.objects.filter(gang__cluster=cluster).exclude(closed_at=None)
        past = ExplanationRecord.objects.filter(snapshot__cluster=cluster, is_current=False)
        deleted += _trim(gone, GONE_GANGS_MAX, gone_at__lt=before)
        deleted += _trim(closed.order_by("-closed_at", "-pk"), TIMELINE_ROWS_MAX, closed_at__lt=before)
        deleted += _trim(past.order_by("-snapshot__as_of", "-pk"), EXPLANATIONS_MAX, snapshot__as_of__lt=before)
    return deleted + Snapshot.objects.filter(explanations=None, as_of__lt=_moments_before(now)).delete()[0]


def _trim(rows: QuerySet[Any], most: int, **is_old: datetime) -> int:
    """Delete the rows that are old and those beyond a number; ``rows`` are ordered, the ones to keep first."""
    deleted = rows.order_by().filter(**is_old).delete()[0]
    for part in _batches(list(rows.values_list("pk", flat=True)[most:])):
        deleted += rows.model.objects.filter(pk__in=part).delete()[0]
    return deleted


def uploads_prune(*, now: datetime) -> int:
    """Delete uploads after their time, and the content of those that are done."""
    before = now - timedelta(hours=settings.GANGDASH_KEEP_UPLOAD_HOURS)
    Upload.objects.exclude(state=UploadState.WAITING).exclude(packed=b"").update(packed=b"")
    return Upload.objects.filter(created_at__lt=before).delete()[0]


def _moments_before(now: datetime) -> datetime:
    """An analysed moment with no explanation left is only a line in the health page's record of analyses."""
    return now - timedelta(days=settings.GANGDASH_KEEP_POLL_DAYS)


def _batches(items: Sequence[int]) -> Iterable[Sequence[int]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))
