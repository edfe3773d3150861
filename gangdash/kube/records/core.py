"""Records of the core API that placement depends on: nodes, pods, namespaces, priorities.

Relies on ``base``. Leaves out every field that no rule reads; what a field is for stands beside the
fact it becomes, in the engine's model.
"""

from __future__ import annotations

import msgspec

from gangdash.kube.allowed import RUNTIME_REASONS, kept_pod_args
from gangdash.kube.records.base import (
    Affinity,
    Amounts,
    Condition,
    Int,
    Part,
    Record,
    SpreadConstraint,
    Time,
    Toleration,
)


class Namespace(Record):
    pass


class Taint(Part):
    key: str
    value: str | None = None
    effect: str = ""
    time_added: Time | None = None


class NodeSpec(Part):
    unschedulable: bool | None = None
    taints: tuple[Taint, ...] | None = None
    provider_id: str | None = msgspec.field(name="providerID", default=None)


class NodeInfo(Part):
    kubelet_version: str | None = None


class NodeStatus(Part):
    allocatable: Amounts | None = None
    capacity: Amounts | None = None
    conditions: tuple[Condition, ...] | None = None
    node_info: NodeInfo | None = None


class Node(Record):
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class NameOnly(Part):
    """A reference, or anything of which the name is all that counts."""

    name: str = ""


class ConfigMapRef(Part):
    name: str | None = None
    optional: bool | None = None


class EnvSource(Part):
    config_map_key_ref: ConfigMapRef | None = None


class EnvVar(Part):
    """Neither name nor value: only whether a ConfigMap has to exist."""

    value_from: EnvSource | None = None


class EnvFrom(Part):
    config_map_ref: ConfigMapRef | None = None


class ContainerPort(Part):
    host_port: Int | None = None
    protocol: str | None = None
    host_ip: str | None = msgspec.field(name="hostIP", default=None)


class Resources(Part):
    requests: Amounts | None = None
    limits: Amounts | None = None
    claims: tuple[NameOnly, ...] | None = None


class Container(Part):
    """``args`` keeps only the start-order arguments of Grove's init container."""

    name: str = ""
    restart_policy: str | None = None
    resources: Resources | None = None
    ports: tuple[ContainerPort, ...] | None = None
    env: tuple[EnvVar, ...] | None = None
    env_from: tuple[EnvFrom, ...] | None = None
    args: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        self.args = kept_pod_args(self.args)
        self.env = tuple(e for e in self.env or () if e.value_from and e.value_from.config_map_key_ref) or None
        self.env_from = tuple(e for e in self.env_from or () if e.config_map_ref) or None
        self.ports = tuple(p for p in self.ports or () if p.host_port) or None


class VolumeClaimRef(Part):
    claim_name: str


class Ephemeral(Part):
    """An ephemeral volume: that it exists is enough, its claim's name follows from the pod's."""


class ProjectedSource(Part):
    config_map: ConfigMapRef | None = None


class Projected(Part):
    sources: tuple[ProjectedSource, ...] | None = None


class Volume(Part):
    name: str = ""
    persistent_volume_claim: VolumeClaimRef | None = None
    ephemeral: Ephemeral | None = None
    config_map: ConfigMapRef | None = None
    projected: Projected | None = None


class PodClaim(Part):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Part):
    scheduler_name: str | None = None
    node_name: str | None = None
    priority: Int | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[SpreadConstraint, ...] | None = None
    scheduling_gates: tuple[NameOnly, ...] | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    overhead: Amounts | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[PodClaim, ...] | None = None
    runtime_class_name: str | None = None
    host_network: bool | None = None
    restart_policy: str | None = None
    termination_grace_period_seconds: Int | None = None


class Waiting(Part):
    reason: str | None = None
    message: str | None = None


class Running(Part):
    started_at: Time | None = None


class Terminated(Part):
    """``message`` only where the runtime speaks: once a container has run, these are its own last words."""

    reason: str | None = None
    message: str | None = None
    exit_code: Int | None = None
    finished_at: Time | None = None

    def __post_init__(self) -> None:
        if self.reason not in RUNTIME_REASONS:
            self.message = None


class ContainerState(Part):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Part):
    name: str = ""
    ready: bool | None = None
    restart_count: Int | None = None
    state: ContainerState | None = None
    last_state: ContainerState | None = None


class ClaimStatus(Part):
    name: str
    resource_claim_name: str | None = None


class PodStatus(Part):
    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    nominated_node_name: str | None = None
    start_time: Time | None = None
    conditions: tuple[Condition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resource_claim_statuses: tuple[ClaimStatus, ...] | None = None


class Pod(Record):
    spec: PodSpec | None = None
    status: PodStatus | None = None


class PriorityClass(Record):
    value: Int = 0
    global_default: bool | None = None
