"""GPU requests that are not whole devices, or that must come from one NUMA zone."""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.explain.build import spoken
from gangdash.engine.explain.classes import Class
from gangdash.engine.explain.holders import holders_on, usable_nodes
from gangdash.engine.explain.nofit.case import Case, free_gpus, largest
from gangdash.engine.explain.room import NOTHING, Room
from gangdash.engine.identifiers import ConstraintId, NodeReason, Unit
from gangdash.engine.session import GPU, NodeState, RequestKind
from gangdash.engine.verdict import Amount, Constraint, Finding, ReasonCode


def no_device(case: Case) -> Finding:
    """Return that no device has room for a fraction, an amount of memory or a MIG profile, or that too few have."""
    room = case.room
    item = largest(room)
    usable = usable_nodes(room)
    if any(room.takes_share(item.task, node, NOTHING) for node in usable) and item.task.kind is not RequestKind.MIG:
        return _shares_busy(case, item, usable)
    if item.task.kind is RequestKind.MIG:
        return _profile(case, item)
    free = {node.name: _share_left(room, node) for node in usable}
    best = max(sorted(free), key=lambda name: free[name], default="no node")
    have, holders = free.get(best, 0.0), holders_on(case.gang, room)
    fits_when_empty = item.task.gpu.count <= 1 and not 0 < _largest_memory(room) < item.task.gpu.memory
    if usable and not have and holders and fits_when_empty and _says_memory(room, item):
        return _shares_busy(case, item, usable)
    return _no_share(case, item, best, have)


def _says_memory(room: Room, item: Class) -> bool:
    """Whether a request in MiB can be compared with the devices at all."""
    return item.task.kind is not RequestKind.GPU_MEMORY or _largest_memory(room) > 0


def _shares_busy(case: Case, item: Class, usable: list[NodeState]) -> Finding:
    """Return that single pods find a device, and too few devices are free for all of them."""
    room, holders = case.room, holders_on(case.gang, case.room)
    fit = room.fit_count(range(len(room.nodes)))
    source = "free shares of devices, node by node"
    return Finding(
        ReasonCode.GPUS_BUSY,
        form="shares" if fit else "no_share",
        facts={
            "pods": len(room.tasks),
            "each": _asked(item),
            "fit": fit,
            "nodes": len(usable),
            "holders": tuple(dict.fromkeys(spoken(holder.gang.rsplit("/", 1)[-1]) for holder in holders)),
        },
        binding=(Constraint(ConstraintId.CLUSTER_NODES, "pods that fit", len(room.tasks), fit, Unit.PODS, source),),
        holders=holders,
    )


def _asked(item: Class) -> Amount:
    """Return what a pod asks of one device."""
    gpu = item.task.gpu
    if item.task.kind is RequestKind.MIG:
        name, count = min(gpu.mig.items())
        return Amount(count, Unit.COUNT, name)
    return Amount(gpu.memory, Unit.GPU_MEMORY) if gpu.memory else Amount(gpu.portion, Unit.GPU)


def _no_share(case: Case, item: Class, best: str, have: float) -> Finding:
    gang, room = case.gang, case.room
    by_memory = item.task.kind is RequestKind.GPU_MEMORY
    memory = room.session.nodes[best].gpu_memory if best in room.session.nodes else 0
    told = _asked(item)
    there = Amount(have * memory, Unit.GPU_MEMORY) if by_memory else Amount(have, Unit.GPU)
    largest_memory = Amount(_largest_memory(room), Unit.GPU_MEMORY)
    form = "" if not by_memory else "unknown" if not largest_memory.value else ""
    if by_memory and 0 < largest_memory.value < told.value:
        form, there = "too_large", largest_memory
    devices = sum(1 for _ in _devices_with(room, best, item)) if best in room.session.nodes else 0
    if not form and there.value >= told.value:
        form = "devices"
    binding = (
        Constraint(ConstraintId.NODE_GPU, best, item.task.gpu.count, devices, Unit.GPU, "devices with enough free")
        if form == "devices"
        else Constraint(
            ConstraintId.NODE_GPU_MEMORY if by_memory else ConstraintId.NODE_GPU_FRACTION,
            "largest device" if form == "too_large" else best,
            told.value,
            there.value,
            told.unit,
            "memory of one device" if form == "too_large" else "largest free share of one device",
        )
    )
    return Finding(
        ReasonCode.GPU_SHAPE,
        form=form,
        facts={
            "need": told,
            "node": best,
            "have": devices if form == "devices" else there,
            "devices": item.task.gpu.count,
            "largest": largest_memory,
        },
        binding=(binding,),
        holders=holders_on(gang, room),
    )


def _devices_with(room: Room, name: str, item: Class) -> Iterator[float]:
    """Yield what is free of each device of a node that has enough for one share."""
    node = room.session.nodes[name]
    yield from (1.0 for _ in range(int(free_gpus(room, node))))
    need = node.memory_need(item.task.gpu)
    yield from (
        node.gpu_memory - used for used in node.shared.used.values() if used > 0 and node.gpu_memory - used >= need
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


def _profile(case: Case, item: Class) -> Finding:
    room = case.room
    told = _asked(item)
    slot = room.session.layout.index.get(told.name, GPU)
    offering = [node for node in usable_nodes(room) if node.allocatable[slot] > 0 and slot != GPU]
    best = max(offering, key=lambda n: (room.supply(n, NOTHING)[slot], n.name), default=None)
    have = room.supply(best, NOTHING)[slot] if best is not None else 0.0
    if have >= told.value:
        return _shares_busy(case, item, offering)
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
                ConstraintId.NODE_MIG,
                best.name if best else "no node",
                told.value,
                have,
                Unit.COUNT,
                f"allocatable {told.name}",
            ),
        ),
        holders=holders_on(case.gang, room, slot=slot, nodes=offering),
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
