"""Small Kubernetes objects for the tests of the fake API server."""

from __future__ import annotations

from typing import Any


def pod(name: str, namespace: str = "team", **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "example/train:1"}]},
        "status": {"phase": "Pending"},
    }


def pods(count: int, namespace: str = "team") -> list[dict[str, Any]]:
    return [pod(f"pod-{number:03}", namespace) for number in range(count)]


def queue(name: str) -> dict[str, Any]:
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": {}}
