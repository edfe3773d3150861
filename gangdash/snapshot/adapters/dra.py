"""Claims, slices and device classes as facts (resource.k8s.io v1, v1beta2, v1beta1)."""

from __future__ import annotations

from gangdash.engine.model import dra as model
from gangdash.kube.records import base, dra
from gangdash.snapshot.adapters.common import meta, node_terms, whole


def resource_claim(record: dra.ResourceClaim) -> model.ResourceClaim:
    devices = (record.spec.devices if record.spec else None) or dra.DeviceClaim()
    status = record.status or dra.ResourceClaimStatus()
    allocation = status.allocation
    return model.ResourceClaim(
        meta=meta(record.metadata),
        requests=tuple(_request(r) for r in devices.requests or ()),
        constraints=tuple(
            model.DeviceConstraint(c.requests or (), c.match_attribute or "") for c in devices.constraints or ()
        ),
        allocated=None if allocation is None else _allocated(allocation),
        allocation_terms=node_terms(allocation.node_selector) if allocation else None,
        reserved_for=tuple(_consumer(c) for c in status.reserved_for or ()),
        reserved_uids=tuple(c.uid or "" for c in status.reserved_for or ()),
    )


def _consumer(record: dra.Consumer) -> str:
    return record.name if record.resource in {"pods", None} else f"{record.resource}/{record.name}"


def _allocated(record: dra.Allocation) -> tuple[model.AllocatedDevice, ...]:
    results = record.devices.results if record.devices else None
    return tuple(model.AllocatedDevice(r.request, r.driver, r.pool, r.device) for r in results or ())


def _request(record: dra.DeviceRequest) -> model.DeviceRequest:
    """A request is exact (fields under ``exactly``, before v1beta2 beside the name) or a list of alternatives."""
    alternatives = tuple(_exact(a.name, a) for a in record.first_available or ())
    if alternatives:
        return model.DeviceRequest(name=record.name, alternatives=alternatives)
    return _exact(record.name, record.exactly or record)


def _exact(name: str, record: dra.ExactRequest) -> model.DeviceRequest:
    return model.DeviceRequest(
        name=name,
        device_class=record.device_class_name or "",
        mode=record.allocation_mode or "",
        count=record.count,
        selectors=_expressions(record.selectors),
        admin_access=bool(record.admin_access),
        tolerations=tuple(_toleration(t) for t in record.tolerations or ()),
    )


def _expressions(selectors: tuple[dra.DeviceSelector, ...] | None) -> tuple[str, ...]:
    return tuple(s.cel.expression for s in selectors or () if s.cel)


def _toleration(record: base.Toleration) -> str:
    return f"{record.key or ''}={record.value or ''}:{record.effect or ''}"


def resource_slice(record: dra.ResourceSlice) -> model.ResourceSlice:
    spec = record.spec or dra.ResourceSliceSpec()
    pool = spec.pool or dra.Pool()
    return model.ResourceSlice(
        meta=meta(record.metadata),
        driver=spec.driver,
        pool=pool.name,
        pool_generation=pool.generation,
        slice_count=pool.resource_slice_count,
        node_name=spec.node_name or "",
        all_nodes=bool(spec.all_nodes),
        node_terms=node_terms(spec.node_selector),
        devices=tuple(_device(d) for d in spec.devices or ()),
    )


def _device(record: dra.Device) -> model.Device:
    details = record.basic or record
    return model.Device(
        name=record.name,
        attributes={k: v for k, a in (details.attributes or {}).items() if (v := _attribute(a)) is not None},
        capacity={k: n for k, c in (details.capacity or {}).items() if (n := _capacity(k, c)) is not None},
        taints=tuple(f"{t.key}={t.value or ''}:{t.effect}" for t in details.taints or ()),
    )


def _attribute(record: dra.Attribute) -> model.AttributeValue | None:
    values = (record.int_, record.bool_, record.string, record.version)
    return next((v for v in values if v is not None), None)


def _capacity(name: str, record: dra.DeviceCapacity | base.Quantity) -> int | None:
    value = record.value if isinstance(record, dra.DeviceCapacity) else record
    return whole(value, f"spec.devices.capacity.{name}")


def device_class(record: dra.DeviceClass) -> model.DeviceClass:
    spec = record.spec or dra.DeviceClassSpec()
    return model.DeviceClass(meta(record.metadata), _expressions(spec.selectors), spec.extended_resource_name or "")
