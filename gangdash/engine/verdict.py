"""The closed sets of an explanation: verdicts, codes, who acts, how sure, and the facts behind a sentence.

Codes and numbers only; every word is in ``gangdash.reasons``. The sets are those of the contract and
are held equal to the registry by a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


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


_CODES: Mapping[Verdict, str] = {
    Verdict.WILL_START: "FITS_NOW WAITS_FOR_RELEASE WAITS_FOR_EVICTION",
    Verdict.NO_FIT: (
        "NODE_TOO_SMALL CLUSTER_TOO_SMALL DOMAIN_TOO_SMALL GPUS_BUSY FRAGMENTED DOMAIN_BUSY RESOURCE_SHORT POD_SLOTS "
        "SELECTOR_MISMATCH TAINT_NOT_TOLERATED POD_AFFINITY VOLUME CLAIM_UNALLOCATABLE GPU_SHAPE NUMA_SPLIT "
        "CONFLICTING_CONSTRAINTS"
    ),
    Verdict.POLICY: (
        "QUEUE_LIMIT NON_PREEMPTIBLE_OVER_QUOTA FAIR_SHARE_REACHED HOLDERS_PROTECTED QUEUED_BEHIND NAMESPACE_QUOTA "
        "PREEMPTION_DELAY"
    ),
    Verdict.CONFIG: (
        "NO_PODGROUP WRONG_SCHEDULER NOT_IN_SHARD QUEUE_MISSING QUEUE_NOT_LEAF QUEUE_ORPHANED SUBGROUP_UNKNOWN "
        "SUBGROUP_TREE_INVALID MINIMUM_UNREACHABLE TOPOLOGY_MISSING TOPOLOGY_LEVEL_UNKNOWN TOPOLOGY_LABEL_MISSING "
        "PRIORITY_CLASS_MISSING OBJECT_MISSING KIND_NOT_SERVED FEATURE_OFF SETTING_IGNORED LABEL_MISSING EMPTY_PODGROUP"
    ),
    Verdict.GATED: (
        "UPSTREAM_STAGE SCHEDULING_GATE SUSPENDED MEMBERS_MISSING ADMISSION_DOWN BACKOFF WAITS_FOR_BASE_GANG"
    ),
    Verdict.NODE: (
        "NODES_CORDONED NODES_NOT_READY NODES_TAINTED_BY_STATE DEVICES_UNHEALTHY DEVICE_PLUGIN_MISSING "
        "TERMINATING_PODS_HOLD ADMISSION_REFUSED"
    ),
    Verdict.PARTIAL: "GANG_NOT_ENFORCED BELOW_MINIMUM SIBLING_GANG_WAITS MUTUAL_WAIT",
    Verdict.VIOLATED: "TOPOLOGY_NOT_KEPT LIMIT_EXCEEDED",
    Verdict.EVICTED: "RECLAIMED PREEMPTED CONSOLIDATED STALE_GANG EVICTED_BY_NODE EVICTION_LOOP",
    Verdict.STUCK: (
        "PLACEABLE_NOT_PLACED SCHEDULER_SILENT SCHEDULER_DOWN CONTROLLER_SILENT BIND_FAILING BIND_LOOP "
        "HELPER_POD_REFUSED SCHEDULER_DEFECT GREEDY_MISS SEARCH_BUDGET"
    ),
    Verdict.STARTING: "IMAGE_PULL VOLUME_MOUNT INIT_CONTAINER CONTAINER_START PROBE_FAILING CRASH_LOOP",
    Verdict.HEALTHY: "RUNNING COMPLETED STATUS_STALE",
    Verdict.NO_VERDICT: "NOT_READ NOT_MODELLED BUDGET_EXHAUSTED ENGINE_FAULT STALE_DATA",
}

ReasonCode = StrEnum("ReasonCode", {code: code for codes in _CODES.values() for code in codes.split()})  # type: ignore[misc]
"""Every code of the contract; see ``VERDICT_OF`` for the verdict it belongs to."""

VERDICT_OF: Mapping[str, Verdict] = {code: verdict for verdict, codes in _CODES.items() for code in codes.split()}


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
class Constraint:
    """One entry of ``binding`` or ``slack``: ``need`` and ``have`` are in ``unit``."""

    id: str
    scope: str
    need: float | int | str
    have: float | int | str | None
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact with numbers: what one rule saw. ``numbers`` are the named values of the sentence template."""

    code: str
    subject: str
    numbers: Mapping[str, object] = field(default_factory=dict)
    binding: tuple[Constraint, ...] = ()
    who: Who | None = None
