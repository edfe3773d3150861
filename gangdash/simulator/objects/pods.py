"""The gangs' pods, with everything real ones carry: also what a reader must never keep.

PLANTED_SECRET stands wherever people put secrets: environment, command lines, pull secrets, the manifest in an
annotation. A reader that stores it anywhere has read too much.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from gangdash.simulator.gangs import Gang, Member, Shape
from gangdash.simulator.identity import owner, podgroup_name, stamp, uid
from gangdash.simulator.plant import PRIORITIES, QUEUE

if TYPE_CHECKING:
    from gangdash.simulator.world import World

PLANTED_SECRET = "planted-secret-4c1f9e"  # noqa: S105 (planted for readers to drop)
_GRACE = 30
_START_UP = timedelta(seconds=6)


def pod(world: World, gang: Gang, member: Member) -> dict[str, Any]:
    """Return one pod as it is now."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(world, gang, member),
        "spec": _spec(gang, member),
        "status": _status(world, gang, member),
    }


def _metadata(world: World, gang: Gang, member: Member) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": member.name,
        "namespace": gang.namespace,
        "uid": uid(world.seed, "Pod", gang.namespace, member.name),
        "creationTimestamp": stamp(member.created),
        "labels": pod_labels(gang, member),
        "annotations": _annotations(world, gang, member),
    }
    if gang.job:
        metadata["generateName"] = f"{gang.job}-"
        metadata["ownerReferences"] = [owner(world.seed, "batch/v1", "Job", gang.namespace, gang.job)]
    if gang.service:
        metadata["generateName"] = f"{member.role}-"
        metadata["ownerReferences"] = [owner(world.seed, "grove.io/v1alpha1", "PodClique", gang.namespace, member.role)]
    if member.deleted:
        metadata["deletionTimestamp"] = stamp(member.deleted + timedelta(seconds=_GRACE))
        metadata["deletionGracePeriodSeconds"] = _GRACE
    return metadata


def pod_labels(gang: Gang, member: Member) -> dict[str, str]:
    """Return a pod's labels: queue and, for services, the chain of names that Grove and Dynamo write."""
    service = gang.service
    if service is None:
        labels = {"app": gang.name, QUEUE: gang.queue}
        return labels | ({"batch.kubernetes.io/job-name": gang.job, "job-name": gang.job} if gang.job else {})
    group = member.role.startswith(f"{service.name}-0-workers-")
    labels = {
        "app.kubernetes.io/component": "pcsg-podclique" if group else "pcs-podclique",
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/name": member.role,
        "app.kubernetes.io/part-of": service.name,
        "grove.io/podclique": member.role,
        "grove.io/podclique-pod-index": str(member.index),
        "grove.io/podcliqueset-replica-index": "0",
        "grove.io/podgang": gang.name,
        "kai.scheduler/subgroup-name": member.role,
    }
    if group:
        labels["grove.io/podcliquescalinggroup"] = f"{service.name}-0-workers"
        labels["grove.io/podcliquescalinggroup-replica-index"] = str(gang.replica)
    if gang.replica:
        labels["grove.io/base-podgang"] = service.base_name()
    if service.dynamo:
        labels["nvidia.com/dynamo-graph-deployment-name"] = service.name
        labels["nvidia.com/dynamo-component"] = "workers" if group else member.role.removeprefix(f"{service.name}-0-")
        labels["nvidia.com/dynamo-namespace"] = f"{service.namespace}-{service.name}"
        labels[QUEUE] = service.queue
    return labels


def _annotations(world: World, gang: Gang, member: Member) -> dict[str, str]:
    annotations = {"pod-group-name": podgroup_name(world.seed, gang)}
    if gang.service:
        annotations["kai.scheduler/skip-podgrouper"] = "true"
    elif not gang.job:
        applied = {
            "kind": "Pod",
            "metadata": {"name": member.name},
            "spec": {"containers": [_container(gang, member.shape, member.index)]},
        }
        annotations["kubectl.kubernetes.io/last-applied-configuration"] = json.dumps(applied)
    if member.bound:
        annotations["received-resource-type"] = "Regular"
    return annotations


