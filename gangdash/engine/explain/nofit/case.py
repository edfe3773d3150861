"""What all findings of "no placement exists" need: the case at hand, amounts in documents' units, the largest pods."""

from __future__ import annotations

from typing import NamedTuple

from gangdash.engine.explain.classes import Class
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.room import NOTHING, STATE_REASONS, Lift, Lifts, Room, reason_lift
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.resources import is_counted_whole
from gangdash.engine.session import GPU, NodeState, TaskState
from gangdash.engine.verdict import Amount, FactValue, Waiting

Facts = dict[str, FactValue]
NO_WAIT = Waiting(helps="no")
UNITS = {"cpu": Unit.MILLICORES, "memory": Unit.BYTES, "gpu": Unit.GPU, "pods": Unit.PODS}
NODE_IDS = {
    "gpu": ConstraintId.NODE_GPU,
    "cpu": ConstraintId.NODE_CPU,
    "memory": ConstraintId.NODE_MEMORY,
    "pods": ConstraintId.NODE_POD_SLOTS,
}


class Case(NamedTuple):
    """One gang with the smallest set of things in its way."""

    gang: Gang
    room: Room
    binding: Lifts
    never: bool


def amount(room: Room, slot: int, value: float) -> Amount:
    """Return an amount of a session's resource in the documents' unit."""
    name = room.slot_name(slot)
    unit = UNITS.get(name, Unit.COUNT)
    if unit is Unit.COUNT and not is_counted_whole(name):
        value /= 1000
    return Amount(value, unit, name if unit is Unit.COUNT else "")


def need_per_pod(task: TaskState) -> Amount:
    """Return what a pod asks, in the resource that matters most: GPUs, a MIG profile, else CPU."""
    if task.request[GPU]:
        return Amount(task.request[GPU], Unit.GPU)
    if task.gpu.memory:
        return Amount(task.gpu.memory, Unit.GPU_MEMORY)
    for name, count in sorted(task.gpu.mig.items()):
        return Amount(count, Unit.COUNT, name)
    return Amount(task.request[0], Unit.MILLICORES)


def total_need(room: Room, slot: int = GPU) -> float:
    return sum(task.request[slot] for task in room.tasks)


def largest(room: Room) -> Class:
    """Return the class whose pods ask for most, GPUs before CPU."""
    return max(room.classes, key=lambda item: (item.task.request[GPU], item.task.request[0]))


def empty_lifts(room: Room) -> Lifts:
    """Return the lifts under which the cluster is empty and repaired."""
    lifts = {Lift("busy", name) for name in room.session.layout.names}
    return frozenset(lifts | {reason_lift(reason) for reason in STATE_REASONS})


def free_gpus(room: Room, node: NodeState) -> float:
    return max(room.supply(node, NOTHING)[GPU], 0.0)


def has_the_rest(room: Room, task: TaskState, node: NodeState, slot: int, lifts: Lifts) -> bool:
    """Whether the node has enough of everything but one resource."""
    supply = room.supply(node, lifts)
    return all(need <= supply[i] for i, need in enumerate(task.request) if i != slot)
