"""Dynamic resource allocation: claims, slices of devices and device classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gangdash.engine.model.meta import Meta
from gangdash.engine.model.selectors import NodeSelectorTerm

AttributeValue = str | int | bool
"""A device attribute; versions are strings."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """``mode`` is ``ExactCount``, ``All`` or empty (= ExactCount); ``alternatives`` are firstAvailable entries."""

    name: str
    device_class: str = ""
    mode: str = ""
    count: int | None = None
    selectors: tuple[str, ...] = ()
    """CEL expressions, verbatim."""
    admin_access: bool = False
    tolerations: tuple[str, ...] = ()
    alternatives: tuple[DeviceRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceConstraint:
    requests: tuple[str, ...] = ()
    match_attribute: str = ""


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    request: str
    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """``allocated`` is ``None`` until devices are allocated; ``allocation_terms`` restricts the node then."""

    meta: Meta
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    allocated: tuple[AllocatedDevice, ...] | None = None
    allocation_terms: tuple[NodeSelectorTerm, ...] | None = None
    reserved_for: tuple[str, ...] = ()
    """Names of the pods (or kind/name of others) that hold the claim; the same name may occur once only."""
    reserved_uids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    name: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)
    taints: tuple[str, ...] = ()
    """``key=value:effect`` of device taints."""


@dataclass(frozen=True, slots=True)
class ResourceSlice:
    """Devices of one driver and pool, on one node, on nodes that match ``node_terms``, or on all nodes."""

    meta: Meta
    driver: str = ""
    pool: str = ""
    pool_generation: int | None = None
    slice_count: int | None = None
    node_name: str = ""
    all_nodes: bool = False
    node_terms: tuple[NodeSelectorTerm, ...] | None = None
    devices: tuple[Device, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceClass:
    meta: Meta
    selectors: tuple[str, ...] = ()
    extended_resource: str = ""
    """The extended resource name that this class backs, if any."""
