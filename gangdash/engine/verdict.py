"""The closed sets of an explanation (verdicts, codes, who acts, how sure) and the facts behind its sentence.

Codes, names and numbers only; every word is in ``gangdash.reasons``. The sets are those of the contract
and are held equal to the registry by a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from gangdash.engine.identifiers import ConstraintId, NodeReason, Unit


class Verdict(StrEnum):
    WILL_START = "WILL_START"
    NO_FIT = "NO_FIT"
    POLICY = "POLICY"
    CONFIG = "CONFIG"
    GATED = "GATED"
    NODE = "NODE"
    PARTIAL = "PARTIAL"
    VIOLATED = "VIOLATED"
    EVICTED = "EVICTED"
    STUCK = "STUCK"
    STARTING = "STARTING"
    HEALTHY = "HEALTHY"
    NO_VERDICT = "NO_VERDICT"


class ReasonCode(StrEnum):
    """Every code of the contract, in the order of its verdicts; ``VERDICT_OF`` says which verdict it belongs to."""

    FITS_NOW = "FITS_NOW"
    WAITS_FOR_RELEASE = "WAITS_FOR_RELEASE"
    WAITS_FOR_EVICTION = "WAITS_FOR_EVICTION"

    NODE_TOO_SMALL = "NODE_TOO_SMALL"
    CLUSTER_TOO_SMALL = "CLUSTER_TOO_SMALL"
    DOMAIN_TOO_SMALL = "DOMAIN_TOO_SMALL"
    GPUS_BUSY = "GPUS_BUSY"
    FRAGMENTED = "FRAGMENTED"
    DOMAIN_BUSY = "DOMAIN_BUSY"
    RESOURCE_SHORT = "RESOURCE_SHORT"
    POD_SLOTS = "POD_SLOTS"
    SELECTOR_MISMATCH = "SELECTOR_MISMATCH"
    TAINT_NOT_TOLERATED = "TAINT_NOT_TOLERATED"
    POD_AFFINITY = "POD_AFFINITY"
    VOLUME = "VOLUME"
    CLAIM_UNALLOCATABLE = "CLAIM_UNALLOCATABLE"
    GPU_SHAPE = "GPU_SHAPE"
    NUMA_SPLIT = "NUMA_SPLIT"
    CONFLICTING_CONSTRAINTS = "CONFLICTING_CONSTRAINTS"

    QUEUE_LIMIT = "QUEUE_LIMIT"
    NON_PREEMPTIBLE_OVER_QUOTA = "NON_PREEMPTIBLE_OVER_QUOTA"
    FAIR_SHARE_REACHED = "FAIR_SHARE_REACHED"
    HOLDERS_PROTECTED = "HOLDERS_PROTECTED"
    QUEUED_BEHIND = "QUEUED_BEHIND"
    NAMESPACE_QUOTA = "NAMESPACE_QUOTA"
    PREEMPTION_DELAY = "PREEMPTION_DELAY"

    NO_PODGROUP = "NO_PODGROUP"
    WRONG_SCHEDULER = "WRONG_SCHEDULER"
    NOT_IN_SHARD = "NOT_IN_SHARD"
    QUEUE_MISSING = "QUEUE_MISSING"
    QUEUE_NOT_LEAF = "QUEUE_NOT_LEAF"
    QUEUE_ORPHANED = "QUEUE_ORPHANED"
    SUBGROUP_UNKNOWN = "SUBGROUP_UNKNOWN"
    SUBGROUP_TREE_INVALID = "SUBGROUP_TREE_INVALID"
    MINIMUM_UNREACHABLE = "MINIMUM_UNREACHABLE"
    TOPOLOGY_MISSING = "TOPOLOGY_MISSING"
    TOPOLOGY_LEVEL_UNKNOWN = "TOPOLOGY_LEVEL_UNKNOWN"
    TOPOLOGY_LABEL_MISSING = "TOPOLOGY_LABEL_MISSING"
    PRIORITY_CLASS_MISSING = "PRIORITY_CLASS_MISSING"
    OBJECT_MISSING = "OBJECT_MISSING"
    KIND_NOT_SERVED = "KIND_NOT_SERVED"
    FEATURE_OFF = "FEATURE_OFF"
    SETTING_IGNORED = "SETTING_IGNORED"
    LABEL_MISSING = "LABEL_MISSING"
    EMPTY_PODGROUP = "EMPTY_PODGROUP"

    UPSTREAM_STAGE = "UPSTREAM_STAGE"
    SCHEDULING_GATE = "SCHEDULING_GATE"
    SUSPENDED = "SUSPENDED"
    MEMBERS_MISSING = "MEMBERS_MISSING"
    ADMISSION_DOWN = "ADMISSION_DOWN"
    BACKOFF = "BACKOFF"
    WAITS_FOR_BASE_GANG = "WAITS_FOR_BASE_GANG"

    NODES_CORDONED = "NODES_CORDONED"
    NODES_NOT_READY = "NODES_NOT_READY"
    NODES_TAINTED_BY_STATE = "NODES_TAINTED_BY_STATE"
    DEVICES_UNHEALTHY = "DEVICES_UNHEALTHY"
    DEVICE_PLUGIN_MISSING = "DEVICE_PLUGIN_MISSING"
    TERMINATING_PODS_HOLD = "TERMINATING_PODS_HOLD"
    ADMISSION_REFUSED = "ADMISSION_REFUSED"

    GANG_NOT_ENFORCED = "GANG_NOT_ENFORCED"
    BELOW_MINIMUM = "BELOW_MINIMUM"
    SIBLING_GANG_WAITS = "SIBLING_GANG_WAITS"
    MUTUAL_WAIT = "MUTUAL_WAIT"

    TOPOLOGY_NOT_KEPT = "TOPOLOGY_NOT_KEPT"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"

    RECLAIMED = "RECLAIMED"
    PREEMPTED = "PREEMPTED"
    CONSOLIDATED = "CONSOLIDATED"
    STALE_GANG = "STALE_GANG"
    EVICTED_BY_NODE = "EVICTED_BY_NODE"
    EVICTION_LOOP = "EVICTION_LOOP"

    PLACEABLE_NOT_PLACED = "PLACEABLE_NOT_PLACED"
    SCHEDULER_SILENT = "SCHEDULER_SILENT"
    SCHEDULER_DOWN = "SCHEDULER_DOWN"
    CONTROLLER_SILENT = "CONTROLLER_SILENT"
    BIND_FAILING = "BIND_FAILING"
    BIND_LOOP = "BIND_LOOP"
    HELPER_POD_REFUSED = "HELPER_POD_REFUSED"
    SCHEDULER_DEFECT = "SCHEDULER_DEFECT"
    GREEDY_MISS = "GREEDY_MISS"
    SEARCH_BUDGET = "SEARCH_BUDGET"

    IMAGE_PULL = "IMAGE_PULL"
    VOLUME_MOUNT = "VOLUME_MOUNT"
    INIT_CONTAINER = "INIT_CONTAINER"
    CONTAINER_START = "CONTAINER_START"
    PROBE_FAILING = "PROBE_FAILING"
    CRASH_LOOP = "CRASH_LOOP"

    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    STATUS_STALE = "STATUS_STALE"

    NOT_READ = "NOT_READ"
    NOT_MODELLED = "NOT_MODELLED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    ENGINE_FAULT = "ENGINE_FAULT"
    STALE_DATA = "STALE_DATA"


_FIRST_CODE: Mapping[ReasonCode, Verdict] = {
    ReasonCode.FITS_NOW: Verdict.WILL_START,
    ReasonCode.NODE_TOO_SMALL: Verdict.NO_FIT,
    ReasonCode.QUEUE_LIMIT: Verdict.POLICY,
    ReasonCode.NO_PODGROUP: Verdict.CONFIG,
    ReasonCode.UPSTREAM_STAGE: Verdict.GATED,
    ReasonCode.NODES_CORDONED: Verdict.NODE,
    ReasonCode.GANG_NOT_ENFORCED: Verdict.PARTIAL,
    ReasonCode.TOPOLOGY_NOT_KEPT: Verdict.VIOLATED,
    ReasonCode.RECLAIMED: Verdict.EVICTED,
    ReasonCode.PLACEABLE_NOT_PLACED: Verdict.STUCK,
    ReasonCode.IMAGE_PULL: Verdict.STARTING,
    ReasonCode.RUNNING: Verdict.HEALTHY,
    ReasonCode.NOT_READ: Verdict.NO_VERDICT,
}


def _verdicts() -> dict[str, Verdict]:
    """Return the verdict of each code: a verdict's codes follow its first one."""
    verdicts: dict[str, Verdict] = {}
    current = Verdict.WILL_START
    for code in ReasonCode:
        current = _FIRST_CODE.get(code, current)
        verdicts[code] = current
    return verdicts


