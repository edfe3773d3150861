"""Amounts that others use now: GPUs busy or scattered, pod slots, CPU, memory or another resource."""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.explain.build import first, spoken
from gangdash.engine.explain.classes import Class
from gangdash.engine.explain.holders import holders_on, usable_nodes
from gangdash.engine.explain.nofit.case import (
    NODE_IDS,
    UNITS,
    Case,
    Facts,
    amount,
    free_gpus,
    has_the_rest,
    largest,
    total_need,
)
from gangdash.engine.explain.nofit.shapes import no_device
from gangdash.engine.explain.room import NOTHING, Lift, Room
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.session import GPU, NodeState, RequestKind, TaskState
from gangdash.engine.verdict import Amount, Constraint, Finding, ReasonCode


def in_use(case: Case, amounts: list[str]) -> Iterator[Finding]:
    for name in sorted(amounts, key=lambda n: (n != "gpu", n)):
        if name == "gpu":
            yield _gpus_busy(case)
        elif name == "pods":
            yield _pod_slots(case)
        else:
            yield _short(case, name)


def _gpus_busy(case: Case) -> Finding:
    gang, room = case.gang, case.room
    item = largest(room)
    if item.task.kind in {RequestKind.FRACTION, RequestKind.GPU_MEMORY, RequestKind.MIG}:
        return no_device(case)
    usable = [node for node in usable_nodes(room) if node.allocatable[GPU] > 0]
    need = total_need(room)
    free = {node.name: _usable_gpus(room, item, node) for node in usable}
    idle = sum(free_gpus(room, node) for node in usable)
    ranked = sorted(usable, key=lambda node: (-free[node.name], node.name))
    most = free[ranked[0].name] if ranked else 0.0
    fit = room.fit_count([node.index for node in usable])
    each = Amount(item.task.request[GPU], Unit.GPU)
    holders = holders_on(gang, room)
    facts: Facts = {
        "need": Amount(need, Unit.GPU),
        "free": Amount(sum(free.values()), Unit.GPU),
        "idle": Amount(idle, Unit.GPU),
        "total": Amount(sum(node.allocatable[GPU] for node in usable), Unit.GPU),
        "nodes": len(usable),
        "pods": len(room.tasks),
        "fit": fit,
        "each": each,
        "best": tuple(f"{_number(free[node.name])} on {node.name}" for node in ranked if free[node.name] > 0),
        "holders": tuple(dict.fromkeys(spoken(holder.gang.rsplit("/", 1)[-1]) for holder in holders)),
    }
    cluster = Constraint(
        ConstraintId.CLUSTER_GPU,
        "nodes it may use",
        need,
        sum(free.values()),
        Unit.GPU,
        "free GPUs that its pods can use",
    )
    best = ranked[0].name if ranked else "no node"
    node = Constraint(ConstraintId.NODE_GPU, best, each.value, most, Unit.GPU, "free on the best node")
    pods = Constraint(
        ConstraintId.CLUSTER_NODES, "pods that fit", len(room.tasks), fit, Unit.PODS, "free GPUs node by node"
    )
    if sum(free.values()) >= need:
        alone = most < each.value
        return Finding(
            ReasonCode.FRAGMENTED,
            form="none_fits" if alone else "",
            facts=facts,
            binding=(node,) if alone else (pods,),
            slack=(cluster,) if alone else (cluster, node),
            holders=holders,
        )
    form = "beside" if idle >= need else "" if idle and holders else "all_held" if holders else "unheld"
    return Finding(ReasonCode.GPUS_BUSY, form=form, facts=facts, binding=(cluster,), holders=holders)


def _usable_gpus(room: Room, item: Class, node: NodeState) -> float:
    """Return the node's free GPUs, no more than its other free amounts have pods for."""
    supply = list(room.supply(node, NOTHING))
    free = max(supply[GPU], 0.0)
    supply[GPU] = 1e18
    pods = room.capacity(room.classes.index(item), node.index, tuple(supply), NOTHING)
    return min(free, pods * item.task.request[GPU]) if len(room.classes) == 1 else free if pods else 0.0


def _number(value: float) -> str:
    return f"{value:g}"


