"""The served models' chain: DynamoGraphDeployment, PodCliqueSet, scaling group, PodCliques, PodGangs.

Statuses are as unhelpful as the real ones: a PodGang stays Pending for ever and no condition says why a pod waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gangdash.simulator.gangs import Gang, Role, Service
from gangdash.simulator.identity import owner, stamp, uid
from gangdash.simulator.objects.pods import PLANTED_SECRET
from gangdash.simulator.plant import BLOCK, HOST, QUEUE, RACK, TOPOLOGY

if TYPE_CHECKING:
    from gangdash.simulator.world import World

_LEVELS = {BLOCK: "block", RACK: "rack", HOST: "host"}
_GROVE = "grove.io/v1alpha1"
_DYNAMO = "nvidia.com/v1beta1"


def chain(world: World, service: Service) -> Iterator[dict[str, Any]]:
    """Yield everything between the top object and the PodGroups."""
    gangs = [gang for gang in world.gangs if gang.service is service]
    if service.dynamo:
        yield _graph(world, service, gangs)
    yield _clique_set(world, service, gangs)
    yield _scaling_group(world, service, gangs)
    for gang in gangs:
        yield _pod_gang(world, gang)
        for name, role in service.clique_names(gang.replica).items():
            yield _clique(world, gang, name, role)


def binding(world: World) -> dict[str, Any]:
    """Return Grove's side of the topology."""
    metadata = {
        "name": TOPOLOGY,
        "uid": uid(world.seed, "ClusterTopologyBinding", "", TOPOLOGY),
        "creationTimestamp": stamp(world.installed),
    }
    levels = [{"domain": domain, "key": key} for key, domain in _LEVELS.items()]
    in_sync = _condition("SchedulerTopologyDrift", False, "InSync", "All topologies are in sync", world.installed)
    status = {"observedGeneration": 1, "conditions": [in_sync]}
    return {
        "apiVersion": _GROVE,
        "kind": "ClusterTopologyBinding",
        "metadata": metadata,
        "spec": {"levels": levels},
        "status": status,
    }


def _object(world: World, service: Service, api_version: str, kind: str, name: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": "grove-operator", "app.kubernetes.io/part-of": service.name}
    if service.dynamo:
        labels["nvidia.com/dynamo-graph-deployment-name"] = service.name
    metadata = {
        "name": name,
        "namespace": service.namespace,
        "uid": uid(world.seed, kind, service.namespace, name),
        "creationTimestamp": stamp(service.created),
        "generation": 1,
        "labels": labels,
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _owned(shown: dict[str, Any], world: World, service: Service, kind: str, name: str) -> dict[str, Any]:
    api_version = _DYNAMO if kind == "DynamoGraphDeployment" else _GROVE
    shown["metadata"]["ownerReferences"] = [owner(world.seed, api_version, kind, service.namespace, name)]
    return shown


def _graph(world: World, service: Service, gangs: list[Gang]) -> dict[str, Any]:
    shown = _object(world, service, _DYNAMO, "DynamoGraphDeployment", service.name)
    shown["metadata"]["annotations"] = {"nvidia.com/kai-scheduler-queue": service.queue}
    env = [{"name": "HF_TOKEN", "value": PLANTED_SECRET}]
    components = [_component(role.name, role.replicas, role, env) for role in service.front]
    workers = _component("workers", service.replicas, service.workers[0], env)
    nodes = sum(role.replicas for role in service.workers)
    components.append(workers | ({"multinode": {"nodeCount": nodes}} if nodes > 1 else {}))
    up = all(_scheduled(gang) for gang in gangs)
    reason = "all_resources_are_ready" if up else "some_resources_are_not_ready"
    ready = _condition("Ready", up, reason, reason.replace("_", " "), service.created)
    made = {role.name: ("PodClique", f"{service.name}-0-{role.name}", role.replicas) for role in service.front}
    made["workers"] = ("PodCliqueScalingGroup", f"{service.name}-0-workers", service.replicas)
    counts = {
        name: {"componentKind": kind, "componentNames": [fqn], "replicas": replicas}
        for name, (kind, fqn, replicas) in made.items()
    }
    status: dict[str, Any] = {"observedGeneration": 1, "state": "successful" if up else "pending"}
    status |= {"components": counts, "conditions": [ready]}
    return shown | {"spec": {"backendFramework": "vllm", "components": components}, "status": status}


def _component(name: str, replicas: int, role: Role, env: list[dict[str, str]]) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "env": env}
    if role.shape.gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(role.shape.gpus)}}
    return {"name": name, "type": name, "replicas": replicas, "podTemplate": {"spec": {"containers": [container]}}}


def _clique_set(world: World, service: Service, gangs: list[Gang]) -> dict[str, Any]:
    shown = _object(world, service, _GROVE, "PodCliqueSet", service.name)
    shown["metadata"]["labels"][QUEUE] = service.queue
    shown["metadata"]["finalizers"] = ["grove.io/podcliqueset.grove.io"]
    if service.dynamo:
        _owned(shown, world, service, "DynamoGraphDeployment", service.name)
    template: dict[str, Any] = {
        "cliques": [{"name": role.name, "spec": _clique_spec(role)} for role in (*service.front, *service.workers)],
        "podCliqueScalingGroups": [
            {
                "name": "workers",
                "cliqueNames": [role.name for role in service.workers],
                "replicas": service.replicas,
                "minAvailable": 1,
            }
        ],
    }
    if service.required_level:
        pack = {"required": _LEVELS[service.required_level]}
        template["topologyConstraint"] = {"topologyName": TOPOLOGY, "pack": pack}
    available = int(all(_scheduled(gang) for gang in gangs if gang.replica == 0))
    status = {"observedGeneration": 1, "replicas": 1, "availableReplicas": available, "updatedReplicas": available}
    return shown | {"spec": {"replicas": 1, "template": template}, "status": status}


