"""Records of volumes, claims on them and storage classes, as far as placement depends on them."""

from __future__ import annotations

from gangdash.kube.records.base import Amounts, LabelSelector, NodeSelector, Part, Quantity, Record


class ClaimResources(Part):
    requests: Amounts | None = None


class PersistentVolumeClaimSpec(Part):
    volume_name: str | None = None
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] | None = None
    resources: ClaimResources | None = None
    selector: LabelSelector | None = None
    volume_mode: str | None = None


class Phase(Part):
    phase: str | None = None


class PersistentVolumeClaim(Record):
    spec: PersistentVolumeClaimSpec | None = None
    status: Phase | None = None


class ClaimRef(Part):
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class VolumeNodeAffinity(Part):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Part):
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] | None = None
    capacity: Amounts | None = None
    claim_ref: ClaimRef | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_mode: str | None = None


class PersistentVolume(Record):
    spec: PersistentVolumeSpec | None = None
    status: Phase | None = None


class TopologyExpression(Part):
    key: str
    values: tuple[str, ...] | None = None


class TopologyTerm(Part):
    match_label_expressions: tuple[TopologyExpression, ...] | None = None


class StorageClass(Record):
    provisioner: str | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologyTerm, ...] | None = None


class CSIDriverSpec(Part):
    storage_capacity: bool | None = None


class CSIDriver(Record):
    spec: CSIDriverSpec | None = None


class CSIStorageCapacity(Record):
    storage_class_name: str | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None
