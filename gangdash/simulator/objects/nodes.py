"""Nodes as their kubelets report them, and the exporter pod that runs on each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gangdash.simulator.identity import owner, stamp, uid
from gangdash.simulator.plant import EXPORTER_CPU, EXPORTER_MEMORY, Node

if TYPE_CHECKING:
    from gangdash.simulator.world import World

_CONDITIONS = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}


def node(world: World, machine: Node) -> dict[str, Any]:
    """Return one machine; a cordoned one has the field and the taint that kubectl and the controller write."""
    labels = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", **machine.labels}
    metadata = {
        "name": machine.name,
        "uid": uid(world.seed, "Node", "", machine.name),
        "creationTimestamp": stamp(world.installed),
        "labels": labels,
        "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
    }
    number = list(world.nodes).index(machine.name)
    spec: dict[str, Any] = {"podCIDR": f"10.{100 + number}.0.0/24", "providerID": f"demo://{machine.name}"}
    if machine.cordoned:
        spec["unschedulable"] = True
        spec["taints"] = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": _status(world, machine)}


def exporter(world: World, machine: Node) -> dict[str, Any]:
    """Return the node's own pod: another scheduler's, yet it takes its share."""
    name = f"node-exporter-{uid(world.seed, 'Exporter', '', machine.name)[:5]}"
    born = stamp(world.installed)
    requests = {"cpu": f"{EXPORTER_CPU}m", "memory": f"{EXPORTER_MEMORY}Mi"}
    container = {
        "name": "exporter",
        "image": "registry.example.com/node-exporter:2.4",
        "resources": {"requests": requests},
    }
    metadata = {
        "name": name,
        "generateName": "node-exporter-",
        "namespace": "kube-system",
        "uid": uid(world.seed, "Pod", "kube-system", name),
        "creationTimestamp": born,
        "labels": {"app": "node-exporter"},
        "ownerReferences": [owner(world.seed, "apps/v1", "DaemonSet", "kube-system", "node-exporter")],
    }
    spec = {
        "nodeName": machine.name,
        "schedulerName": "default-scheduler",
        "priority": 2_000_001_000,
        "priorityClassName": "system-node-critical",
        "containers": [container],
        "tolerations": [{"operator": "Exists"}],
    }
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": born}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    status = {"phase": "Running", "conditions": conditions, "startTime": born, "qosClass": "Burstable"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _status(world: World, machine: Node) -> dict[str, Any]:
    allocatable = {"cpu": f"{machine.cpu}m", "memory": f"{machine.memory}Mi", "pods": "110"}
    capacity = {"cpu": str(-(-machine.cpu // 1000)), "memory": f"{machine.memory * 1024 + 1_572_864}Ki", "pods": "110"}
    if machine.gpus:
        allocatable["nvidia.com/gpu"] = capacity["nvidia.com/gpu"] = str(machine.gpus)
    born = stamp(world.installed)
    conditions = [
        {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": born}
        for kind, (status, reason, message) in _CONDITIONS.items()
    ]
    info = {"kubeletVersion": "v1.35.4", "osImage": "Ubuntu 24.04.3 LTS", "architecture": "amd64"}
    return {"capacity": capacity, "allocatable": allocatable, "conditions": conditions, "nodeInfo": info}
