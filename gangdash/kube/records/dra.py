"""Records of dynamic resource allocation: claims, slices of devices and device classes.

One shape reads resource.k8s.io/v1, v1beta2 and v1beta1: the last has the fields of ``exactly`` beside
the request's name and those of a device under ``basic``.
"""

from __future__ import annotations

import msgspec

from gangdash.kube.records.base import Int, NodeSelector, Part, Quantity, Record, Toleration


class CelSelector(Part):
    expression: str = ""


class DeviceSelector(Part):
    cel: CelSelector | None = None


class ExactRequest(Part):
    device_class_name: str | None = None
    allocation_mode: str | None = None
    count: Int | None = None
    selectors: tuple[DeviceSelector, ...] | None = None
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] | None = None


class SubRequest(ExactRequest):
    name: str = ""


class DeviceRequest(SubRequest):
    exactly: ExactRequest | None = None
    first_available: tuple[SubRequest, ...] | None = None


class DeviceConstraint(Part):
    requests: tuple[str, ...] | None = None
    match_attribute: str | None = None


class DeviceClaim(Part):
    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None


class ResourceClaimSpec(Part):
    devices: DeviceClaim | None = None


class AllocationResult(Part):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""


class DeviceAllocation(Part):
    results: tuple[AllocationResult, ...] | None = None


class Allocation(Part):
    devices: DeviceAllocation | None = None
    node_selector: NodeSelector | None = None


class Consumer(Part):
    resource: str | None = None
    name: str = ""
    uid: str | None = None


class ResourceClaimStatus(Part):
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] | None = None


class ResourceClaim(Record):
    spec: ResourceClaimSpec | None = None
    status: ResourceClaimStatus | None = None


class Attribute(Part):
    int_: Int | None = msgspec.field(name="int", default=None)
    bool_: bool | None = msgspec.field(name="bool", default=None)
    string: str | None = None
    version: str | None = None


class DeviceCapacity(Part):
    value: Quantity | None = None


class DeviceTaint(Part):
    key: str = ""
    value: str | None = None
    effect: str = ""


class BasicDevice(Part):
    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, DeviceCapacity | Quantity] | None = None
    taints: tuple[DeviceTaint, ...] | None = None


class Device(BasicDevice, kw_only=True):
    name: str
    basic: BasicDevice | None = None


class Pool(Part):
    name: str = ""
    generation: Int | None = None
    resource_slice_count: Int | None = None


class ResourceSliceSpec(Part):
    driver: str = ""
    pool: Pool | None = None
    node_name: str | None = None
    all_nodes: bool | None = None
    node_selector: NodeSelector | None = None
    devices: tuple[Device, ...] | None = None


class ResourceSlice(Record):
    spec: ResourceSliceSpec | None = None


class DeviceClassSpec(Part):
    selectors: tuple[DeviceSelector, ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(Record):
    spec: DeviceClassSpec | None = None
