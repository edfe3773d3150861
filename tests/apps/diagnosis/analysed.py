"""An analysed moment of a cluster, stored as a poll and an analysis store it."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from apps.clusters.models import Cluster
from apps.collector.packing import packed
from apps.collector.services import found_of, reading_store
from apps.diagnosis import tasks
from apps.diagnosis.models import Snapshot
from gangdash.snapshot.archive import load_bytes, snapshot_of
from tests.apps import raw

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
READ = ["BindRequest", "Event", "Node", "Pod", "PodGroup", "PriorityClass", "Queue", "Topology"]


def busy_cluster() -> list[raw.Object]:
    """Return two nodes of 8 GPUs, one cordoned: one gang runs, each of two namespaces has one that waits."""
    held = raw.gang("runs", gpus=8, on="n1")
    mine = raw.gang("mine", gpus=8)
    theirs = [raw.podgroup("theirs", namespace="team-b"), raw.pod("theirs-0", "theirs", namespace="team-b", gpus=8)]
    queues = [raw.queue("top"), raw.queue("leaf", parent="top")]
    return [raw.node("n1"), raw.node("n2", cordoned=True), *queues, *held, *mine, *theirs]


def analysed(cluster: Cluster, objects: list[raw.Object], moment: datetime = NOW) -> Snapshot:
    """Store the objects as read at the moment, analyse them, and return what was analysed."""
    dump = msgspec.json.encode({"kind": "List", "apiVersion": "v1", "items": objects, "read": READ})
    reading = load_bytes(dump, name=cluster.name, as_of=moment)
    snapshot = snapshot_of(reading)
    content = packed(reading, snapshot)
    reading_store(cluster=cluster, found=found_of(snapshot), content=content, as_of=moment)
    Cluster.objects.filter(pk=cluster.pk).update(read_as_of=moment)
    tasks.diagnose_cluster(cluster.pk)
    return Snapshot.objects.get(cluster=cluster, as_of=moment)
