"""Volumes, claims and storage classes as facts (core API v1, storage.k8s.io/v1)."""

from __future__ import annotations

from gangdash.engine.model import storage as model
from gangdash.engine.model.selectors import NodeSelectorTerm, Requirement
from gangdash.kube.records import storage
from gangdash.snapshot.adapters.common import label_selector, meta, node_terms, whole


def volume_claim(record: storage.PersistentVolumeClaim) -> model.PersistentVolumeClaim:
    spec = record.spec or storage.PersistentVolumeClaimSpec()
    requests = (spec.resources.requests if spec.resources else None) or {}
    return model.PersistentVolumeClaim(
        meta=meta(record.metadata),
        phase=(record.status.phase if record.status else None) or "",
        volume_name=spec.volume_name or "",
        storage_class=spec.storage_class_name,
        access_modes=spec.access_modes or (),
        requested_bytes=whole(requests.get("storage"), "spec.resources.requests.storage"),
        selector=label_selector(spec.selector),
        volume_mode=spec.volume_mode or "",
    )


def volume(record: storage.PersistentVolume) -> model.PersistentVolume:
    spec = record.spec or storage.PersistentVolumeSpec()
    claim = spec.claim_ref or storage.ClaimRef()
    return model.PersistentVolume(
        meta=meta(record.metadata),
        phase=(record.status.phase if record.status else None) or "",
        storage_class=spec.storage_class_name or "",
        access_modes=spec.access_modes or (),
        capacity_bytes=whole((spec.capacity or {}).get("storage"), "spec.capacity.storage"),
        claim_key=f"{claim.namespace or ''}/{claim.name}" if claim.name else "",
        claim_uid=claim.uid or "",
        node_terms=node_terms(spec.node_affinity.required if spec.node_affinity else None),
        volume_mode=spec.volume_mode or "",
    )


def storage_class(record: storage.StorageClass) -> model.StorageClass:
    return model.StorageClass(
        meta=meta(record.metadata),
        provisioner=record.provisioner or "",
        binding_mode=record.volume_binding_mode or "Immediate",
        allowed_topologies=tuple(_topology_term(t) for t in record.allowed_topologies or ()),
    )


def _topology_term(record: storage.TopologyTerm) -> NodeSelectorTerm:
    expressions = record.match_label_expressions or ()
    return NodeSelectorTerm(match_expressions=tuple(Requirement(e.key, "In", e.values or ()) for e in expressions))


def csi_driver(record: storage.CSIDriver) -> model.CSIDriver:
    return model.CSIDriver(meta(record.metadata), bool(record.spec and record.spec.storage_capacity))


def csi_capacity(record: storage.CSIStorageCapacity) -> model.CSIStorageCapacity:
    return model.CSIStorageCapacity(
        meta=meta(record.metadata),
        storage_class=record.storage_class_name or "",
        capacity_bytes=whole(record.capacity, "capacity"),
        maximum_volume_bytes=whole(record.maximum_volume_size, "maximumVolumeSize"),
        node_selector=label_selector(record.node_topology),
    )
