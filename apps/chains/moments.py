"""How workloads stood before: a row for each stretch of time in which nothing about one changed.

Written in the transaction of the workloads' rows. Kept whole for a day, then one an hour, up to an age and a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from apps.chains.models import TopMoment, TopObject
from apps.clusters.models import Cluster

BATCH = 500
MOMENTS_MAX = 10_000
"""Per cluster; some 3 kB each."""
ALL_FOR = timedelta(days=1)
"""How long every moment is kept; of each workload one an hour after that."""
_IDENTITY = frozenset({"id", "cluster", "uid", "kind", "namespace", "name", "as_of", "fingerprint"})
_TIMES = ("created_at", "since")


def moments_record(*, cluster: Cluster, changed: Sequence[TopObject], gone: Iterable[str], as_of: datetime) -> None:
    """Close what ended and open what began; ``gone`` are uids."""
    ended = [*gone, *(row.uid for row in changed)]
    for start in range(0, len(ended), BATCH):
        open_ones = TopMoment.objects.filter(cluster=cluster, until=None, uid__in=ended[start : start + BATCH])
        open_ones.filter(since__lt=as_of).update(until=as_of)
        # The same moment read twice: what it said first was overtaken before anything could rest on it.
        open_ones.delete()
    TopMoment.objects.bulk_create([_moment(cluster, row, as_of) for row in changed], BATCH)


def _moment(cluster: Cluster, row: TopObject, as_of: datetime) -> TopMoment:
    names = (field.attname for field in TopObject._meta.concrete_fields if field.name not in _IDENTITY)  # noqa: SLF001
    facts = {name: _plain(getattr(row, name)) for name in names}
    identity = {name: getattr(row, name) for name in ("uid", "kind", "namespace", "name")}
    return TopMoment(cluster=cluster, since=as_of, facts=facts, **identity)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def top_then(moment: TopMoment) -> TopObject:
    """Return the workload as it was, never to be saved."""
    facts = dict(moment.facts)
    for name in _TIMES:
        facts[name] = datetime.fromisoformat(facts[name]) if facts.get(name) else None
    identity = {name: getattr(moment, name) for name in ("uid", "kind", "namespace", "name", "cluster")}
    return TopObject(as_of=moment.since, **identity, **facts)


def moments_prune(*, now: datetime) -> int:
    """Delete old moments, thin those before the last day, and cut the number; return how many were deleted."""
    return sum(_prune(cluster, now) for cluster in Cluster.objects.all())


def _prune(cluster: Cluster, now: datetime) -> int:
    rows = TopMoment.objects.filter(cluster=cluster).exclude(until=None)
    before = now - timedelta(days=settings.GANGDASH_KEEP_HISTORY_DAYS)
    deleted = rows.filter(until__lt=before).delete()[0]
    deleted += _thin(rows.filter(until__lt=now - ALL_FOR))
    surplus = list(rows.order_by("-until", "-pk").values_list("pk", flat=True)[MOMENTS_MAX:])
    return deleted + _delete(surplus)


def _thin(rows: Any) -> int:
    """Keep the first moment of each workload and hour, and let it last until the next one kept."""
    kept: TopMoment | None = None
    longer: dict[int, TopMoment] = {}
    drop: list[int] = []
    for row in rows.defer("facts").order_by("uid", "since"):
        if kept is not None and kept.uid == row.uid and kept.until == row.since and _hour(kept) == _hour(row):
            kept.until = row.until
            longer[kept.pk] = kept
            drop.append(row.pk)
        else:
            kept = row
    deleted = _delete(drop)
    TopMoment.objects.bulk_update(longer.values(), ["until"], BATCH)
    return deleted


def _hour(row: TopMoment) -> datetime:
    return row.since.replace(minute=0, second=0, microsecond=0)


def _delete(keys: Sequence[int]) -> int:
    for start in range(0, len(keys), BATCH):
        TopMoment.objects.filter(pk__in=keys[start : start + BATCH]).delete()
    return len(keys)
