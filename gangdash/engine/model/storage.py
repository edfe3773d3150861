"""Volumes and claims on them, as far as placement depends on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gangdash.engine.model.meta import Meta
from gangdash.engine.model.selectors import LabelSelector, NodeSelectorTerm


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim:
    """``storage_class`` is ``None`` when unset (the default class applies), empty for none."""

    meta: Meta
    phase: str = ""
    volume_name: str = ""
    storage_class: str | None = None
    access_modes: tuple[str, ...] = ()
    requested_bytes: int | None = None
    selector: LabelSelector | None = None
    volume_mode: str = ""


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """``node_terms`` is ``None`` when the volume has no node affinity."""

    meta: Meta
    phase: str = ""
    storage_class: str = ""
    access_modes: tuple[str, ...] = ()
    capacity_bytes: int | None = None
    claim_key: str = ""
    """``namespace/name`` of the claim it is bound or reserved to."""
    claim_uid: str = ""
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    volume_mode: str = ""


@dataclass(frozen=True, slots=True)
class StorageClass:
    meta: Meta
    provisioner: str = ""
    binding_mode: str = "Immediate"
    allowed_topologies: tuple[NodeSelectorTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class CSIDriver:
    meta: Meta
    storage_capacity: bool = False


@dataclass(frozen=True, slots=True)
class CSIStorageCapacity:
    meta: Meta
    storage_class: str = ""
    capacity_bytes: int | None = None
    maximum_volume_bytes: int | None = None
    node_selector: LabelSelector | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