def _container(gang: Gang, shape: Shape, index: int) -> dict[str, Any]:
    resources: dict[str, Any] = {"requests": {"cpu": f"{shape.cpu}m", "memory": f"{shape.memory}Mi"}}
    if shape.gpus:
        resources["limits"] = {"nvidia.com/gpu": str(shape.gpus)}
        resources["requests"]["nvidia.com/gpu"] = str(shape.gpus)
    return {
        "name": "main",
        "image": gang.image,
        "command": ["python", "-m", "train", f"--api-key={PLANTED_SECRET}"],
        "args": ["--rank", str(index), "--token", PLANTED_SECRET],
        "env": [{"name": "HF_TOKEN", "value": PLANTED_SECRET}, {"name": "WORLD_SIZE", "value": str(gang.minimum)}],
        "envFrom": [{"secretRef": {"name": f"{gang.namespace}-credentials"}}],
        "resources": resources,
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _spec(gang: Gang, member: Member) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "schedulerName": "kai-scheduler",
        "containers": [_container(gang, member.shape, member.index)],
        "imagePullSecrets": [{"name": f"pull-{PLANTED_SECRET}"}],
        "serviceAccountName": "default",
        "restartPolicy": "Never" if gang.job else "Always",
        "terminationGracePeriodSeconds": _GRACE,
        "priority": PRIORITIES[gang.priority].value,
        "priorityClassName": gang.priority,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{state}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for state in ("not-ready", "unreachable")
        ],
    }
    if gang.selector:
        spec["nodeSelector"] = dict(gang.selector)
    if member.gates:
        spec["schedulingGates"] = [{"name": gate} for gate in member.gates]
    if member.bound:
        spec["nodeName"] = member.node
    return spec


def _status(world: World, gang: Gang, member: Member) -> dict[str, Any]:
    status: dict[str, Any] = {"phase": "Pending", "qosClass": "Burstable"}
    if member.bound is None:
        conditions = _waiting_conditions(gang, member)
        return status | ({"conditions": conditions} if conditions else {})
    running = not gang.image_broken and world.now - member.bound >= _START_UP
    begun = stamp(member.bound)
    ready = running and member.finished is None
    if member.finished:
        status["phase"] = "Succeeded"
    elif running:
        status["phase"] = "Running"
    conditions = [_condition("PodScheduled", "True", begun), _condition("Initialized", "True", begun)]
    conditions += [_condition(kind, str(ready), begun) for kind in ("ContainersReady", "Ready")]
    bound = {"reason": "Bound", "message": f"Pod bound successfully to node {member.node}"}
    conditions.append(_condition("PodBound", "True", begun) | bound)
    return status | {
        "conditions": conditions,
        "startTime": begun,
        "containerStatuses": [_container_status(world, gang, member, running=running)],
    }


def _waiting_conditions(gang: Gang, member: Member) -> list[dict[str, Any]]:
    if member.gates:
        text = {"reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"}
        return [_condition("PodScheduled", "False", stamp(member.created)) | text]
    if not gang.message or gang.message_since is None or member.asked or member.created > gang.message_since:
        return []
    text = {"reason": "Unschedulable", "message": gang.message}
    return [_condition("PodScheduled", "False", stamp(gang.message_since)) | text]


def _condition(kind: str, status: str, since: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": since}


def _container_status(world: World, gang: Gang, member: Member, *, running: bool) -> dict[str, Any]:
    begun = stamp((member.bound or world.now) + _START_UP)
    state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
    if gang.image_broken:
        state = {"waiting": {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{gang.image}"'}}
    elif member.finished:
        ended = {"exitCode": 0, "reason": "Completed", "startedAt": begun, "finishedAt": stamp(member.finished)}
        state = {"terminated": ended}
    elif running:
        state = {"running": {"startedAt": begun}}
    ready = running and member.finished is None
    shown = {"name": "main", "ready": ready, "started": ready, "restartCount": 0}
    return shown | {"image": gang.image, "imageID": "", "state": state, "lastState": {}}


def job(world: World, gang: Gang) -> dict[str, Any]:
    """Return the Job whose pods the gang is."""
    finished = [member for member in gang.members if member.finished]
    status: dict[str, Any] = {"startTime": stamp(gang.created)}
    if finished:
        status |= {"succeeded": len(finished), "completionTime": stamp(finished[0].finished or world.now)}
    else:
        status |= {"active": len(gang.members), "ready": sum(member.bound is not None for member in gang.members)}
    template = {
        "metadata": {"labels": {QUEUE: gang.queue}},
        "spec": {"containers": [_container(gang, gang.shape, 0)]},
    }
    metadata = {
        "name": gang.job,
        "namespace": gang.namespace,
        "uid": uid(world.seed, "Job", gang.namespace, gang.job),
        "creationTimestamp": stamp(gang.created),
        "labels": {QUEUE: gang.queue},
        "annotations": {"kai.scheduler/batch-min-member": str(gang.minimum)},
    }
    spec = {"parallelism": gang.minimum, "completions": gang.minimum, "backoffLimit": 6, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec, "status": status}
