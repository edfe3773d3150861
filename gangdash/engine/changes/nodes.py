"""Changes to nodes: cordon, taints, repair, new ones, and freeing one of its pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gangdash.engine.changes.change import (
    CORDON_TAINT,
    HOSTNAME_LABEL,
    PRESSURES,
    STATE_TAINT_PREFIXES,
    Change,
    ChangeError,
    count,
    edit_node,
    required,
    unbound,
)
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.meta import Condition
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.resources import GPU_NAMES, MIG_PREFIX
from gangdash.engine.model.selectors import Taint
from gangdash.engine.session.nodes import GPU_COUNT_LABEL


def uncordon(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    def edit(node: Node) -> Node:
        return replace(node, unschedulable=False, taints=tuple(t for t in node.taints if t.key != CORDON_TAINT))

    return edit_node(snapshot, change, edit)


def cordon(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    def edit(node: Node) -> Node:
        taint = Taint(CORDON_TAINT, effect="NoSchedule")
        return replace(node, unschedulable=True, taints=(*node.taints, taint))

    return edit_node(snapshot, change, edit)


def remove_taint(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    key = required(change, "key")

    def edit(node: Node) -> Node:
        kept = tuple(t for t in node.taints if t.key != key)
        if len(kept) == len(node.taints):
            raise ChangeError(f"remove_taint: node {node.name} has no taint {key!r}")
        return replace(node, taints=kept)

    return edit_node(snapshot, change, edit)


def _repaired_conditions(node: Node) -> tuple[Condition, ...]:
    good = {"Ready": "True", **dict.fromkeys(PRESSURES, "False")}
    return tuple(replace(c, status=good.get(c.type, c.status)) for c in node.conditions)


def repaired(node: Node) -> Node:
    """Return the node as it would be when healthy: ready, no taint by state, all its devices back.

    It has the devices of its capacity, or as many as discovery counted where the device plugin reports fewer.
    """
    gpus = {name: amount for name, amount in node.capacity.items() if name in GPU_NAMES}
    counted = node.meta.labels.get(GPU_COUNT_LABEL, "")
    if counted.isdecimal() and not any(name.startswith(MIG_PREFIX) for name in node.capacity):
        gpus[_gpu_name(node)] = max(int(counted), gpus.get(_gpu_name(node), 0))
    allocatable = {**node.allocatable, **{n: max(a, node.allocatable.get(n, 0)) for n, a in gpus.items()}}
    taints = tuple(t for t in node.taints if t.key == CORDON_TAINT or not t.key.startswith(STATE_TAINT_PREFIXES))
    return replace(node, conditions=_repaired_conditions(node), taints=taints, allocatable=allocatable)


def repair_device(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    def edit(node: Node) -> Node:
        fixed = repaired(node)
        if "gpu" not in change.values:
            return fixed
        return replace(fixed, allocatable={**fixed.allocatable, _gpu_name(node): count(change, "gpu")})

    return edit_node(snapshot, change, edit)


def _gpu_name(node: Node) -> str:
    """Return the resource under which the node offers GPUs, or would."""
    return next((name for name in GPU_NAMES if name in {**node.capacity, **node.allocatable}), GPU_NAMES[0])


def add_nodes(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Add ``count`` copies of a node, empty and healthy; ``label.KEY`` sets labels, ``gpu`` the GPUs of each."""
    name = change.object.removeprefix("Node/")
    like = next((n for n in snapshot.nodes if n.name == name), None)
    if like is None:
        raise ChangeError(f"add_nodes: no node {name!r} to copy in the snapshot")
    labels = {k.removeprefix("label."): v for k, v in change.values.items() if k.startswith("label.")}
    taken = {n.name for n in snapshot.nodes}
    names = (f"{name}-added-{i}" for i in range(1, 100_000))
    added = []
    amounts = {_gpu_name(like): count(change, "gpu")} if "gpu" in change.values else {}
    for _ in range(count(change, "count", 1)):
        new = next(n for n in names if n not in taken)
        copy = _copy_node(like, new, labels)
        added.append(replace(copy, allocatable={**copy.allocatable, **amounts}))
    return replace(snapshot, nodes=(*snapshot.nodes, *added))


def _copy_node(like: Node, name: str, labels: Mapping[str, str]) -> Node:
    """Return an empty, healthy, schedulable node shaped like another one, in the same domains unless labels differ."""
    named = {HOSTNAME_LABEL: name} if HOSTNAME_LABEL in like.meta.labels else {}
    meta = replace(like.meta, name=name, uid=f"added-{name}", labels={**like.meta.labels, **named, **labels})
    taints = tuple(t for t in like.taints if t.key != CORDON_TAINT)
    return repaired(replace(like, meta=meta, unschedulable=False, taints=taints))


def free_node(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Take every pod off a node but those that belong to the node itself (DaemonSet and mirror pods)."""
    name = change.object.removeprefix("Node/")
    if all(n.name != name for n in snapshot.nodes):
        raise ChangeError(f"free_node: no node {name!r} in the snapshot")
    pods = tuple(unbound(p) if p.node_name == name and not _belongs_to_node(p) else p for p in snapshot.pods)
    return replace(snapshot, pods=pods)


def _belongs_to_node(pod: Pod) -> bool:
    return any(owner.kind in ("DaemonSet", "Node") for owner in pod.meta.owners)
