"""KAI's objects: PodGroups with what the scheduler says of them, Queues with their use, BindRequests, Topology."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gangdash.engine.model.cycle import FitError
from gangdash.simulator.gangs import Gang, Member
from gangdash.simulator.identity import owner, podgroup_name, stamp, uid
from gangdash.simulator.plant import BLOCK, HOST, POOL, QUEUE, QUEUES, RACK, TOPOLOGY, Queue, ancestors

if TYPE_CHECKING:
    from gangdash.simulator.world import World


def podgroup(world: World, gang: Gang) -> dict[str, Any]:
    """Return one gang's PodGroup."""
    name = podgroup_name(world.seed, gang)
    labels = {QUEUE: gang.queue} | ({POOL: gang.pool} if gang.pool else {})
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": gang.namespace,
        "uid": uid(world.seed, "PodGroup", gang.namespace, name),
        "creationTimestamp": stamp(gang.created),
        "generation": 1,
        "labels": labels,
        "annotations": _annotations(world, gang),
    }
    if gang.job:
        metadata["ownerReferences"] = [owner(world.seed, "batch/v1", "Job", gang.namespace, gang.job, controller=False)]
    if gang.service:
        labels |= {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": gang.service.name}
        metadata["ownerReferences"] = [
            owner(world.seed, "scheduler.grove.io/v1alpha1", "PodGang", gang.namespace, gang.name)
        ]
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": _spec(gang),
        "status": _status(gang),
    }


def _annotations(world: World, gang: Gang) -> dict[str, str]:
    annotations: dict[str, str] = {}
    if gang.last_start:
        annotations["kai.scheduler/last-start-timestamp"] = stamp(gang.last_start)
    if gang.evicted:
        annotations["kai.scheduler/last-eviction-timestamp"] = stamp(gang.evicted)
    if gang.job:
        own = uid(world.seed, "Job", gang.namespace, gang.job)
        top = f"name: {gang.job}\nuid: {own}\ngroup: batch\nversion: v1\nkind: Job\n"
        annotations["kai.scheduler/top-owner-metadata"] = top
        annotations["kai.scheduler/batch-min-member"] = str(gang.minimum)
    if gang.service:
        annotations["kai.scheduler/skip-podgrouper"] = "true"
        annotations["grove.io/topology-name"] = TOPOLOGY
    return annotations


def _spec(gang: Gang) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "minMember": gang.minimum,
        "queue": gang.queue,
        "priorityClassName": gang.priority,
    }
    levels = {"requiredTopologyLevel": gang.required_level, "preferredTopologyLevel": gang.preferred_level}
    levels = {key: level for key, level in levels.items() if level}
    if levels:
        spec["topologyConstraint"] = {"topology": TOPOLOGY, **levels}
    if gang.subgroups:
        spec["subGroups"] = [{"name": name, "minMember": count} for name, count in gang.subgroups.items()]
    return spec


def _status(gang: Gang) -> dict[str, Any]:
    placed = [member for member in gang.members if member.bound and member.counts]
    resources: dict[str, Any] = {}
    for name, members in (
        ("requested", [m for m in gang.members if not m.deleted and not m.finished]),
        ("allocated", placed),
    ):
        if members:
            resources[name] = _amounts(members)
    if placed and not gang.preemptible:
        resources["allocatedNonPreemptible"] = resources["allocated"]
    status: dict[str, Any] = {"resourcesStatus": resources}
    if gang.message and gang.waits and not any(member.counts for member in gang.members):
        status["schedulingConditions"] = [_condition(gang)]
    return status


def _condition(gang: Gang) -> dict[str, Any]:
    return {
        "type": "UnschedulableOnNodePool",
        "status": "True",
        "nodePool": "default",
        "reason": "Unschedulable",
        "message": gang.message,
        "reasons": [_reason(error) for error in gang.errors],
        "lastTransitionTime": stamp(gang.message_since or gang.created),
        "transitionID": str(gang.transition),
    }


