"""A pod larger than any node, or a gang larger than the cluster: proved on the empty, repaired cluster."""

from __future__ import annotations

from gangdash.engine.explain.classes import Class
from gangdash.engine.explain.nofit.case import (
    NO_WAIT,
    NODE_IDS,
    amount,
    empty_lifts,
    has_the_rest,
    total_need,
)
from gangdash.engine.explain.room import Lifts, Room
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.session import NodeState
from gangdash.engine.verdict import Constraint, Finding, ReasonCode

CLUSTER_IDS = {"gpu": ConstraintId.CLUSTER_GPU, "cpu": ConstraintId.CLUSTER_CPU, "memory": ConstraintId.CLUSTER_MEMORY}


def too_small(room: Room, amounts: list[str]) -> Finding:
    slot = room.session.layout.index[amounts[0]]
    empty = empty_lifts(room)
    item = max(room.classes, key=lambda c: c.task.request[slot])
    index = room.classes.index(item)
    usable = [node for node in room.nodes if room.allows(index, node, empty)]
    if not any(room.capacity(index, node.index, tuple(room.supply(node, empty)), empty) for node in usable):
        return _node_too_small(room, item, slot, usable, empty)
    return _cluster_too_small(room, slot, usable, empty)


def _nearest(room: Room, item: Class, slots: list[int], usable: list[NodeState], empty: Lifts) -> tuple[int, NodeState]:
    """Return the resource and the node that come nearest: the node has enough of everything else."""

    def share(choice: tuple[int, NodeState]) -> tuple[float, int]:
        slot, node = choice
        return room.supply(node, empty)[slot] / item.task.request[slot], -node.index

    choices = [
        (slot, node)
        for slot in slots
        for node in usable
        if item.task.request[slot] > 0 and has_the_rest(room, item.task, node, slot, empty)
    ]
    return max(choices, key=share) if choices else (slots[0], usable[0])


def _node_too_small(room: Room, item: Class, slot: int, usable: list[NodeState], empty: Lifts) -> Finding:
    need = item.task.request[slot]
    best = max(usable, key=lambda node: (room.supply(node, empty)[slot], -node.index), default=None)
    together = best is not None and need <= room.supply(best, empty)[slot]
    if together:
        slot, best = _nearest(room, item, room.slots, usable, empty)
        need = item.task.request[slot]
    have = room.supply(best, empty)[slot] if best is not None else 0.0
    name = best.name if best is not None else "no node"
    told, there = amount(room, slot, need), amount(room, slot, have)
    return Finding(
        ReasonCode.NODE_TOO_SMALL,
        form="together" if together else "" if have > 0 else "none",
        facts={"need": told, "node": name, "have": there, "nodes": len(usable), "pod": item.task.name},
        binding=(
            Constraint(
                NODE_IDS.get(room.slot_name(slot), ConstraintId.NODE_RESOURCE),
                name,
                told.value,
                there.value,
                told.unit,
                f"Node/{name} allocatable",
            ),
        ),
        waiting=NO_WAIT,
    )


def _cluster_too_small(room: Room, slot: int, usable: list[NodeState], empty: Lifts) -> Finding:
    fit = room.fit_count([node.index for node in usable], empty)
    each = amount(room, slot, max(item.task.request[slot] for item in room.classes))
    need = total_need(room, slot)
    have = sum(room.supply(node, empty)[slot] for node in usable)
    told, there = amount(room, slot, need), amount(room, slot, have)
    in_sum = Constraint(
        CLUSTER_IDS.get(room.slot_name(slot), ConstraintId.CLUSTER_RESOURCE),
        "nodes it may use",
        told.value,
        there.value,
        told.unit,
        f"allocatable of {len(usable)} nodes",
    )
    in_pods = Constraint(
        ConstraintId.CLUSTER_NODES, "pods that fit, empty", len(room.tasks), fit, Unit.PODS, "exact search"
    )
    form = "" if len(room.classes) == 1 else "sum" if have < need else "mixed"
    return Finding(
        ReasonCode.CLUSTER_TOO_SMALL,
        form=form,
        facts={
            "pods": len(room.tasks),
            "each": each,
            "nodes": len(usable),
            "fit": fit,
            "need": told,
            "have": there,
        },
        binding=(in_sum if form == "sum" else in_pods,),
        slack=(in_sum,) if have >= need else (),
        waiting=NO_WAIT,
    )
