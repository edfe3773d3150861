"""Reading -> ``ClusterSnapshot``: each record becomes a fact, what means nothing is left out and named.

Relies on the adapters for single objects. Leaves out all joining of objects: which pod belongs to which
gang is a rule, not a fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, TypeVar

from gangdash.engine.model.cluster import ClusterSnapshot, GangHistory, NotRead, Oddity
from gangdash.engine.model.config import Shard
from gangdash.engine.model.deadlines import Deadlines
from gangdash.kube import kinds
from gangdash.kube.reading import BadObject, Reading
from gangdash.kube.records.base import Record
from gangdash.snapshot.adapters import core, dra, kai, observed, pods, scheduler, storage
from gangdash.snapshot.adapters.common import FieldError, meta, time

R = TypeVar("R", bound=Record)
T = TypeVar("T")


def build_snapshot(reading: Reading) -> ClusterSnapshot:
    """Return the reading as facts; the reading itself is not changed."""
    facts = _Facts(reading)
    return ClusterSnapshot(
        as_of=reading.as_of.timestamp(),
        name=reading.name,
        source=reading.source,
        shards=_shards(facts),
        nodes=facts.all("Node", core.node),
        pods=facts.all("Pod", pods.pod),
        podgroups=facts.all("PodGroup", kai.podgroup),
        queues=facts.all("Queue", kai.queue),
        bind_requests=facts.all("BindRequest", kai.bind_request),
        priority_classes=facts.all("PriorityClass", core.priority_class),
        topologies=facts.all("Topology", kai.topology),
        config_maps=frozenset(m.key for m in facts.all("ConfigMap", _meta)),
        volume_claims=facts.all("PersistentVolumeClaim", storage.volume_claim),
        volumes=facts.all("PersistentVolume", storage.volume),
        storage_classes=facts.all("StorageClass", storage.storage_class),
        csi_drivers=facts.all("CSIDriver", storage.csi_driver),
        csi_capacities=facts.all("CSIStorageCapacity", storage.csi_capacity),
        resource_claims=facts.all("ResourceClaim", dra.resource_claim),
        resource_slices=facts.all("ResourceSlice", dra.resource_slice),
        device_classes=facts.all("DeviceClass", dra.device_class),
        namespaces=facts.all("Namespace", _meta),
        events=facts.all("Event", core.event),
        objects={k.name: facts.all(k.name, observed.observed) for k in kinds.KINDS if k.is_observed and facts.has(k)},
        history={
            uid: GangHistory(
                time(h.placeable_since), time(h.last_ran), h.last_verdict, tuple(e.timestamp() for e in h.evictions)
            )
            for uid, h in reading.history.items()
        },
        deadlines=_deadlines(reading),
        read=frozenset(reading.items.keys() - reading.not_read.keys()),
        not_read=tuple(NotRead(kind, reason) for kind, reason in sorted(reading.not_read.items())),
        oddities=tuple(Oddity(o.object, o.field, o.problem) for o in (*reading.oddities, *facts.oddities)),
        unknown_kinds=tuple(reading.unknown_kinds),
    )


def _deadlines(reading: Reading) -> Deadlines:
    """Return how long each controller may take; a step that nobody knows is a mistake worth telling."""
    known = {field.name for field in fields(Deadlines)}
    for name in reading.deadlines.keys() - known:
        raise FieldError(f"deadlines.{name}", f"not a step of a controller; known are {', '.join(sorted(known))}")
    return Deadlines(**reading.deadlines)


def _meta(record: Record) -> Any:
    return meta(record.metadata)


def _shards(facts: _Facts) -> tuple[Shard, ...]:
    file = facts.reading.scheduler
    if file is not None:
        return (scheduler.shard_from_file(file),)
    objects = scheduler.SchedulerObjects(
        shards=facts.records("SchedulingShard"),
        configs=facts.records("Config"),
        config_maps=facts.records("ConfigMap"),
        deployments=facts.records("Deployment"),
    )
    return scheduler.shards_from_objects(objects, facts.report)


class _Facts:
    """Adapts the records of a reading and collects what had to be left out."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.oddities: list[BadObject] = []

    def has(self, kind: kinds.Kind) -> bool:
        return kind.name in self.reading.items

    def records(self, kind: str) -> tuple[Any, ...]:
        return tuple(self.reading.items.get(kind, ()))

    def all(self, kind: str, adapt: Callable[[Any], T]) -> tuple[T, ...]:
        return tuple(self._adapted(self._unique(self.records(kind)), adapt))

    def _adapted(self, records: Iterable[Record], adapt: Callable[[Any], T]) -> Iterable[T]:
        for record in records:
            try:
                yield adapt(record)
            except FieldError as err:
                self.report(label(record), err)

    def report(self, object_: str, err: FieldError) -> None:
        self.oddities.append(BadObject(object_, err.field, err.problem))

    def _unique(self, records: Iterable[Record]) -> Iterable[Record]:
        seen: set[tuple[str | None, str]] = set()
        for record in records:
            key = (record.metadata.namespace, record.metadata.name)
            if key not in seen:
                yield record
            elif record.kind != "Event":
                # Both event APIs serve the same events, so there a second one is no surprise.
                self.oddities.append(BadObject(label(record), "metadata.name", "given twice: the first one counts"))
            seen.add(key)


def label(record: Record) -> str:
    """Return ``Kind/namespace/name``."""
    parts = (record.kind, record.metadata.namespace, record.metadata.name)
    return "/".join(p for p in parts if p)
