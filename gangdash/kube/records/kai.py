"""Records of KAI's own kinds: PodGroup, Queue, BindRequest, Topology, SchedulingShard, Config.

Also the scheduler's configuration file and flags, as its snapshot and its ConfigMap carry them. The
connection of the usage database is left out: it may hold a password.
"""

from __future__ import annotations

import msgspec

from gangdash.kube.allowed import SCHEDULER_FLAGS
from gangdash.kube.records.base import Amounts, Condition, Int, Part, Record, Time
from gangdash.kube.yaml import YamlError, load

# PodGroup


class TopologyConstraint(Part):
    topology: str | None = None
    required_topology_level: str | None = None
    preferred_topology_level: str | None = None


class SubGroup(Part):
    name: str = ""
    parent: str | None = None
    min_member: Int | None = None
    min_sub_group: Int | None = None
    topology_constraint: TopologyConstraint | None = None


class PodGroupSpec(Part):
    queue: str | None = None
    min_member: Int | None = None
    min_sub_group: Int | None = None
    priority_class_name: str | None = None
    preemptibility: str | None = None
    topology_constraint: TopologyConstraint | None = None
    sub_groups: tuple[SubGroup, ...] | None = None
    mark_unschedulable: bool | None = None
    scheduling_backoff: Int | None = None
    preemption_delay: str | None = None
    staleness_grace_period: str | None = None


class QueueDetails(Part):
    name: str = ""
    queue_requested_resources: Amounts | None = None
    queue_deserved_resources: Amounts | None = None
    queue_allocated_resources: Amounts | None = None
    queue_allocated_non_preemptible_resources: Amounts | None = None
    queue_resource_limits: Amounts | None = None
    pod_group_requested_resources: Amounts | None = None
    pod_group_requested_non_preemptible_resources: Amounts | None = None


class ReasonDetails(Part):
    queue_details: QueueDetails | None = None


class SchedulingReason(Part):
    reason: str = ""
    message: str | None = None
    details: ReasonDetails | None = None


class SchedulingCondition(Part):
    type: str = ""
    node_pool: str = ""
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    reasons: tuple[SchedulingReason, ...] | None = None
    last_transition_time: Time | None = None
    transition_id: str | None = msgspec.field(name="transitionID", default=None)


class ResourcesStatus(Part):
    requested: Amounts | None = None
    allocated: Amounts | None = None


class PodGroupStatus(Part):
    scheduling_conditions: tuple[SchedulingCondition, ...] | None = None
    conditions: tuple[Condition, ...] | None = None
    resources_status: ResourcesStatus | None = None


class PodGroup(Record):
    spec: PodGroupSpec | None = None
    status: PodGroupStatus | None = None


# Queue


class QueueResource(Part):
    quota: float | None = None
    limit: float | None = None
    over_quota_weight: float | None = None


class QueueResources(Part):
    cpu: QueueResource | None = None
    memory: QueueResource | None = None
    gpu: QueueResource | None = None


class QueueSpec(Part):
    display_name: str | None = None
    parent_queue: str | None = None
    resources: QueueResources | None = None
    priority: Int | None = None
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


class QueueStatus(Part):
    """``allocated`` is absent, not zero, while nothing is there."""

    allocated: Amounts | None = None
    conditions: tuple[Condition, ...] | None = None


class Queue(Record):
    spec: QueueSpec | None = None
    status: QueueStatus | None = None


# BindRequest


class ReceivedGPU(Part):
    count: Int | None = None
    portion: str | None = None


class ClaimAllocation(Part):
    name: str = ""


class BindRequestSpec(Part):
    pod_name: str = ""
    selected_node: str = ""
    received_resource_type: str | None = None
    received_gpu: ReceivedGPU | None = msgspec.field(name="receivedGPU", default=None)
    selected_gpu_groups: tuple[str, ...] | None = msgspec.field(name="selectedGPUGroups", default=None)
    resource_claim_allocations: tuple[ClaimAllocation, ...] | None = None
    backoff_limit: Int | None = None


class BindRequestStatus(Part):
    phase: str | None = None
    reason: str | None = None
    failed_attempts: Int | None = None


class BindRequest(Record):
    spec: BindRequestSpec | None = None
    status: BindRequestStatus | None = None


# Topology


class TopologyLevel(Part):
    node_label: str
    alias: str | None = None


class TopologySpec(Part):
    levels: tuple[TopologyLevel, ...] | None = None


class Topology(Record):
    spec: TopologySpec | None = None


# Configuration of the scheduler


