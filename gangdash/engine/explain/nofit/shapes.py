"""GPU requests that are not whole devices, or that must come from one NUMA zone."""

from __future__ import annotations

from gangdash.engine.explain.classes import Class
from gangdash.engine.explain.holders import holders_on, usable_nodes
from gangdash.engine.explain.nofit.case import Case, free_gpus, largest
from gangdash.engine.explain.room import NOTHING, Room
from gangdash.engine.identifiers import ConstraintId, NodeReason, Unit
from gangdash.engine.session import GPU, NodeState, RequestKind
from gangdash.engine.verdict import Amount, Constraint, Finding, ReasonCode


def no_device(case: Case) -> Finding:
    """Return that no device has room for a fraction, an amount of memory or a MIG profile."""
    gang, room = case.gang, case.room
    item = largest(room)
    if item.task.kind is RequestKind.MIG:
        return _profile(room, item)
    need = item.task.gpu
    free = {node.name: _share_left(room, node) for node in usable_nodes(room)}
    best = max(sorted(free), key=lambda name: free[name], default="no node")
    have = free.get(best, 0.0)
    by_memory = item.task.kind is RequestKind.GPU_MEMORY
    memory = room.session.nodes[best].gpu_memory if best in room.session.nodes else 0
    told = Amount(need.memory, Unit.GPU_MEMORY) if by_memory else Amount(need.portion, Unit.GPU)
    there = Amount(have * memory, Unit.GPU_MEMORY) if by_memory else Amount(have, Unit.GPU)
    largest_memory = _largest_memory(room)
    too_large = by_memory and need.memory > largest_memory
    return Finding(
        ReasonCode.GPU_SHAPE,
        form="too_large" if too_large else "",
        facts={
            "need": told,
            "node": best,
            "have": there,
            "devices": need.count,
            "largest": Amount(largest_memory, Unit.GPU_MEMORY),
            "pods": len(room.tasks),
            "fit": room.fit_count(range(len(room.nodes))),
        },
        binding=(
            Constraint(
                ConstraintId.NODE_GPU_MEMORY if by_memory else ConstraintId.NODE_GPU_FRACTION,
                "largest device" if too_large else best,
                told.value,
                largest_memory if too_large else there.value,
                told.unit,
                "memory of one device" if too_large else "largest free share of one device",
            ),
        ),
        holders=holders_on(gang, room),
    )


def _largest_memory(room: Room) -> float:
    """Return MiB of the largest GPU that a node of the shard says it has."""
    return float(max((node.gpu_memory for node in room.nodes if node.has_gpu_memory), default=0))


def _share_left(room: Room, node: NodeState) -> float:
    """Return the largest share of one device of the node that is free."""
    if free_gpus(room, node) >= 1:
        return 1.0
    left = [1 - used / node.gpu_memory for used in node.shared.used.values() if used > 0 and node.gpu_memory]
    return round(max(left, default=0.0), 4)


def _profile(room: Room, item: Class) -> Finding:
    name, count = min(item.task.gpu.mig.items())
    slot = room.session.layout.index.get(name, GPU)
    offering = [node for node in room.nodes if node.allocatable[slot] > 0 and slot != GPU]
    best = max(offering, key=lambda n: (room.supply(n, NOTHING)[slot], n.name), default=None)
    have = room.supply(best, NOTHING)[slot] if best is not None else 0.0
    told = Amount(count, Unit.COUNT, name)
    return Finding(
        ReasonCode.GPU_SHAPE,
        form="profile",
        facts={
            "need": told,
            "nodes": len(offering),
            "have": Amount(have, Unit.COUNT),
            "node": best.name if best else "none",
        },
        binding=(
            Constraint(
                ConstraintId.NODE_MIG, best.name if best else "no node", count, have, Unit.COUNT, f"allocatable {name}"
            ),
        ),
    )


def numa_split(case: Case) -> Finding:
    """Return that the free GPUs of the best node are in two NUMA zones."""
    gang, room = case.gang, case.room
    split = [n for n in room.nodes if any(NodeReason.NUMA in reasons[n.index] for reasons in room.reasons)]
    node = max(split, key=lambda n: (room.zones[n.name].best, n.name))
    zones = room.zones[node.name]
    need = largest(room).task.request[GPU]
    return Finding(
        ReasonCode.NUMA_SPLIT,
        facts={
            "node": node.name,
            "free": Amount(zones.total, Unit.GPU),
            "best": zones.best,
            "need": Amount(need, Unit.GPU),
        },
        binding=(
            Constraint(
                ConstraintId.NODE_NUMA, node.name, need, zones.best, Unit.GPU, f"NodeResourceTopology/{node.name}"
            ),
        ),
        holders=holders_on(gang, room, nodes=[node]),
    )
