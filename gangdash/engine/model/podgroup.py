"""PodGroup and BindRequest: what the gang asks and what the scheduler has decided.

Unset minimums stay ``None``: an absent minMember, an absent minSubGroup and a zero differ in meaning
and in version (kai API scheduling.run.ai/v2alpha2 and v1alpha2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gangdash.engine.model.meta import Condition, Meta


@dataclass(frozen=True, slots=True)
class TopologyConstraint:
    """Names a Topology and levels in it (node labels or aliases); empty string = unset."""

    topology: str = ""
    required_level: str = ""
    preferred_level: str = ""


@dataclass(frozen=True, slots=True)
class SubGroupSpec:
    name: str
    parent: str = ""
    min_member: int | None = None
    min_sub_group: int | None = None
    topology: TopologyConstraint | None = None


@dataclass(frozen=True, slots=True)
class QueueDetails:
    """Numbers the scheduler put into a queue reason, by resource name in scheduler units."""

    name: str
    requested: Mapping[str, int] = field(default_factory=dict)
    deserved: Mapping[str, int] = field(default_factory=dict)
    allocated: Mapping[str, int] = field(default_factory=dict)
    allocated_non_preemptible: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    podgroup_requested: Mapping[str, int] = field(default_factory=dict)
    podgroup_requested_non_preemptible: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchedulingReason:
    reason: str
    message: str = ""
    queue: QueueDetails | None = None


@dataclass(frozen=True, slots=True)
class SchedulingCondition:
    """``since`` moves whenever the text changes: it is not the start of waiting."""

    type: str
    node_pool: str
    status: str = ""
    reason: str = ""
    message: str = ""
    reasons: tuple[SchedulingReason, ...] = ()
    since: float | None = None
    transition_id: str = ""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """``staleness_grace`` and ``preemption_delay`` are seconds, ``None`` when unset; the grace may be negative."""

    meta: Meta
    queue: str = ""
    min_member: int | None = None
    min_sub_group: int | None = None
    priority_class_name: str = ""
    preemptibility: str = ""
    topology: TopologyConstraint | None = None
    sub_groups: tuple[SubGroupSpec, ...] = ()
    mark_unschedulable: bool | None = None
    scheduling_backoff: int | None = None
    preemption_delay: float | None = None
    staleness_grace: float | None = None
    scheduling_conditions: tuple[SchedulingCondition, ...] = ()
    conditions: tuple[Condition, ...] = ()
    requested: Mapping[str, int] | None = None
    allocated: Mapping[str, int] | None = None

    @property
    def key(self) -> str:
        return self.meta.key


@dataclass(frozen=True, slots=True)
class BindRequest:
    """``phase`` is empty when the binder has not answered at all. ``labels`` of ``meta`` hold the node pool."""

    meta: Meta
    pod_name: str = ""
    node: str = ""
    received_type: str = ""
    gpu_count: int = 0
    gpu_portion: str = ""
    gpu_groups: tuple[str, ...] = ()
    backoff_limit: int | None = None
    phase: str = ""
    reason: str = ""
    failed_attempts: int = 0
    claims: tuple[str, ...] = ()
