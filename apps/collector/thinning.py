"""What stays of the history of nodes, parts and capacity: everything for a while, then less, then nothing.

The newest row of each subject stays however old it is: it is the state that the next reading is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Max

from apps.clusters.models import Cluster
from apps.inventory.models import CapacitySample, StateChange

BATCH = 500
STATE_CHANGES_MAX = 50_000
"""Per cluster; a node that flaps with each poll makes some 6,000 a day."""
ALL_FOR = timedelta(days=1)
"""How long every sample is kept; one of each hour after that."""


def states_prune(*, now: datetime) -> int:
    """Delete old changes of nodes and parts, and the oldest beyond the number; return how many."""
    return sum(_states_prune(cluster, _before(now)) for cluster in Cluster.objects.all())


def _states_prune(cluster: Cluster, before: datetime) -> int:
    rows = StateChange.objects.filter(cluster=cluster)
    newest = rows.order_by().values("kind", "subject").annotate(newest=Max("pk"))
    standing = set(newest.values_list("newest", flat=True))
    past = [row for row in rows.order_by("-at", "-pk").values_list("pk", "at") if row[0] not in standing]
    drop = [pk for number, (pk, at) in enumerate(past) if at < before or number >= STATE_CHANGES_MAX]
    for part in _batches(drop):
        StateChange.objects.filter(pk__in=part).delete()
    return len(drop)


def capacity_thin(*, now: datetime) -> int:
    """Delete old samples, and of those before the last day all but the first of each hour; return how many."""
    return sum(_capacity_thin(cluster, now) for cluster in Cluster.objects.all())


def _capacity_thin(cluster: Cluster, now: datetime) -> int:
    rows = CapacitySample.objects.filter(cluster=cluster, at__lt=now - ALL_FOR).order_by("at")
    hours: set[datetime] = set()
    drop = []
    for pk, at in rows.values_list("pk", "at"):
        hour = at.replace(minute=0, second=0, microsecond=0)
        if at < _before(now) or hour in hours:
            drop.append(pk)
        hours.add(hour)
    for part in _batches(drop):
        CapacitySample.objects.filter(pk__in=part).delete()
    return len(drop)


def _before(now: datetime) -> datetime:
    return now - timedelta(days=settings.GANGDASH_KEEP_HISTORY_DAYS)


def _batches(items: Sequence[int]) -> Iterable[Sequence[int]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))
