"""What is kept of alerts and for how long; may run at any time, twice, or not at all for a while."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet

from apps.alerts.models import Alert, Mute, Observation
from apps.clusters.models import Cluster

OBSERVATIONS_MAX = 100_000
"""Closed ones of one cluster: a scheduler that speaks and falls silent all the time must not fill the disk."""
BATCH = 500


def alerts_prune(*, now: datetime) -> int:
    """Delete alerts, mutes and observations that ended long ago, and return how many rows that were."""
    before = now - timedelta(days=settings.GANGDASH_KEEP_HISTORY_DAYS)
    deleted = Alert.objects.filter(resolved_at__lt=before).delete()[0]
    deleted += Mute.objects.filter(ends_at__lt=before).delete()[0]
    deleted += Observation.objects.filter(closed_at__lt=before).delete()[0]
    for cluster in Cluster.objects.all():
        deleted += _trim(Observation.objects.filter(cluster=cluster).exclude(closed_at=None).order_by("-closed_at"))
    return deleted


def _trim(rows: QuerySet[Observation]) -> int:
    keys = list(rows.values_list("pk", flat=True)[OBSERVATIONS_MAX:])
    for start in range(0, len(keys), BATCH):
        Observation.objects.filter(pk__in=keys[start : start + BATCH]).delete()
    return len(keys)
