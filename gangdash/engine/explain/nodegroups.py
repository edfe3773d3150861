"""Which nodes refuse the step, counted by the first reason that an admin would look at."""

from __future__ import annotations

from collections import defaultdict

from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.room import Room
from gangdash.engine.identifiers import NodeReason
from gangdash.engine.session import GPU, NodeState
from gangdash.engine.verdict import NodeGroup

EXAMPLES = 5
_ORDER = (
    NodeReason.CORDONED,
    NodeReason.NOT_READY,
    NodeReason.STATE_TAINT,
    NodeReason.TAINT,
    NodeReason.SELECTOR,
    NodeReason.POD_AFFINITY,
    NodeReason.VOLUME,
    NodeReason.PORTS,
    NodeReason.NO_DEVICE_PLUGIN,
    NodeReason.GPU_SHAPE,
    NodeReason.CLAIM,
    NodeReason.NUMA,
)
_SLOTS = {"cpu": NodeReason.CPU, "memory": NodeReason.MEMORY, "gpu": NodeReason.GPU, "pods": NodeReason.POD_SLOTS}


def node_groups(gang: Gang, room: Room) -> tuple[NodeGroup, ...]:
    """Return every node of the cluster once, by its first reason; nodes of other shards are a group of their own."""
    found: dict[NodeReason, list[str]] = defaultdict(list)
    inside = _inside(room)
    for node in room.nodes:
        found[_reason(room, node, inside)].append(node.name)
    own = {node.name for node in room.nodes}
    found[NodeReason.OTHER_SHARD].extend(name for name in gang.context.nodes if name not in own)
    groups = [
        NodeGroup(reason, len(names), tuple(sorted(names)[:EXAMPLES])) for reason, names in found.items() if names
    ]
    return tuple(sorted(groups, key=lambda group: (-group.count, group.reason)))


def _inside(room: Room) -> set[int] | None:
    """Return the nodes of all domains that the step may choose from; None without a constraint."""
    if room.domains is None:
        return None
    return {index for domain in room.domains for index in domain.nodes}


def _reason(room: Room, node: NodeState, inside: set[int] | None) -> NodeReason:
    refusing = room.reasons[0][node.index] if room.classes else frozenset()
    first = next((reason for reason in _ORDER if reason in refusing), None)
    if first is not None:
        return first
    if inside is not None and node.index not in inside:
        return NodeReason.OUTSIDE_DOMAIN if room.is_pinned else NodeReason.NO_TOPOLOGY_LABEL
    return short_of(room, 0, node) or NodeReason.FITS


def short_of(room: Room, index: int, node: NodeState) -> NodeReason | None:
    """Return the amount that one pod of a class lacks on a node, GPUs first; None when it fits."""
    task = room.classes[index].task
    supply = room.supply(node, frozenset())
    if task.asks_shared_gpu and room.takes_share(task, node, frozenset()) < 1:
        return NodeReason.GPU
    slots = sorted(range(len(supply)), key=lambda slot: slot != GPU)
    for slot in slots:
        need = 0 if task.asks_shared_gpu and slot == GPU else task.request[slot]
        if need > supply[slot]:
            return _short_reason(room, node, slot)
    return None


def _short_reason(room: Room, node: NodeState, slot: int) -> NodeReason:
    if slot == GPU:
        lost = room.lost(node)
        return next((reason for reason in lost if reason is not NodeReason.TERMINATING), NodeReason.GPU)
    return _SLOTS.get(room.slot_name(slot), NodeReason.RESOURCE)