VERDICT_OF: Mapping[str, Verdict] = _verdicts()


class Who(StrEnum):
    WAIT = "wait"
    OWNER = "owner"
    QUEUE_ADMIN = "queue_admin"
    CLUSTER_ADMIN = "cluster_admin"
    PLATFORM = "platform"
    NOBODY = "nobody"


class Certainty(StrEnum):
    PROVED = "proved"
    DERIVED = "derived"
    UNPROVEN = "unproven"
    NO_VERDICT = "no_verdict"


class Match(StrEnum):
    AGREE = "agree"
    LESS_SPECIFIC = "less_specific"
    DISAGREE = "disagree"
    SILENT = "silent"
    STALE = "stale"


class FixKind(StrEnum):
    RAISE_LIMIT = "raise_limit"
    RAISE_QUOTA = "raise_quota"
    RELAX_TOPOLOGY = "relax_topology"
    FREE_NODE = "free_node"
    UNCORDON = "uncordon"
    CORDON = "cordon"
    ADD_NODES = "add_nodes"
    SUBMIT = "submit"
    SHRINK_GANG = "shrink_gang"
    SHRINK_POD = "shrink_pod"
    ADD_TOLERATION = "add_toleration"
    CHANGE_SELECTOR = "change_selector"
    MAKE_PREEMPTIBLE = "make_preemptible"
    RAISE_PRIORITY = "raise_priority"
    MOVE_QUEUE = "move_queue"
    EVICT_GANG = "evict_gang"
    CREATE_OBJECT = "create_object"
    FIX_REFERENCE = "fix_reference"
    REMOVE_TAINT = "remove_taint"
    SET_LABEL = "set_label"
    REPAIR_DEVICE = "repair_device"
    RESTART_COMPONENT = "restart_component"
    RECREATE_WORKLOAD = "recreate_workload"
    UPGRADE = "upgrade"
    WAIT_FOR = "wait_for"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with its unit, so that one template serves every resource; ``name`` is that of a counted resource."""

    value: float
    unit: Unit
    name: str = ""


FactValue = str | int | float | bool | Amount | tuple[str, ...] | None
"""What a sentence template may name."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One entry of ``binding`` or ``slack``, in ``unit``; ``have`` is None when it could not be read."""

    id: ConstraintId
    scope: str
    need: float | int | str
    have: float | int | str | None
    unit: Unit
    source: str


