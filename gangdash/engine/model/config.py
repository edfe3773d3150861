"""How one scheduler instance (shard) is configured.

The same shape whether it came out of a scheduler snapshot or was put together from SchedulingShard,
Config, ConfigMap and Deployment arguments. Durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DEFAULT_ACTIONS = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
DEFAULT_PLUGINS = (
    "predicates", "proportion", "priority", "nodeavailability", "resourcetype", "podaffinity", "elastic", "kubeflow",
    "ray", "subgrouporder", "taskorder", "nominatednode", "dynamicresources", "minruntime", "topology", "snapshot",
    "sg-nodelocalgreedy", "sg-multinodegang", "gpupack", "nodeplacement", "gpusharingorder",
)  # fmt: skip
GENERATOR_PLUGINS = ("sg-nodelocalgreedy", "sg-multinodegang")
"""The plugins that say which victims are tried."""


@dataclass(frozen=True, slots=True)
class Plugin:
    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchedulerParams:
    """Scheduler flags, with the defaults of the scheduler itself."""

    scheduler_name: str = "kai-scheduler"
    restrict_node_scheduling: bool = False
    node_pool_label_key: str = "kai.scheduler/node-pool"
    node_pool_label_value: str = ""
    max_consolidation_preemptees: int = 16
    schedule_csi_storage: bool = False
    use_scheduling_signatures: bool = True
    full_hierarchy_fairness: bool = True
    allow_consolidating_reclaim: bool = True
    staleness_grace: float = 60.0
    """Negative: never."""
    schedule_period: float = 1.0
    stuck_in_releasing: float = 120.0
    detailed_fit_errors: bool = False
    update_pod_eviction_condition: bool = False
    queue_label_key: str = "kai.scheduler/queue"
    cpu_worker_label_key: str = "node-role.kubernetes.io/cpu-worker"
    gpu_worker_label_key: str = "node-role.kubernetes.io/gpu-worker"
    mig_worker_label_key: str = "node-role.kubernetes.io/mig-enabled"
    reservation_app_label: str = "kai-resource-reservation"


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """``queue_depth`` maps an action to a maximum of gangs per leaf queue; absent = no maximum."""

    actions: tuple[str, ...] = DEFAULT_ACTIONS
    plugins: tuple[Plugin, ...] = tuple(Plugin(name) for name in DEFAULT_PLUGINS)
    queue_depth: Mapping[str, int] = field(default_factory=dict)
    usage_db: Mapping[str, str] = field(default_factory=dict)
    search_budgets: Mapping[str, float] = field(default_factory=dict)
    params: SchedulerParams = SchedulerParams()

    def plugin(self, name: str) -> Plugin | None:
        return next((p for p in self.plugins if p.name == name), None)


@dataclass(frozen=True, slots=True)
class Shard:
    """One scheduler's slice of the cluster. ``source`` says which objects the configuration was read from."""

    name: str = "default"
    config: SchedulerConfig = SchedulerConfig()
    source: tuple[str, ...] = ()
    version: str = ""
    """The running scheduler's version (image tag) if it could be read."""
