"""Small Kubernetes objects as an API server would have them, for tests that poll one."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
CREATED = "2026-11-30T08:00:00Z"


def node(name: str, *, gpus: int = 8, cordoned: bool = False, labels: dict[str, str] | None = None) -> Object:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"node-{name}", "creationTimestamp": CREATED, "labels": labels or {}},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": CREATED}],
        },
    }


def queue(name: str, *, parent: str = "", gpus: int = -1) -> Object:
    share = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    spec: Object = {"resources": {"cpu": share, "memory": share, "gpu": {**share, "quota": gpus, "limit": gpus}}}
    if parent:
        spec["parentQueue"] = parent
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name, "uid": f"queue-{name}", "creationTimestamp": CREATED},
        "spec": spec,
    }


def podgroup(name: str, *, namespace: str = "team-a", queue: str = "leaf", minimum: int = 1, uid: str = "") -> Object:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"gang-{namespace}-{name}",
            "creationTimestamp": CREATED,
        },
        "spec": {"queue": queue, "minMember": minimum},
    }


def pod(name: str, gang: str, *, namespace: str = "team-a", gpus: int = 1, on: str = "", secret: str = "") -> Object:
    container: Object = {
        "name": "main",
        "image": "example/train:1",
        "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": str(gpus)}, "limits": {"nvidia.com/gpu": str(gpus)}},
    }
    if secret:
        container |= {"env": [{"name": "TOKEN", "value": secret}], "command": ["run", f"--key={secret}"]}
    spec: Object = {"schedulerName": "kai-scheduler", "containers": [container], "priority": 50}
    if on:
        spec["nodeName"] = on
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"pod-{namespace}-{name}",
            "creationTimestamp": CREATED,
            "annotations": {"pod-group-name": gang},
            "labels": {"kai.scheduler/queue": "leaf"},
        },
        "spec": spec,
        "status": {"phase": "Running" if on else "Pending"},
    }


def gang(name: str, *, pods: int = 1, gpus: int = 1, on: str = "", **more: Any) -> list[Object]:
    """Return a PodGroup whose minimum is all of its pods, and the pods."""
    namespace = more.get("namespace", "team-a")
    members = [pod(f"{name}-{index}", name, namespace=namespace, gpus=gpus, on=on) for index in range(pods)]
    return [podgroup(name, minimum=pods, **more), *members]


def cluster(*extra: Object | list[Object]) -> list[Object]:
    """Return a cluster of two nodes with 8 GPUs each, one department with one leaf queue, and what is added."""
    found = [node("n1"), node("n2"), queue("department"), queue("leaf", parent="department")]
    for part in extra:
        found += part if isinstance(part, list) else [part]
    return found
