"""A cluster whose readings are stored without an API server in between."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest

from apps.clusters.models import Cluster
from apps.collector.packing import packed
from apps.collector.services import found_of, reading_is_known, reading_store
from gangdash.snapshot.archive import load_bytes, snapshot_of
from tests.apps.raw import Object

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
READ = ["BindRequest", "Event", "Node", "Pod", "PodGroup", "PriorityClass", "Queue", "Topology"]

Store = Callable[[list[Object], datetime], None]


@pytest.fixture
def east(db: None) -> Cluster:
    return Cluster.objects.create(name="east", source="folder")


@pytest.fixture
def store(east: Cluster) -> Store:
    """Return a function that stores these objects as what the cluster east was read to have at a moment."""

    def put(objects: list[Object], moment: datetime) -> None:
        dump = msgspec.json.encode({"kind": "List", "apiVersion": "v1", "items": objects, "read": READ})
        reading = load_bytes(dump, name="east", as_of=moment)
        snapshot = snapshot_of(reading)
        content = packed(reading, snapshot)
        found = None if reading_is_known(cluster=east, content=content) else found_of(snapshot)
        reading_store(cluster=east, found=found, content=content, as_of=moment)
        Cluster.objects.filter(pk=east.pk).update(read_as_of=moment)

    return put
