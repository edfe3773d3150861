"""A cluster of any size for measurements: nodes in racks, queues, gangs of eight GPUs a pod, most of them placed.

Objects have about the size of real ones (a pod is some 5 kB), so that reading them costs what it costs elsewhere.
Leaves out any play: what changes is what `changed_gangs` changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
CREATED = "2026-11-30T08:00:00Z"
RACK_SIZE = 16
TEAMS = 40
GPUS = 8
_IMAGES_PER_NODE = 25
_WAITING_EVERY = 10
"""One gang in so many waits; all others hold nodes."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is of each kind; pods are dealt to the gangs evenly, the first gangs get one more."""

    nodes: int
    pods: int
    gangs: int

    def members(self, gang: int) -> int:
        return self.pods // self.gangs + (gang < self.pods % self.gangs)


def bulk_objects(size: Size) -> Iterator[Object]:
    """Yield a whole cluster."""
    yield from _queues()
    yield {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "fabric", "creationTimestamp": CREATED},
        "spec": {"levels": [{"nodeLabel": "example.com/rack"}, {"nodeLabel": "kubernetes.io/hostname"}]},
    }
    for number in range(size.nodes):
        yield _node(number)
    for gang in range(size.gangs):
        yield from gang_objects(size, gang)


def changed_gangs(size: Size, *, share: int) -> Iterator[Object]:
    """Yield one gang in ``share``, each of its placed pods restarted once."""
    for gang in range(1, size.gangs, share):
        yield from gang_objects(size, gang, restarts=1)


def gang_objects(size: Size, gang: int, *, restarts: int = 0) -> Iterator[Object]:
    """Yield one PodGroup and its pods."""
    name, namespace = f"train-{gang:05}", f"team-{gang % TEAMS:02}"
    members = size.members(gang)
    yield {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": CREATED, "labels": _labels(name)},
        "spec": {"queue": namespace, "minMember": members, "priorityClassName": "train"},
        "status": {"phase": "Running"},
    }
    waits = gang % _WAITING_EVERY == 0
    first = gang * size.pods // size.gangs
    for index in range(members):
        node = "" if waits else f"node-{(first + index) % size.nodes:05}"
        yield _pod(f"{name}-{index:03}", name, namespace, node, restarts)


def _queues() -> Iterator[Object]:
    share = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    for name, parent in [("all", ""), *((f"team-{team:02}", "all") for team in range(TEAMS))]:
        yield {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": name, "creationTimestamp": CREATED},
            "spec": {"parentQueue": parent, "resources": {"cpu": share, "memory": share, "gpu": share}},
        }


def _node(number: int) -> Object:
    name = f"node-{number:05}"
    labels = {f"feature.node.kubernetes.io/cpu-cpuid.F{index:03}": "true" for index in range(60)}
    labels |= {"kubernetes.io/hostname": name, "example.com/rack": f"rack-{number // RACK_SIZE:04}"}
    labels |= {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
    amounts = {"cpu": "192", "memory": "2063880Mi", "pods": "250", "nvidia.com/gpu": str(GPUS * 10)}
    images = [
        {"names": [f"registry.example.com/image-{index}@sha256:{index:064}"], "sizeBytes": index * 1_000_000}
        for index in range(_IMAGES_PER_NODE)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "creationTimestamp": CREATED, "labels": labels},
        "spec": {"providerID": f"example:///{name}"},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [_condition("Ready", "True")],
            "images": images,
        },
    }


def _pod(name: str, gang: str, namespace: str, node: str, restarts: int) -> Object:
    metadata = {
        "name": name,
        "namespace": namespace,
        "creationTimestamp": CREATED,
        "annotations": {"pod-group-name": gang, "example.com/config": "x" * 400},
        "labels": _labels(gang) | {"kai.scheduler/queue": namespace},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": gang, "uid": gang, "controller": True}],
    }
    spec = {
        "schedulerName": "kai-scheduler",
        "priorityClassName": "train",
        "priority": 50,
        "containers": [_container()],
        "volumes": [{"name": f"volume-{index}", "emptyDir": {}} for index in range(4)],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": _status(node, restarts)}
    return pod | {"spec": spec | {"nodeName": node}} if node else pod


def _container() -> Object:
    requests = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": str(GPUS)}
    return {
        "name": "main",
        "image": "registry.example.com/train:2.8",
        "command": ["/bin/sh", "-c", "exec train --steps 100000"],
        "env": [{"name": f"SETTING_{index:02}", "value": f"value-{index:02}"} for index in range(30)],
        "resources": {"requests": requests, "limits": {"nvidia.com/gpu": str(GPUS)}},
        "volumeMounts": [{"name": f"volume-{index}", "mountPath": f"/mnt/{index}"} for index in range(4)],
    }


def _status(node: str, restarts: int) -> Object:
    if not node:
        return {"phase": "Pending", "conditions": [_condition("PodScheduled", "False") | {"reason": "Unschedulable"}]}
    state = {"name": "main", "ready": True, "restartCount": restarts, "state": {"running": {"startedAt": CREATED}}}
    kinds = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    conditions = [_condition(kind, "True") for kind in kinds]
    return {"phase": "Running", "startTime": CREATED, "conditions": conditions, "containerStatuses": [state]}


def _condition(kind: str, status: str) -> Object:
    return {"type": kind, "status": status, "lastTransitionTime": CREATED}


def _labels(gang: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": "train", "app.kubernetes.io/instance": gang, "example.com/cost-centre": "4711"}
