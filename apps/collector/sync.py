"""Brings the rows of one cluster to what a reading says: writes what changed, removes what is gone, leaves the rest.

Each row carries the fingerprint of its facts, so finding the changed ones is one read of two columns. A kind that
was not read is left alone: not being able to look is not the same as there being none.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction

from apps.clusters.models import Cluster
from apps.collector import rows
from apps.inventory.models import Domain, Node, NodeFilter, Queue, Topology
from apps.workloads.models import Gang, Pod

BATCH = 500
PODGROUP = "PodGroup"
POD_NUMBERS = frozenset({
    "pods_total", "pods_placed", "pods_waiting", "gpus", "gpus_waiting", "shape", "is_running", "node_filter",
})  # fmt: skip
GANG_FACTS = (
    "namespace", "name", "queue", "priority_class", "preemptibility", "min_member", "topology", "required_level",
    "preferred_level", "created_at", "fingerprint", "last_seen_at", "gone_at", "last_ran_at", *sorted(POD_NUMBERS),
)  # fmt: skip
_NOT_FACTS = frozenset({"id", "cluster", "cycle", "cycle_as_of"})

Row = TypeVar("Row", Node, Queue, Topology, Domain, Pod, NodeFilter)


@transaction.atomic
def rows_sync(*, cluster: Cluster, found: rows.FoundRows, now: datetime) -> int:
    """Write a reading's nodes, queues, topologies, gangs and pods; return how many rows were written."""
    written = 0
    if found.queues is not None:
        written += _sync(cluster, Queue, ("name",), found.queues)
    if found.nodes is not None:
        written += _sync(cluster, Node, ("name",), found.nodes)
    if found.topologies is not None:
        written += _sync(cluster, Topology, ("name",), found.topologies)
    if found.domains is not None:
        written += _sync(cluster, Domain, ("topology", "path"), found.domains)
    if found.filters is not None:
        written += _sync(cluster, NodeFilter, ("key",), found.filters)
    if found.gangs is not None:
        written += _sync_gangs(cluster, found.gangs, now)
    if found.pods is not None:
        written += _sync_pods(cluster, found.pods, found.members)
    return written


def _sync_gangs(cluster: Cluster, found: Mapping[str, Gang], now: datetime) -> int:
    """Write PodGroups as gangs; one that is gone stays and says since when."""
    known = {gang.uid: gang for gang in Gang.objects.filter(cluster=cluster, uid__in=list(found))}
    changed = []
    for uid, row in found.items():
        before = known.get(uid)
        if before is None or before.fingerprint != row.fingerprint or before.gone_at is not None:
            changed.append(_gang_after(row, before, cluster, now))
    Gang.objects.bulk_create(
        changed, BATCH, update_conflicts=True, unique_fields=["cluster", "uid"], update_fields=GANG_FACTS
    )
    present = Gang.objects.filter(cluster=cluster, kind=PODGROUP, gone_at=None)
    gone = set(present.values_list("uid", flat=True)) - found.keys()
    for part in _batches(sorted(gone)):
        Gang.objects.filter(cluster=cluster, uid__in=part).update(gone_at=now, last_seen_at=cluster.read_as_of or now)
    return len(changed) + len(gone)


def _gang_after(row: Gang, before: Gang | None, cluster: Cluster, now: datetime) -> Gang:
    """Return the row to write: facts of this reading, memory of the ones before."""
    row.cluster, row.first_seen_at, row.last_seen_at, row.gone_at = cluster, now, now, None
    if before is None:
        return row
    if row.pods_total is None:
        for field in POD_NUMBERS:
            setattr(row, field, getattr(before, field))
    has_stopped = before.is_running and not row.is_running
    row.last_ran_at = now if has_stopped else before.last_ran_at
    return row


def _sync_pods(cluster: Cluster, found: Mapping[str, Pod], members: Mapping[str, str]) -> int:
    present = Gang.objects.filter(cluster=cluster, kind=PODGROUP, gone_at=None)
    gangs = {(namespace, name): pk for pk, namespace, name in present.values_list("pk", "namespace", "name")}
    for uid, row in found.items():
        row.gang_id = gangs.get((row.namespace, members[uid]))
        # A pod may be there before its PodGroup, so its gang is part of what can change.
        row.fingerprint = rows.fingerprint(row.fingerprint, row.gang_id)
    return _sync(cluster, Pod, ("uid",), found)


def _sync(cluster: Cluster, model: type[Row], key: tuple[str, ...], found: Mapping[Any, Row]) -> int:
    """Make the cluster's rows of one model equal to ``found``; ``key`` names the fields that identify a row."""
    stored: dict[Hashable, str] = {}
    stored_keys: dict[Hashable, int] = {}
    for pk, mark, *parts in model.objects.filter(cluster=cluster).order_by().values_list("pk", "fingerprint", *key):
        identity = parts[0] if len(parts) == 1 else tuple(parts)
        stored[identity], stored_keys[identity] = mark, pk
    changed = [row for identity, row in found.items() if stored.get(identity) != row.fingerprint]
    for row in changed:
        row.cluster = cluster
    columns = [field.name for field in model._meta.concrete_fields]  # noqa: SLF001 - Django's public API
    facts = [name for name in columns if name not in {*_NOT_FACTS, *key}]
    model.objects.bulk_create(
        changed, BATCH, update_conflicts=True, unique_fields=["cluster", *key], update_fields=facts
    )
    gone = [pk for identity, pk in stored_keys.items() if identity not in found]
    for part in _batches(gone):
        model.objects.filter(pk__in=part).delete()
    return len(changed) + len(gone)


def _batches(items: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))