@dataclass(frozen=True, slots=True)
class Members:
    """How many members the gang needs to start, and how the needed ones fared."""

    needed: int = 0
    fit: int = 0
    unfit: int = 0
    not_evaluated: int = 0


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that refuse the gang for one reason; ``examples`` are the first few names in order."""

    reason: NodeReason
    count: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Holder:
    """A gang or pod that holds what this gang needs, and whether the scheduler may evict it."""

    gang: str
    gpus: float
    evictable: str
    facts: Mapping[str, FactValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fix:
    """A change that starts the gang. ``verified`` is false only where the effect cannot be replayed."""

    kind: FixKind
    change: Mapping[str, FactValue]
    facts: Mapping[str, FactValue] = field(default_factory=dict)
    form: str = ""
    verified: bool = False
    starts: tuple[str, ...] = ()
    moves: tuple[str, ...] = ()
    delays: tuple[str, ...] = ()
    sets_back: tuple[str, ...] = ()
    evicts: tuple[str, ...] = ()
    who: Who = Who.OWNER
    cost: int = 1
    beside: tuple[Fix, ...] = ()
    """Changes of other kinds that are made with it; ``change`` names them all under ``also``."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Whether waiting helps (yes, no, unknown), until which verified time, and what is waited ``on``."""

    helps: Literal["yes", "no", "unknown"] = "unknown"
    until: float | None = None
    on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule saw: a code, the wording that fits (``form``), the values it names and the numbers behind it."""

    code: ReasonCode
    form: str = ""
    facts: Mapping[str, FactValue] = field(default_factory=dict)
    binding: tuple[Constraint, ...] = ()
    slack: tuple[Constraint, ...] = ()
    nodes: tuple[NodeGroup, ...] = ()
    holders: tuple[Holder, ...] = ()
    waiting: Waiting | None = None
    fixes: tuple[Fix, ...] = ()
    members: Members | None = None
    who: Who | None = None
    stage: str = ""
    certainty: Certainty = Certainty.DERIVED

    @property
    def verdict(self) -> Verdict:
        return VERDICT_OF[self.code]


@dataclass(frozen=True, slots=True)
class SchedulerWords:
    """The cluster's own words on a gang: ``at`` is when they were last said, ``since`` when this text began."""

    text: str
    source: str
    at: float | None = None
    reasons: tuple[str, ...] = ()
    outdated_by: float | None = None
    """Time of a change that made the text untrue, if one is known."""


@dataclass(frozen=True, slots=True)
class GangRef:
    """Who is explained: a PodGroup, or the workload that should have one."""

    namespace: str
    name: str
    uid: str = ""
    kind: str = "PodGroup"
    owner: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one gang waits, in facts. ``also`` is what would stop it next, in the order of decision."""

    gang: GangRef
    finding: Finding
    shard: str = ""
    certainty: Certainty = Certainty.DERIVED
    waiting_since: float | None = None
    members: Members = Members()
    fixes: tuple[Fix, ...] = ()
    fixes_refused: int = 0
    fixes_untried: int = 0
    """Changes that could help and were not re-run, because as many cycles as one diagnosis may cost had been."""
    also: tuple[Finding, ...] = ()
    scheduler: SchedulerWords | None = None
    not_read: tuple[str, ...] = ()
    not_modelled: tuple[str, ...] = ()