def _pod_slots(case: Case) -> Finding:
    gang, room = case.gang, case.room
    slot = room.session.layout.index["pods"]
    lifts = frozenset({Lift("busy", "pods")})
    full = [
        node
        for node in room.nodes
        if room.supply(node, NOTHING)[slot] < 1
        and any(
            room.allows(i, node, NOTHING) and room.capacity(i, node.index, tuple(room.supply(node, lifts)), lifts)
            for i in range(len(room.classes))
        )
    ]
    allowed = sum(node.allocatable[slot] for node in full)
    used = sum(node.allocatable[slot] - node.idle[slot] for node in full)
    domains = [domain.name for domain in room.domains or () if any(node.index in domain.nodes for node in full)]
    return Finding(
        ReasonCode.POD_SLOTS,
        form="domain" if domains else "",
        facts={
            "nodes": first(node.name for node in full),
            "count": len(full),
            "used": used,
            "allowed": allowed,
            "domain": domains[0] if domains else "",
        },
        binding=tuple(
            Constraint(
                ConstraintId.NODE_POD_SLOTS,
                node.name,
                node.allocatable[slot] - node.idle[slot] + 1,
                node.allocatable[slot],
                Unit.PODS,
                f"Node/{node.name} allocatable pods",
            )
            for node in full[:5]
        ),
        holders=holders_on(gang, room, slot=slot, nodes=full),
    )


def _short(case: Case, name: str) -> Finding:
    """Return that CPU, memory or another resource is short, with the pod that asks for most of it."""
    gang, room = case.gang, case.room
    slot = room.session.layout.index[name]
    item = max(room.classes, key=lambda c: c.task.request[slot])
    index = room.classes.index(item)
    usable = [node for node in room.nodes if room.allows(index, node, NOTHING)]
    others = [node for node in usable if has_the_rest(room, item.task, node, slot, NOTHING)] or usable
    best = max(others, key=lambda node: (room.supply(node, NOTHING)[slot], -node.index), default=None)
    have = max(room.supply(best, NOTHING)[slot], 0.0) if best is not None else 0.0
    need = item.task.request[slot]
    told, there = amount(room, slot, need), amount(room, slot, have)
    alone = [n for n in room.nodes if n.allocatable[slot] > 0] if name not in UNITS else []
    fit = room.fit_count(range(len(room.nodes)))
    per_node = Constraint(
        NODE_IDS.get(name, ConstraintId.NODE_RESOURCE),
        f"{best.name if best is not None else 'no node'} {name}",
        told.value,
        there.value,
        told.unit,
        f"pod {item.task.name}, free on the best node",
    )
    pods = Constraint(
        ConstraintId.CLUSTER_NODES, "pods that fit", len(room.tasks), fit, Unit.PODS, f"free {name} node by node"
    )
    facts: Facts = {
        "pod": item.task.name,
        "need": told,
        "node": best.name if best is not None else "none",
        "have": there,
        "short": Amount(told.value - there.value, told.unit, told.name),
        "pods": len(room.tasks),
        "fit": fit,
        "each": told,
        "offers": len(alone),
    }
    return Finding(
        ReasonCode.RESOURCE_SHORT,
        form="pods" if have >= need else "beside" if len(others) < len(usable) else "",
        facts=facts | _beside(room, item.task, best),
        binding=(pods,) if have >= need else (per_node,),
        slack=(per_node,) if have >= need else (),
        holders=holders_on(gang, room, slot=slot, nodes=[best] if best is not None else []),
    )


def _beside(room: Room, task: TaskState, best: NodeState | None) -> Facts:
    """Return what else the pod asks that only few nodes offer, for a sentence that must say why others do not count."""
    rare = [(name, slot) for name, slot in room.session.layout.index.items() if task.request[slot] > 0 and slot > GPU]
    offering = {name: [n for n in room.nodes if n.allocatable[slot] >= task.request[slot]] for name, slot in rare}
    scarce = min((name for name in offering if name != "pods"), key=lambda n: (len(offering[n]), n), default="")
    return {"wanted": scarce, "only": best.name if best is not None else "none"}
