"""A change and the small edits that changes are made of: one object found, one object replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import PodGroup
from gangdash.engine.model.queue import Queue
from gangdash.engine.model.resources import CPU, GPU_NAMES, MEMORY, is_counted_whole
from gangdash.engine.verdict import FixKind

GROUP_ANNOTATION = "pod-group-name"
SUBGROUP_LABEL = "kai.scheduler/subgroup-name"
CORDON_TAINT = "node.kubernetes.io/unschedulable"
HOSTNAME_LABEL = "kubernetes.io/hostname"
STATE_TAINT_PREFIXES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "nvidia.com/gpu-unhealthy")
UNLIMITED = -1.0
PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


T = TypeVar("T")


class ChangeError(ValueError):
    """A change that cannot be made: names the object, the key and what was expected."""


@dataclass(frozen=True, slots=True)
class Change:
    """``object`` is a node or queue name, ``namespace/name`` of a gang, or ``Kind/name`` where the kind is open."""

    kind: FixKind
    object: str = ""
    values: Mapping[str, str] = field(default_factory=dict)

    def describe(self) -> dict[str, str]:
        """Return the change as the documents carry it: one flat object."""
        return {"kind": self.kind.value, "object": self.object, **self.values}


def replace_one(
    items: tuple[T, ...], matches: Callable[[T], bool], edit: Callable[[T], T], missing: str
) -> tuple[T, ...]:
    if not any(matches(item) for item in items):
        raise ChangeError(missing)
    return tuple(edit(item) if matches(item) else item for item in items)


def edit_node(snapshot: ClusterSnapshot, change: Change, edit: Callable[[Node], Node]) -> ClusterSnapshot:
    name = change.object.removeprefix("Node/")
    missing = f"{change.kind.value}: no node {name!r} in the snapshot"
    return replace(snapshot, nodes=replace_one(snapshot.nodes, lambda n: n.name == name, edit, missing))


def edit_queue(snapshot: ClusterSnapshot, change: Change, edit: Callable[[Queue], Queue]) -> ClusterSnapshot:
    name = change.object.removeprefix("Queue/")
    missing = f"{change.kind.value}: no queue {name!r} in the snapshot"
    return replace(snapshot, queues=replace_one(snapshot.queues, lambda q: q.name == name, edit, missing))


def gang_key(change: Change) -> str:
    return change.object.removeprefix("PodGroup/")


def edit_gang(snapshot: ClusterSnapshot, change: Change, edit: Callable[[PodGroup], PodGroup]) -> ClusterSnapshot:
    key = gang_key(change)
    missing = f"{change.kind.value}: no PodGroup {key!r} in the snapshot"
    return replace(snapshot, podgroups=replace_one(snapshot.podgroups, lambda g: g.key == key, edit, missing))


def is_member(pod: Pod, key: str) -> bool:
    return pod.meta.annotations.get(GROUP_ANNOTATION) == key.partition("/")[2]


def is_waiting(pod: Pod) -> bool:
    """Whether a pod holds no node and is not on its way out."""
    return pod.phase == "Pending" and not pod.node_name and pod.meta.deleted is None


def edit_waiting_pods(snapshot: ClusterSnapshot, change: Change, edit: Callable[[Pod], Pod]) -> ClusterSnapshot:
    key = gang_key(change)
    if not any(group.key == key for group in snapshot.podgroups):
        raise ChangeError(f"{change.kind.value}: no PodGroup {key!r} in the snapshot")
    pods = tuple(edit(p) if is_member(p, key) and is_waiting(p) else p for p in snapshot.pods)
    return replace(snapshot, pods=pods)


def number(change: Change, key: str) -> float:
    text = change.values.get(key, "")
    if text in ("unlimited", "none"):
        return UNLIMITED
    try:
        return float(text)
    except ValueError as error:
        raise ChangeError(f"{change.kind.value} {change.object}: {key}={text!r} is not a number") from error


def count(change: Change, key: str, default: int | None = None) -> int:
    if key not in change.values and default is not None:
        return default
    value = number(change, key)
    if value < 0 or value != int(value):
        raise ChangeError(f"{change.kind.value} {change.object}: {key} must be a whole number, 0 or more")
    return int(value)


def required(change: Change, key: str) -> str:
    if key not in change.values:
        raise ChangeError(f"{change.kind.value} {change.object}: {key}=... is missing")
    return change.values[key]


def amounts(change: Change) -> dict[str, int]:
    """Read ``gpu``, ``cpu`` (cores), ``memory`` (GiB) and other resource names into scheduler units."""
    out: dict[str, int] = {}
    for key in change.values:
        if key == "gpu":
            out[GPU_NAMES[0]] = count(change, key)
        elif key == CPU:
            out[CPU] = round(number(change, key) * 1000)
        elif key == MEMORY:
            out[MEMORY] = round(number(change, key) * 2**30)
        elif "/" in key:
            out[key] = count(change, key) * (1 if is_counted_whole(key) else 1000)
    return out


def unbound(pod: Pod) -> Pod:
    """Return the pod as its controller would make it again: pending, on no node."""
    meta = replace(pod.meta, deleted=None)
    return replace(pod, meta=meta, node_name="", phase="Pending", started=None, container_states=(), conditions=())