def _clique_spec(role: Role) -> dict[str, Any]:
    requests = {"cpu": f"{role.shape.cpu}m", "memory": f"{role.shape.memory}Mi"}
    resources: dict[str, Any] = {"requests": requests}
    if role.shape.gpus:
        resources["limits"] = {"nvidia.com/gpu": str(role.shape.gpus)}
    container: dict[str, Any] = {"name": "main", "image": "registry.example.com/serve:1.4", "resources": resources}
    container["env"] = [{"name": "HF_TOKEN", "value": PLANTED_SECRET}]
    pod_spec = {"schedulerName": "kai-scheduler", "containers": [container]}
    return {"roleName": role.name, "replicas": role.replicas, "minAvailable": role.replicas, "podSpec": pod_spec}


def _scaling_group(world: World, service: Service, gangs: list[Gang]) -> dict[str, Any]:
    shown = _object(world, service, _GROVE, "PodCliqueScalingGroup", f"{service.name}-0-workers")
    _owned(shown, world, service, "PodCliqueSet", service.name)
    up = sum(_scheduled(gang) for gang in gangs)
    reason = f"{'Insufficient' if up < 1 else 'Sufficient'}AvailablePodCliqueScalingGroupReplicas"
    text = f"{up} of {service.replicas} replicas are available, 1 is needed"
    breached = _condition("MinAvailableBreached", up < 1, reason, text, service.created)
    status = {"observedGeneration": 1, "replicas": service.replicas, "conditions": [breached]}
    status |= {"scheduledReplicas": up, "availableReplicas": up, "updatedReplicas": up}
    names = [role.name for role in service.workers]
    return shown | {"spec": {"cliqueNames": names, "replicas": service.replicas, "minAvailable": 1}, "status": status}


def _clique(world: World, gang: Gang, name: str, role: Role) -> dict[str, Any]:
    service = gang.service
    assert service is not None
    shown = _object(world, service, _GROVE, "PodClique", name)
    shown["metadata"]["labels"] |= {"grove.io/podgang": gang.name, "app.kubernetes.io/name": name}
    if service.dynamo:
        shown["metadata"]["labels"]["nvidia.com/dynamo-component"] = component_of(service, role)
    if gang.replica:
        shown["metadata"]["labels"]["grove.io/base-podgang"] = service.base_name()
    if role in service.front:
        _owned(shown, world, service, "PodCliqueSet", service.name)
    else:
        group = f"{service.name}-0-workers"
        shown["metadata"]["labels"]["grove.io/podcliquescalinggroup"] = group
        shown["metadata"]["labels"]["grove.io/podcliquescalinggroup-replica-index"] = str(gang.replica)
        _owned(shown, world, service, "PodCliqueScalingGroup", group)
    return shown | {"spec": _clique_spec(role), "status": _clique_status(gang, name, role)}


def component_of(service: Service, role: Role) -> str:
    """Return the graph's component that a role belongs to: roles of the scaling group are one."""
    return role.name if role in service.front else "workers"


def _clique_status(gang: Gang, name: str, role: Role) -> dict[str, Any]:
    """Count as the operator does: pods whose gate went away count as gated until they are placed."""
    placed = sum(member.role == name and member.bound is not None for member in gang.members)
    enough = placed >= role.replicas
    found = f"{placed} of {role.replicas} pods are scheduled"
    since = gang.started or gang.created
    reason = "SufficientScheduledPods" if enough else "InsufficientScheduledPods"
    scheduled = _condition("PodCliqueScheduled", enough, reason, found, since)
    reason = "SufficientReadyPods" if enough else "ScheduledReplicasBelowMinAvailable"
    breached = _condition("MinAvailableBreached", not enough, reason, found, since)
    return {
        "observedGeneration": 1,
        "replicas": role.replicas,
        "readyReplicas": placed,
        "scheduledReplicas": placed,
        "scheduleGatedReplicas": role.replicas - placed,
        "updatedReplicas": role.replicas,
        "conditions": [scheduled, breached],
    }


def _pod_gang(world: World, gang: Gang) -> dict[str, Any]:
    service = gang.service
    assert service is not None
    shown = _object(world, service, "scheduler.grove.io/v1alpha1", "PodGang", gang.name)
    shown["metadata"]["labels"] |= {QUEUE: gang.queue, "grove.io/scheduler-name": "kai-scheduler"}
    shown["metadata"]["annotations"] = {"grove.io/topology-name": TOPOLOGY}
    _owned(shown, world, service, "PodCliqueSet", service.name)
    groups = [
        {
            "name": name,
            "minReplicas": role.replicas,
            "podReferences": [
                {"namespace": gang.namespace, "name": member.name} for member in gang.members if member.role == name
            ],
        }
        for name, role in service.clique_names(gang.replica).items()
    ]
    spec: dict[str, Any] = {"podgroups": groups}
    if gang.required_level:
        spec["topologyConstraint"] = {"packConstraint": {"required": gang.required_level}}
    text = "All pods of the gang exist"
    initialised = _condition("Initialized", True, "PodGangPodsCreated", text, gang.created)
    return shown | {"spec": spec, "status": {"phase": "Pending", "conditions": [initialised]}}


def _condition(kind: str, status: bool, reason: str, message: str, since: datetime) -> dict[str, Any]:
    return {
        "type": kind,
        "status": str(status),
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
        "lastTransitionTime": stamp(since),
    }


def _scheduled(gang: Gang) -> bool:
    return all(member.bound is not None for member in gang.members)
