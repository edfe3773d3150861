"""Raw API objects as small as they may be, for the tests of reading."""

from __future__ import annotations

from typing import Any

NOW = "2026-11-30T09:00:00Z"

Object = dict[str, Any]


def thing(api_version: str, kind: str, name: str, namespace: str = "", /, **fields: Any) -> Object:
    metadata: Object = {"name": name, "uid": f"uid-{kind}-{name}", "creationTimestamp": NOW}
    if namespace:
        metadata["namespace"] = namespace
    metadata |= fields.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def pod(name: str, namespace: str = "team", **spec: Any) -> Object:
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1500m", "nvidia.com/gpu": "1"}}}]
    spec = {"schedulerName": "kai-scheduler", "containers": containers} | spec
    metadata = {"annotations": {"pod-group-name": "gang"}}
    return thing("v1", "Pod", name, namespace, metadata=metadata, spec=spec, status={"phase": "Pending"})


def node(name: str, gpus: int = 8) -> Object:
    amounts = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": str(gpus), "pods": "110"}
    return thing("v1", "Node", name, status={"allocatable": amounts, "capacity": amounts})


def queue(name: str, **spec: Any) -> Object:
    return thing("scheduling.run.ai/v2", "Queue", name, spec=spec)


def podgroup(name: str = "gang", namespace: str = "team", **spec: Any) -> Object:
    return thing("scheduling.run.ai/v2alpha2", "PodGroup", name, namespace, spec={"minMember": 1, "queue": "q"} | spec)


def shard(name: str, **spec: Any) -> Object:
    return thing("kai.scheduler/v1", "SchedulingShard", name, spec=spec)


def scheduler_deployment(name: str, *args: str, image: str = "ghcr.io/kai/scheduler:v0.17.1") -> Object:
    containers = [{"name": name, "image": image, "args": list(args)}]
    return thing(
        "apps/v1", "Deployment", name, "kai-scheduler", spec={"template": {"spec": {"containers": containers}}}
    )


def config_map(name: str, namespace: str, **data: str) -> Object:
    return thing("v1", "ConfigMap", name, namespace, data={key.replace("_", "."): text for key, text in data.items()})


def dump(*items: Object, **keys: Any) -> Object:
    return {"apiVersion": "v1", "kind": "List", "asOf": NOW, "items": list(items), **keys}


def scheduler_snapshot(**objects: list[Object] | None) -> Object:
    return {"config": {"actions": "allocate"}, "schedulerParams": {"schedulerName": "kai-scheduler"},
            "rawObjects": objects, "case": {"now": NOW}}  # fmt: skip
