"""What is kept and for how long; everything here may run at any time, twice, or not at all for a while.

Kept while they are needed: the newest reading, the one under analysis, and those that current explanations came from.
Kept for a time: the dump of each moment at which some reason changed, timelines, the rows of gone gangs.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q

from apps.clusters.models import Cluster
from apps.collector.models import Reading
from apps.collector.selectors import reading_newest
from apps.diagnosis.choices import AnalysisOutcome, UploadState
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline, Snapshot, Upload
from apps.workloads.models import Gang


def readings_prune(*, cluster: Cluster, before: datetime | None = None) -> int:
    """Delete readings that no explanation rests on, and with ``before`` also those of old changes; return how many."""
    newest = reading_newest(cluster=cluster)
    needed = ExplanationRecord.objects.filter(snapshot__cluster=cluster)
    needed = needed.filter(is_current=True) if before else needed.filter(Q(is_current=True) | Q(opens_timeline=True))
    running = Snapshot.objects.filter(cluster=cluster, outcome=AnalysisOutcome.RUNNING)
    failed = Snapshot.objects.filter(cluster=cluster, outcome=AnalysisOutcome.FAILED).order_by("-as_of")[:1]
    keep = {newest.pk} if newest else set()
    for snapshots in (running, failed):
        keep |= set(snapshots.values_list("reading", flat=True))
    keep |= set(needed.values_list("snapshot__reading", flat=True))
    old = Reading.objects.filter(cluster=cluster).exclude(pk__in=keep - {None})
    # A reading that nobody has taken yet belongs to the collector.
    old = old.filter(as_of__lt=before) if before else old.exclude(claimed_at=None)
    deleted, _by_model = old.delete()
    return deleted


def dumps_prune(*, now: datetime) -> int:
    """Delete the dumps of moments that are older than the settings say; the explanations stay."""
    before = now - timedelta(hours=settings.GANGDASH_KEEP_SNAPSHOT_HOURS)
    return sum(readings_prune(cluster=cluster, before=before) for cluster in Cluster.objects.all())


def history_prune(*, now: datetime) -> int:
    """Delete gangs that have been gone for long, closed timeline rows, and analysed moments that nothing rests on."""
    before = now - timedelta(days=settings.GANGDASH_KEEP_HISTORY_DAYS)
    deleted = Gang.objects.filter(gone_at__lt=before).delete()[0]
    deleted += ReasonTimeline.objects.filter(closed_at__lt=before).delete()[0]
    deleted += ExplanationRecord.objects.filter(is_current=False, snapshot__as_of__lt=before).delete()[0]
    return deleted + Snapshot.objects.filter(explanations=None, as_of__lt=_moments_before(now)).delete()[0]


def uploads_prune(*, now: datetime) -> int:
    """Delete uploads after their time, and the content of those that are done."""
    before = now - timedelta(hours=settings.GANGDASH_KEEP_UPLOAD_HOURS)
    Upload.objects.exclude(state=UploadState.WAITING).exclude(packed=b"").update(packed=b"")
    return Upload.objects.filter(created_at__lt=before).delete()[0]


def _moments_before(now: datetime) -> datetime:
    """An analysed moment with no explanation left is only a line in the health page's record of analyses."""
    return now - timedelta(days=settings.GANGDASH_KEEP_POLL_DAYS)