class PluginOption(Part):
    name: str
    arguments: dict[str, str] | None = None


class Tier(Part):
    plugins: tuple[PluginOption, ...] | None = None


class UsageParams(Part):
    half_life_period: str | None = None
    window_size: str | None = None
    window_type: str | None = None
    staleness_period: str | None = None
    fetch_interval: str | None = None


class UsageDB(Part):
    client_type: str | None = None
    usage_params: UsageParams | None = None


class SearchBudgets(Part):
    max_action_search_duration: dict[str, str] | None = None
    max_job_search_duration: str | None = None
    min_job_search_duration: str | None = None
    max_generator_search_duration: dict[str, str] | None = None


class SchedulerConfig(Part):
    """The configuration file: ``config`` of a scheduler snapshot, ``config.yaml`` of its ConfigMap."""

    actions: str | None = None
    tiers: tuple[Tier, ...] | None = None
    queue_depth_per_action: dict[str, Int] | None = None
    usage_db_config: UsageDB | None = msgspec.field(name="usageDBConfig", default=None)
    scenario_search_budgets: SearchBudgets | None = None


class PartitionParams(Part, rename="pascal"):
    node_pool_label_key: str = ""
    node_pool_label_value: str = ""


class SchedulerParams(Part):
    """Flags as a scheduler snapshot carries them: durations in nanoseconds, a zero value is left out."""

    scheduler_name: str = ""
    restrict_scheduling_nodes: bool = False
    partition_params: PartitionParams | None = None
    max_number_consolidation_preemptees: Int = 0
    schedule_csi_storage: bool = msgspec.field(name="scheduleCSIStorage", default=False)
    use_scheduling_signatures: bool = False
    full_hierarchy_fairness: bool = False
    allow_consolidating_reclaim: bool = False
    global_default_staleness_grace_period: Int = 0
    schedule_period: Int = 0
    stuck_in_releasing_threshold: Int = 0
    detailed_fit_errors: bool = False
    update_pod_eviction_condition: bool = False
    queue_label_key: str = ""


class PlacementStrategy(Part):
    gpu: str | None = None
    cpu: str | None = None


class MinRuntime(Part):
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


class Override(Part):
    """A plugin or an action of a shard, changed."""

    enabled: bool | None = None
    priority: Int | None = None
    arguments: dict[str, str] | None = None


class ShardSpec(Part):
    args: dict[str, str] | None = None
    placement_strategy: PlacementStrategy | None = None
    partition_label_value: str | None = None
    queue_depth_per_action: dict[str, Int] | None = None
    min_runtime: MinRuntime | None = None
    k_value: float | None = None
    usage_db_config: UsageDB | None = msgspec.field(name="usageDBConfig", default=None)
    scenario_search_budgets: SearchBudgets | None = None
    plugins: dict[str, Override] | None = None
    actions: dict[str, Override] | None = None

    def __post_init__(self) -> None:
        self.args = {k: v for k, v in (self.args or {}).items() if k in SCHEDULER_FLAGS} or None


class SchedulingShard(Record):
    spec: ShardSpec | None = None


class GlobalConfig(Part):
    scheduler_name: str | None = None
    node_pool_label_key: str | None = None
    queue_label_key: str | None = None


class ResourceReservation(Part):
    app_label: str | None = None


class BinderConfig(Part):
    resource_reservation: ResourceReservation | None = None


class ConfigSpec(Part):
    namespace: str | None = None
    global_: GlobalConfig | None = msgspec.field(name="global", default=None)
    binder: BinderConfig | None = None


class Config(Record):
    spec: ConfigSpec | None = None


_CONFIG_FILE = "config.yaml"


class ConfigMap(Record):
    """Name only, except the scheduler's configuration file, which is reduced to what a replay needs."""

    data: dict[str, str] | None = None

    def __post_init__(self) -> None:
        text = (self.data or {}).get(_CONFIG_FILE)
        config = scheduler_config(text) if text else None
        self.data = {_CONFIG_FILE: msgspec.json.encode(config).decode()} if config else None

    @property
    def scheduler_config(self) -> SchedulerConfig | None:
        return scheduler_config(self.data[_CONFIG_FILE]) if self.data else None


def scheduler_config(text: str) -> SchedulerConfig | None:
    """Return the scheduler's configuration, or ``None`` for any other text: that is nobody's business here."""
    try:
        config = msgspec.convert(load(text), SchedulerConfig)
    except (YamlError, msgspec.ValidationError):
        return None
    actions = [a.strip() for a in (config.actions or "").split(",")]
    return config if "allocate" in actions and config.tiers else None