def _reason(error: FitError) -> dict[str, Any]:
    return {"reason": error.reason, "message": error.message}


def _amounts(members: Iterable[Member]) -> dict[str, str]:
    """Return the sum of what pods ask for, as quantities; what nobody asks for is left out."""
    shapes = [member.shape for member in members]
    cpu, memory, gpus = (sum(getattr(shape, name) for shape in shapes) for name in ("cpu", "memory", "gpus"))
    amounts = {"cpu": f"{cpu}m" if cpu % 1000 else str(cpu // 1000), "memory": f"{memory}Mi"}
    return amounts | ({"nvidia.com/gpu": str(gpus)} if gpus else {})


def queue(world: World, terms: Queue) -> dict[str, Any]:
    """Return a queue with what its gangs and its children's use."""
    spec: dict[str, Any] = {
        "resources": {
            "gpu": {"quota": terms.quota, "limit": terms.limit, "overQuotaWeight": terms.weight},
            "cpu": {"quota": -1, "limit": -1, "overQuotaWeight": 1},
            "memory": {"quota": -1, "limit": -1, "overQuotaWeight": 1},
        }
    }
    optional = {"parentQueue": terms.parent, "displayName": terms.display_name, "priority": terms.priority}
    spec |= {key: value for key, value in optional.items() if value}
    metadata: dict[str, Any] = {
        "name": terms.name,
        "uid": uid(world.seed, "Queue", "", terms.name),
        "creationTimestamp": stamp(world.installed),
    }
    if terms.pool:
        metadata["labels"] = {POOL: terms.pool}
    status = _queue_status(world, terms)
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": metadata, "spec": spec, "status": status}


def _queue_status(world: World, terms: Queue) -> dict[str, Any]:
    own = [gang for gang in world.gangs if terms in ancestors(gang.queue)]
    pods = [(gang, member) for gang in own for member in gang.members if not member.deleted and not member.finished]
    placed = [(gang, member) for gang, member in pods if member.bound]
    parts = {
        "requested": [member for _gang, member in pods],
        "allocated": [member for _gang, member in placed],
        "allocatedNonPreemptible": [member for gang, member in placed if not gang.preemptible],
    }
    status: dict[str, Any] = {name: _amounts(members) for name, members in parts.items() if members}
    children = [child.name for child in QUEUES.values() if child.parent == terms.name]
    return status | ({"childQueues": children} if children else {})


def bind_request(world: World, gang: Gang, member: Member) -> dict[str, Any]:
    """Return the scheduler's order to the binder; without status while the binder has not answered."""
    metadata = {
        "name": member.name,
        "namespace": gang.namespace,
        "uid": uid(world.seed, "BindRequest", gang.namespace, member.name),
        "creationTimestamp": stamp(member.asked or member.created),
        "labels": {"selected-node": member.node},
        "ownerReferences": [owner(world.seed, "v1", "Pod", gang.namespace, member.name, controller=False)],
    }
    portion = {"count": member.shape.gpus, "portion": "1.00"} if member.shape.gpus else {"portion": "0.00"}
    spec = {
        "podName": member.name,
        "selectedNode": member.node,
        "receivedResourceType": "Regular",
        "receivedGPU": portion,
    }
    shown = {"apiVersion": "scheduling.run.ai/v1alpha2", "kind": "BindRequest", "metadata": metadata, "spec": spec}
    return shown | ({"status": {"phase": "Succeeded"}} if member.bound else {})


def topology(world: World) -> dict[str, Any]:
    """Return the one topology: block, rack, host."""
    metadata = {
        "name": TOPOLOGY,
        "uid": uid(world.seed, "Topology", "", TOPOLOGY),
        "creationTimestamp": stamp(world.installed),
        "ownerReferences": [owner(world.seed, "grove.io/v1alpha1", "ClusterTopologyBinding", "", TOPOLOGY)],
    }
    spec = {"levels": [{"nodeLabel": label} for label in (BLOCK, RACK, HOST)]}
    return {"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": metadata, "spec": spec}
