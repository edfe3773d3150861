"""Small cluster facts for tests of the store: what a reading would have become."""

from __future__ import annotations

from typing import Any

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.meta import Condition, Meta
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Container, Pod
from gangdash.engine.model.podgroup import PodGroup
from gangdash.engine.model.queue import Queue, QueueResource
from gangdash.engine.model.topology import Topology, TopologyLevel

AS_OF = 1_796_000_000.0
EVERY_KIND = frozenset({"Node", "Pod", "PodGroup", "Queue", "Topology"})


def node(name: str, *, gpus: int = 8, labels: dict[str, str] | None = None, **more: Any) -> Node:
    """Return a ready node; ``offered`` is what is left of its GPUs where devices are broken."""
    offered = more.pop("offered", gpus)
    ready = more.pop("ready", "True")
    return Node(
        meta=Meta(name=name, uid=f"node-{name}", labels=labels or {}),
        allocatable={"cpu": 64_000, "memory": 2**38, "nvidia.com/gpu": offered},
        capacity={"cpu": 64_000, "memory": 2**38, "nvidia.com/gpu": gpus},
        conditions=(Condition("Ready", ready),),
        **more,
    )


def pod(name: str, gang: str = "", *, gpus: int = 1, namespace: str = "team-a", on: str = "", **more: Any) -> Pod:
    """Return a pod that joins a gang by annotation; running where it has a node."""
    annotations = {"pod-group-name": gang} if gang else {}
    annotations |= more.pop("annotations", {})
    meta = Meta(
        name=name,
        namespace=namespace,
        uid=more.pop("uid", f"pod-{namespace}-{name}"),
        annotations=annotations,
        labels=more.pop("labels", {}),
        deleted=more.pop("deleted", None),
    )
    requests = {"nvidia.com/gpu": gpus} if gpus else {}
    return Pod(
        meta=meta,
        phase=more.pop("phase", "Running" if on else "Pending"),
        scheduler_name=more.pop("scheduler_name", "kai-scheduler"),
        node_name=on,
        containers=more.pop("containers", (Container("main", requests=requests),)),
        **more,
    )


def podgroup(name: str, *, namespace: str = "team-a", queue: str = "q", **more: Any) -> PodGroup:
    meta = Meta(name=name, namespace=namespace, uid=more.pop("uid", f"gang-{namespace}-{name}"), created=AS_OF - 600)
    return PodGroup(meta=meta, queue=queue, **more)


def queue(name: str, *, parent: str = "", quota: float | None = 8, limit: float | None = -1) -> Queue:
    return Queue(meta=Meta(name=name, uid=f"queue-{name}"), parent=parent, gpu=QueueResource(quota, limit, 1))


def topology(name: str, *labels: str) -> Topology:
    return Topology(meta=Meta(name=name), levels=tuple(TopologyLevel(label) for label in labels))


def snapshot(*facts: Any, as_of: float = AS_OF, read: frozenset[str] = EVERY_KIND) -> ClusterSnapshot:
    """Return a snapshot of these facts, sorted into their lists by type."""
    return ClusterSnapshot(
        as_of=as_of,
        source="live",
        nodes=tuple(fact for fact in facts if isinstance(fact, Node)),
        pods=tuple(fact for fact in facts if isinstance(fact, Pod)),
        podgroups=tuple(fact for fact in facts if isinstance(fact, PodGroup)),
        queues=tuple(fact for fact in facts if isinstance(fact, Queue)),
        topologies=tuple(fact for fact in facts if isinstance(fact, Topology)),
        read=read,
    )
