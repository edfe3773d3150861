"""One consistent reading of a cluster: the only input of the engine.

``read`` and ``not_read`` keep apart "there are none" and "could not be told"; ``oddities`` names
objects that were left out or fields that made no sense. Everything is immutable and hashable by
``digest``; two snapshots with the same content in another order have the same digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gangdash.engine.model.config import Shard
from gangdash.engine.model.deadlines import Deadlines
from gangdash.engine.model.dra import DeviceClass, ResourceClaim, ResourceSlice
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.node import Node
from gangdash.engine.model.observed import Event, ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import BindRequest, PodGroup
from gangdash.engine.model.queue import PriorityClass, Queue
from gangdash.engine.model.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from gangdash.engine.model.topology import Topology


@dataclass(frozen=True, slots=True)
class NotRead:
    """A kind that could not be read, and why (``403``, ``not served``, ``not in the dump``, ...)."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Oddity:
    """A field or object that was left out: ``object`` is ``Kind/namespace/name``."""

    object: str
    field: str
    problem: str


@dataclass(frozen=True, slots=True)
class GangHistory:
    """What was known before this reading, per gang uid; times in epoch seconds."""

    placeable_since: float | None = None
    last_ran: float | None = None
    last_verdict: str = ""
    evictions: tuple[float, ...] = ()
    """The newest times that it, or an attempt at the same thing before it, lost its nodes; oldest first."""


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """All lists are in the order read; rules that depend on order sort for themselves."""

    as_of: float
    name: str = ""
    source: str = "dump"
    """``live``, ``kai`` (a scheduler snapshot) or ``dump``."""
    shards: tuple[Shard, ...] = (Shard(),)
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    podgroups: tuple[PodGroup, ...] = ()
    queues: tuple[Queue, ...] = ()
    bind_requests: tuple[BindRequest, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    topologies: tuple[Topology, ...] = ()
    config_maps: frozenset[str] = frozenset()
    """``namespace/name`` of the ConfigMaps that exist; contents are never read."""
    volume_claims: tuple[PersistentVolumeClaim, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    csi_drivers: tuple[CSIDriver, ...] = ()
    csi_capacities: tuple[CSIStorageCapacity, ...] = ()
    resource_claims: tuple[ResourceClaim, ...] = ()
    resource_slices: tuple[ResourceSlice, ...] = ()
    device_classes: tuple[DeviceClass, ...] = ()
    namespaces: tuple[Meta, ...] = ()
    events: tuple[Event, ...] = ()
    objects: Mapping[str, tuple[ObservedObject, ...]] = field(default_factory=dict)
    """Observed kinds by kind name."""
    history: Mapping[str, GangHistory] = field(default_factory=dict)
    deadlines: Deadlines = field(default_factory=Deadlines)
    read: frozenset[str] = frozenset()
    """Kinds that were read, empty or not."""
    not_read: tuple[NotRead, ...] = ()
    oddities: tuple[Oddity, ...] = ()
    unknown_kinds: tuple[str, ...] = ()
    """Kinds found in a dump that nothing here understands."""

    def was_read(self, kind: str) -> bool:
        return kind in self.read
