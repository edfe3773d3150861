"""KAI's own objects as facts (scheduling.run.ai v2, v2alpha2, v1alpha2; kai.scheduler v1alpha1)."""

from __future__ import annotations

from gangdash.engine.model import podgroup as model
from gangdash.engine.model.queue import Queue, QueueResource
from gangdash.engine.model.topology import Topology, TopologyLevel
from gangdash.kube.records import kai
from gangdash.kube.records.base import Amounts
from gangdash.snapshot.adapters.common import amounts, conditions, meta, seconds, time


def podgroup(record: kai.PodGroup) -> model.PodGroup:
    spec = record.spec or kai.PodGroupSpec()
    status = record.status or kai.PodGroupStatus()
    resources = status.resources_status or kai.ResourcesStatus()
    return model.PodGroup(
        meta=meta(record.metadata),
        queue=spec.queue or "",
        min_member=spec.min_member,
        min_sub_group=spec.min_sub_group,
        priority_class_name=spec.priority_class_name or "",
        preemptibility=spec.preemptibility or "",
        topology=_topology_constraint(spec.topology_constraint),
        sub_groups=tuple(_sub_group(s) for s in spec.sub_groups or ()),
        mark_unschedulable=spec.mark_unschedulable,
        scheduling_backoff=spec.scheduling_backoff,
        preemption_delay=seconds(spec.preemption_delay, "spec.preemptionDelay"),
        staleness_grace=seconds(spec.staleness_grace_period, "spec.stalenessGracePeriod"),
        scheduling_conditions=tuple(_scheduling_condition(c) for c in status.scheduling_conditions or ()),
        conditions=conditions(status.conditions),
        requested=_optional(resources.requested, "status.resourcesStatus.requested"),
        allocated=_optional(resources.allocated, "status.resourcesStatus.allocated"),
    )


def _optional(values: Amounts | None, field: str) -> dict[str, int] | None:
    return None if values is None else amounts(values, field)


def _topology_constraint(record: kai.TopologyConstraint | None) -> model.TopologyConstraint | None:
    if record is None:
        return None
    return model.TopologyConstraint(
        record.topology or "", record.required_topology_level or "", record.preferred_topology_level or ""
    )


def _sub_group(record: kai.SubGroup) -> model.SubGroupSpec:
    return model.SubGroupSpec(
        name=record.name,
        parent=record.parent or "",
        min_member=record.min_member,
        min_sub_group=record.min_sub_group,
        topology=_topology_constraint(record.topology_constraint),
    )


def _scheduling_condition(record: kai.SchedulingCondition) -> model.SchedulingCondition:
    return model.SchedulingCondition(
        type=record.type,
        node_pool=record.node_pool,
        status=record.status or "",
        reason=record.reason or "",
        message=record.message or "",
        reasons=tuple(
            model.SchedulingReason(r.reason, r.message or "", _queue_details(r.details)) for r in record.reasons or ()
        ),
        since=time(record.last_transition_time),
        transition_id=record.transition_id or "",
    )


def _queue_details(record: kai.ReasonDetails | None) -> model.QueueDetails | None:
    details = record.queue_details if record else None
    if details is None:
        return None
    field = "status.schedulingConditions.reasons.details.queueDetails"
    return model.QueueDetails(
        name=details.name,
        requested=amounts(details.queue_requested_resources, field),
        deserved=amounts(details.queue_deserved_resources, field),
        allocated=amounts(details.queue_allocated_resources, field),
        allocated_non_preemptible=amounts(details.queue_allocated_non_preemptible_resources, field),
        limits=amounts(details.queue_resource_limits, field),
        podgroup_requested=amounts(details.pod_group_requested_resources, field),
        podgroup_requested_non_preemptible=amounts(details.pod_group_requested_non_preemptible_resources, field),
    )


def queue(record: kai.Queue) -> Queue:
    spec, status = record.spec or kai.QueueSpec(), record.status
    resources = spec.resources or kai.QueueResources()
    return Queue(
        meta=meta(record.metadata),
        display_name=spec.display_name or "",
        parent=spec.parent_queue or "",
        has_resources=spec.resources is not None,
        cpu=_queue_resource(resources.cpu),
        memory=_queue_resource(resources.memory),
        gpu=_queue_resource(resources.gpu),
        priority=spec.priority,
        preempt_min_runtime=seconds(spec.preempt_min_runtime, "spec.preemptMinRuntime"),
        reclaim_min_runtime=seconds(spec.reclaim_min_runtime, "spec.reclaimMinRuntime"),
        conditions=conditions(status.conditions if status else None),
        reported=amounts(status.allocated, "status.allocated") if status else None,
    )


def _queue_resource(record: kai.QueueResource | None) -> QueueResource | None:
    return None if record is None else QueueResource(record.quota, record.limit, record.over_quota_weight)


def bind_request(record: kai.BindRequest) -> model.BindRequest:
    spec = record.spec or kai.BindRequestSpec()
    status = record.status or kai.BindRequestStatus()
    gpu = spec.received_gpu or kai.ReceivedGPU()
    return model.BindRequest(
        meta=meta(record.metadata),
        pod_name=spec.pod_name,
        node=spec.selected_node,
        received_type=spec.received_resource_type or "",
        gpu_count=gpu.count or 0,
        gpu_portion=gpu.portion or "",
        gpu_groups=spec.selected_gpu_groups or (),
        backoff_limit=spec.backoff_limit,
        phase=status.phase or "",
        reason=status.reason or "",
        failed_attempts=status.failed_attempts or 0,
        claims=tuple(c.name for c in spec.resource_claim_allocations or ()),
    )


def topology(record: kai.Topology) -> Topology:
    levels = record.spec.levels if record.spec else None
    return Topology(meta(record.metadata), tuple(TopologyLevel(v.node_label, v.alias or "") for v in levels or ()))
