"""Changes to objects around a gang: create one, point a reference at one, label one, let time pass."""

from __future__ import annotations

from dataclasses import replace

from gangdash.engine.changes.change import (
    SUBGROUP_LABEL,
    UNLIMITED,
    Change,
    ChangeError,
    count,
    edit_gang,
    edit_node,
    edit_queue,
    edit_waiting_pods,
    number,
    replace_one,
    required,
)
from gangdash.engine.changes.gangs import evict_gang, relax_topology
from gangdash.engine.changes.nodes import repaired
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.queue import PriorityClass, Queue, QueueResource
from gangdash.engine.model.topology import Topology, TopologyLevel


def create_object(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Create ``Queue/NAME``, ``PriorityClass/NAME``, ``Topology/NAME`` or ``ConfigMap/NAMESPACE/NAME``."""
    kind, _, name = change.object.partition("/")
    if kind == "Queue":
        return replace(snapshot, queues=(*snapshot.queues, _new_queue(snapshot, change, name)))
    if kind == "PriorityClass":
        new = PriorityClass(Meta(name=name, uid=f"added-{name}"), value=count(change, "value", 50))
        return replace(snapshot, priority_classes=(*snapshot.priority_classes, new))
    if kind == "Topology":
        levels = tuple(TopologyLevel(label) for label in required(change, "levels").split("+"))
        return replace(snapshot, topologies=(*snapshot.topologies, Topology(Meta(name=name), levels)))
    if kind == "ConfigMap":
        return replace(snapshot, config_maps=snapshot.config_maps | {name})
    raise ChangeError(f"create_object: cannot create a {kind or change.object}")


def _new_queue(snapshot: ClusterSnapshot, change: Change, name: str) -> Queue:
    """A queue without bounds unless ``gpu``, ``cpu`` or ``memory`` give it a quota."""

    def resource(key: str) -> QueueResource:
        quota = number(change, key) if key in change.values else UNLIMITED
        return QueueResource(quota=quota, limit=UNLIMITED, over_quota_weight=1.0)

    labels = {k.removeprefix("label."): v for k, v in change.values.items() if k.startswith("label.")}
    return Queue(
        meta=Meta(name=name, uid=f"added-{name}", created=snapshot.as_of, labels=labels),
        parent=change.values.get("parent", ""),
        cpu=resource("cpu"),
        memory=resource("memory"),
        gpu=resource("gpu"),
    )


def fix_reference(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Point a gang's ``queue``, ``topology``, ``required``, ``preferred`` or ``priority_class`` at what exists.

    ``Queue/NAME`` has one reference, its ``parent``.
    """
    values = change.values
    if change.object.startswith("Queue/"):
        parent = required(change, "parent")
        return edit_queue(snapshot, change, lambda queue: replace(queue, parent=parent))
    if {"topology", "required", "preferred"} & set(values):
        snapshot = relax_topology(snapshot, change)
    fields = {"queue": "queue", "priority_class": "priority_class_name"}
    edits = {name: values[key] for key, name in fields.items() if key in values}
    if "subgroup_label" in values:
        label = {SUBGROUP_LABEL: values["subgroup_label"]}
        only = values.get("pod", "")

        def edit(pod: Pod) -> Pod:
            if only and pod.meta.name != only:
                return pod
            return replace(pod, meta=replace(pod.meta, labels={**pod.meta.labels, **label}))

        snapshot = edit_waiting_pods(snapshot, change, edit)
    return edit_gang(snapshot, change, lambda g: replace(g, **edits))  # type: ignore[arg-type]


def set_label(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Set labels on a Node, a Queue, a PodGroup or a ResourceClaim, ``Kind/NAME``; an empty value takes one off."""
    kind, _, key = change.object.partition("/")

    def labelled(meta: Meta) -> Meta:
        return replace(meta, labels={k: v for k, v in {**meta.labels, **change.values}.items() if v})

    if kind == "Node":
        return edit_node(snapshot, change, lambda n: replace(n, meta=labelled(n.meta)))
    if kind == "Queue":
        return edit_queue(snapshot, change, lambda q: replace(q, meta=labelled(q.meta)))
    if kind == "PodGroup":
        return edit_gang(snapshot, change, lambda g: replace(g, meta=labelled(g.meta)))
    if kind == "ResourceClaim":
        missing = f"set_label: no ResourceClaim {key!r} in the snapshot"
        claims = replace_one(
            snapshot.resource_claims,
            lambda claim: claim.meta.key == key,
            lambda claim: replace(claim, meta=labelled(claim.meta)),
            missing,
        )
        return replace(snapshot, resource_claims=claims)
    raise ChangeError(f"set_label: {change.object!r} is not Node/, Queue/, PodGroup/ or ResourceClaim/NAME")


def wait_for(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Show what waiting brings.

    ``seconds=N`` lets that much time pass; ``terminating=gone`` lets terminating pods go. With an object ``state``
    says what it comes to: ``Node/NAME`` is ``repaired``, ``PodGroup/NAMESPACE/NAME`` has ``ended`` or is ``ungated``.
    """
    if "seconds" in change.values:
        snapshot = replace(snapshot, as_of=snapshot.as_of + count(change, "seconds"))
    if change.values.get("terminating") == "gone":
        snapshot = replace(snapshot, pods=tuple(p for p in snapshot.pods if p.meta.deleted is None))
    if "state" in change.values:
        snapshot = _come_to(snapshot, change)
    return snapshot


def _come_to(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    kind, state = change.object.partition("/")[0], change.values["state"]
    if (kind, state) == ("Node", "repaired"):
        gone = {id(pod) for pod in snapshot.pods if pod.node_name == change.object[5:] and pod.meta.deleted is not None}
        snapshot = replace(snapshot, pods=tuple(pod for pod in snapshot.pods if id(pod) not in gone))
        return edit_node(snapshot, change, repaired)
    if (kind, state) == ("PodGroup", "ended"):
        return evict_gang(snapshot, replace(change, values={"ends": "true"}))
    if (kind, state) == ("PodGroup", "ungated"):
        return edit_waiting_pods(snapshot, change, lambda pod: replace(pod, gates=()))
    raise ChangeError(f"wait_for {change.object}: nothing is known of state={state!r} there")
