"""It would fit with the nodes or devices repaired: which nodes, in which state, since when, and what keeps them so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from gangdash.engine.explain.build import first, named, spoken
from gangdash.engine.explain.components import pods_of
from gangdash.engine.explain.devices import known_gpus, offered_gpus
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.gates import is_ready
from gangdash.engine.explain.holders import holder_key
from gangdash.engine.explain.refusal import blocking_taints, is_state_taint
from gangdash.engine.explain.room import NOTHING, Lifts, Room, reason_lift
from gangdash.engine.identifiers import ConstraintId, NodeReason, Unit
from gangdash.engine.model.node import Node
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.selectors import Taint
from gangdash.engine.session import GPU, NodeState, Status
from gangdash.engine.verdict import (
    Amount,
    Constraint,
    FactValue,
    Finding,
    Fix,
    FixKind,
    Holder,
    ReasonCode,
    Waiting,
    Who,
)

_PLUGIN_LABEL = "nvidia.com/gpu.deploy.device-plugin"
_UPGRADE_LABEL = "nvidia.com/gpu-driver-upgrade-state"
_CODES: Mapping[NodeReason, ReasonCode] = {
    NodeReason.NO_DEVICE_PLUGIN: ReasonCode.DEVICE_PLUGIN_MISSING,
    NodeReason.DEVICES_UNHEALTHY: ReasonCode.DEVICES_UNHEALTHY,
    NodeReason.TERMINATING: ReasonCode.TERMINATING_PODS_HOLD,
    NodeReason.CORDONED: ReasonCode.NODES_CORDONED,
    NodeReason.STATE_TAINT: ReasonCode.NODES_TAINTED_BY_STATE,
    NodeReason.NOT_READY: ReasonCode.NODES_NOT_READY,
}
"""In the order in which a code is chosen when several states stand in the way together."""
_REFUSING = frozenset({NodeReason.CORDONED, NodeReason.STATE_TAINT, NodeReason.NOT_READY})
_TRIED_MAX = 16
"""Nodes of which the smallest part that is enough is looked for, one search each."""


def finding(gang: Gang, room: Room, lifts: Lifts) -> Finding:
    """Return the finding for a smallest set of node states whose repair makes the step fit."""
    reasons = [reason for reason in _CODES if reason_lift(reason) in lifts]
    affected = {reason: _affected(room, reason, lifts) for reason in reasons}
    spare = _spare(room, affected, lifts)
    affected = {reason: [node for node in nodes if node.index not in spare] for reason, nodes in affected.items()}
    lead = reasons[0]
    made = _BUILDERS[lead](Lost(gang, room, affected[lead]))
    constraints = _own([entry for reason in reasons for entry in _constraints(reason, affected[reason])])
    fixes = [fix for reason in reasons for fix in _fixes(room, reason, affected[reason])]
    if len(reasons) > 1:
        made |= {"others": first({node.name for r in reasons[1:] for node in affected[r]})}
    form = str(made.pop("form", ""))
    return Finding(
        _CODES[lead],
        form=form,
        facts=made,
        binding=tuple(constraints),
        waiting=Waiting(helps="unknown", on=first(f"Node/{node.name}" for node in affected[lead])),
        fixes=tuple(fixes),
        holders=_leaving(affected.get(NodeReason.TERMINATING, [])),
    )


def _spare(room: Room, affected: Mapping[NodeReason, list[NodeState]], lifts: Lifts) -> frozenset[int]:
    """Return the nodes that may stay as they are: the rest, repaired, is enough and no smaller part of it is.

    Asked for nodes that take no pod at all in their state. Of many, all are told.
    """
    refusing = {node.index: node for reason in _REFUSING for node in affected.get(reason, ())}
    if len(refusing) > _TRIED_MAX or not all(reason in _REFUSING for reason in affected):
        return frozenset()
    spare: frozenset[int] = frozenset()
    for index in sorted(refusing, key=lambda index: (room.supply(refusing[index], NOTHING)[GPU], -index)):
        if room.fits_without(spare | {index}, lifts):
            spare |= {index}
    return spare


def _affected(room: Room, reason: NodeReason, lifts: Lifts) -> list[NodeState]:
    """Return the nodes that the reason keeps from the step and that could take a pod of it without the reason."""
    found = []
    for node in room.nodes:
        refuses = any(reason in room.reasons[index][node.index] for index in range(len(room.classes)))
        if not refuses and reason not in room.lost(node):
            continue
        if any(
            room.allows(index, node, lifts) and room.capacity(index, node.index, tuple(room.supply(node, lifts)), lifts)
            for index in range(len(room.classes))
        ):
            found.append(node)
    return found


def _constraints(reason: NodeReason, nodes: list[NodeState]) -> Iterator[Constraint]:
    for node in nodes[:5]:
        yield _constraint(reason, node)


def _own(constraints: list[Constraint]) -> list[Constraint]:
    """Leave out the taints that Kubernetes sets for a state that is named itself."""
    named_ = {c.scope for c in constraints if c.id in {ConstraintId.NODE_CORDON, ConstraintId.NODE_READY}}
    return [c for c in constraints if not (c.scope in named_ and _follows_state(c))]


def _follows_state(constraint: Constraint) -> bool:
    if constraint.id is not ConstraintId.NODE_STATE_TAINT:
        return False
    return all(taint.startswith("node.kubernetes.io/") for taint in str(constraint.have).split(", "))


def _constraint(reason: NodeReason, node: NodeState) -> Constraint:
    source = f"Node/{node.name}"
    if reason is NodeReason.CORDONED:
        return named(ConstraintId.NODE_CORDON, node.name, "schedulable", "cordoned", f"{source} spec.unschedulable")
    if reason is NodeReason.NOT_READY:
        return named(ConstraintId.NODE_READY, node.name, "Ready", "; ".join(node.not_ready), f"{source} conditions")
    if reason is NodeReason.STATE_TAINT:
        taints = ", ".join(taint_text(taint) for taint in node.node.taints if is_state_taint(taint))
        return named(ConstraintId.NODE_STATE_TAINT, node.name, "no such taint", taints, f"{source} spec.taints")
    if reason is NodeReason.TERMINATING:
        held = sum(p.charge[GPU] for p in node.placed.values() if p.status is Status.STUCK_IN_RELEASING)
        return Constraint(ConstraintId.NODE_RELEASE, node.name, held, 0, Unit.GPU, f"{source} terminating pods")
    id_ = ConstraintId.NODE_DEVICES if reason is NodeReason.DEVICES_UNHEALTHY else ConstraintId.NODE_DEVICE_PLUGIN
    return Constraint(id_, node.name, known_gpus(node.node), offered_gpus(node.node), Unit.GPU, f"{source} allocatable")


def taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


# Facts by code

Facts = dict[str, FactValue]


class Lost(NamedTuple):
    """The nodes that one state keeps from a gang's step."""

    gang: Gang
    room: Room
    nodes: list[NodeState]


def _free_gpus(room: Room, nodes: list[NodeState]) -> float:
    return sum(max(room.supply(node, frozenset())[GPU], 0) for node in nodes)


def _cordoned(lost: Lost) -> Facts:
    nodes = lost.nodes
    return {
        "nodes": len(nodes),
        "examples": first(node.name for node in nodes),
        "free": Amount(_free_gpus(lost.room, nodes), Unit.GPU),
    }


def _not_ready(lost: Lost) -> Facts:
    gang, nodes = lost.gang, lost.nodes
    times = [
        condition.since
        for node in nodes
        for condition in node.node.conditions
        if condition.type == "Ready" and condition.status != "True" and condition.since is not None
    ]
    since = gang.as_of - min(times) if times else 0.0
    return {**_cordoned(lost), "since": since, "form": "" if times else "unknown"}


def _tainted(lost: Lost) -> Facts:
    gang, room, nodes = lost
    taints = [taint for taint in blocking_taints(room.classes[0].task, nodes[0].node) if is_state_taint(taint)]
    taint = taints[0] if taints else Taint("")
    since = gang.as_of - taint.added if taint.added is not None else 0.0
    spare = _spare_outside(room)
    facts: Facts = {
        **_cordoned(lost),
        "taint": taint_text(taint),
        "since": since,
        "spare": len(spare),
        "spare_nodes": first(node.name for node in spare),
    }
    return facts | {"form": "pinned" if spare else "" if taint.added is not None else "plain"}


def _spare_outside(room: Room) -> list[NodeState]:
    """Return nodes that only the pods' own selector keeps from taking a pod."""
    lift = frozenset({reason_lift(NodeReason.SELECTOR)})
    return [
        node
        for node in room.nodes
        if NodeReason.SELECTOR in room.reasons[0][node.index]
        and room.allows(0, node, lift)
        and room.capacity(0, node.index, tuple(room.supply(node, lift)), lift)
    ]


def _terminating(lost: Lost) -> Facts:
    gang, room, nodes = lost
    stuck = [p for node in nodes for p in node.placed.values() if p.status is Status.STUCK_IN_RELEASING]
    deleted = [p.task.pod.meta.deleted for p in stuck if p.task.pod.meta.deleted is not None]
    dead = [node.name for node in nodes if node.not_ready]
    facts: Facts = {
        "pods": len(stuck),
        "holders": first({p.task.name for p in stuck}),
        "nodes": first(node.name for node in nodes),
        "age": gang.as_of - min(deleted) if deleted else 0.0,
        "held": Amount(sum(p.charge[GPU] for p in stuck), Unit.GPU),
        "domain": room.domains[0].name if room.domains else "",
    }
    return facts | {"form": "dead_node" if dead else ""}


def _leaving(nodes: list[NodeState]) -> tuple[Holder, ...]:
    held: dict[str, float] = {}
    for node in nodes:
        for placed in node.placed.values():
            if placed.status is Status.STUCK_IN_RELEASING:
                key = holder_key(placed.task)
                held[key] = held.get(key, 0.0) + placed.charge[GPU]
    return tuple(Holder(key, gpus, "no: terminating and stuck") for key, gpus in sorted(held.items()))


def _unhealthy(lost: Lost) -> Facts:
    room, nodes = lost.room, lost.nodes
    node = nodes[0]
    return {
        "node": node.name,
        "nodes": len(nodes),
        "examples": first(n.name for n in nodes),
        "offered": offered_gpus(node.node),
        "capacity": Amount(known_gpus(node.node), Unit.GPU),
        "fit": room.fit_count(range(len(room.nodes))),
        "pods": len(room.tasks),
        "form": "" if len(nodes) == 1 else "several",
    }


def _plugin(lost: Lost) -> Facts:
    gang, room, nodes = lost
    state, what = plugin_state(gang, nodes[0].node)
    return {
        "nodes": len(nodes),
        "examples": first(node.name for node in nodes),
        "capacity": Amount(sum(known_gpus(node.node) for node in nodes), Unit.GPU),
        "offering": sum(1 for node in room.nodes if offered_gpus(node.node) > 0),
        "needed": len(room.tasks),
        "what": what,
        "form": state,
    }


def plugin_state(gang: Gang, node: Node) -> tuple[str, str]:
    """Return what keeps the device plugin off a node: the form of the sentence and the label or pod to look at."""
    label = node.meta.labels.get(_PLUGIN_LABEL, "")
    if label.startswith("paused"):
        return "paused", f"{_PLUGIN_LABEL}={label}"
    driver = _daemon_pod(gang, node, "driver")
    if driver:
        return "driver", driver
    upgrade = node.meta.labels.get(_UPGRADE_LABEL, "")
    if upgrade.endswith("failed"):
        return "paused", f"{_UPGRADE_LABEL}={upgrade}"
    plugin = _daemon_pod(gang, node, "device-plugin")
    return ("pod", plugin) if plugin else ("", "")


def _daemon_pod(gang: Gang, node: Node, part: str) -> str:
    """Return the pod of a GPU DaemonSet that belongs on the node and is not ready there; empty when it is fine."""
    for daemonset in gang.context.objects("DaemonSet"):
        if part not in daemonset.meta.name:
            continue
        for pod in pods_of(gang.context, daemonset):
            if node.name in {pod.node_name, _wanted_node(pod)} and not is_ready(pod):
                reasons = [state.reason for state in pod.container_states if state.reason]
                return f"{pod.meta.name} ({reasons[0] if reasons else pod.phase})"
    return ""


def _wanted_node(pod: object) -> str:
    """Return the node that a DaemonSet pod is made for, by its node affinity."""
    affinity = getattr(pod, "affinity", None)
    for term in (affinity.node_required or ()) if affinity is not None else ():
        for requirement in term.match_fields:
            if requirement.key == "metadata.name" and requirement.values:
                return str(requirement.values[0])
    return ""


_BUILDERS: Mapping[NodeReason, Callable[[Lost], Facts]] = {
    NodeReason.CORDONED: _cordoned,
    NodeReason.NOT_READY: _not_ready,
    NodeReason.STATE_TAINT: _tainted,
    NodeReason.TERMINATING: _terminating,
    NodeReason.DEVICES_UNHEALTHY: _unhealthy,
    NodeReason.NO_DEVICE_PLUGIN: _plugin,
}


# Fixes


def _fixes(room: Room, reason: NodeReason, nodes: list[NodeState]) -> Iterator[Fix]:
    names = first((node.name for node in nodes), 3)
    for name in names:
        yield from _fix(room, reason, name)


def _fix(room: Room, reason: NodeReason, name: str) -> Iterator[Fix]:
    target = {"object": f"Node/{name}"}
    if reason is NodeReason.CORDONED:
        yield Fix(FixKind.UNCORDON, target, {"nodes": (name,)}, who=Who.CLUSTER_ADMIN)
    elif reason is NodeReason.STATE_TAINT:
        state = room.session.nodes[name]
        # Taints of Kubernetes itself follow the node's condition: removing them repairs nothing.
        taints = [t for t in state.node.taints if is_state_taint(t) and not t.key.startswith("node.kubernetes.io/")]
        for taint in taints:
            text = taint_text(taint)
            yield Fix(
                FixKind.REMOVE_TAINT,
                {**target, "taint": text},
                {"nodes": (name,), "taint": text},
                who=Who.CLUSTER_ADMIN,
            )
    elif reason in {NodeReason.DEVICES_UNHEALTHY, NodeReason.NO_DEVICE_PLUGIN}:
        yield Fix(FixKind.REPAIR_DEVICE, target, {"nodes": (name,)}, who=Who.PLATFORM)
    elif reason is NodeReason.NOT_READY:
        yield Fix(FixKind.WAIT_FOR, target, {"what": f"node {name} to be ready"}, who=Who.CLUSTER_ADMIN)
    else:
        yield Fix(FixKind.WAIT_FOR, target, {"what": f"the terminating pods on {name} to go"}, who=Who.CLUSTER_ADMIN)


# No node offers a GPU, and none says that it has one


def unselected_plugin(gang: Gang, room: Room) -> Finding | None:
    """Return a finding when no node offers GPUs and the device plugin's DaemonSet selects no node."""
    if not any(item.task.asks_gpu for item in room.classes) or any(offered_gpus(n.node) for n in room.nodes):
        return None
    for daemonset in gang.context.objects("DaemonSet"):
        selector = _selector_text(daemonset)
        if (
            "device-plugin" in daemonset.meta.name
            and selector
            and not daemonset.facts.get("status.desiredNumberScheduled")
        ):
            return _unselected(room, daemonset, selector)
    return None


def _selector_text(daemonset: ObservedObject) -> str:
    selector = daemonset.facts.get("spec.template.spec.nodeSelector") or {}
    if selector:
        return ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
    path = "spec.template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    for term in daemonset.facts.get(path) or ():
        for expression in term.get("matchExpressions") or ():
            values = expression.get("values") or ()
            return f"{expression.get('key')}={'|'.join(values)}" if values else str(expression.get("key"))
    return ""


def _unselected(room: Room, daemonset: ObservedObject, selector: str) -> Finding:
    key, _, value = selector.split(", ", 1)[0].partition("=")
    nodes = first(node.name for node in room.nodes)
    return Finding(
        ReasonCode.DEVICE_PLUGIN_MISSING,
        form="selector",
        facts={"daemonset": daemonset.meta.name, "selector": selector},
        binding=(named(ConstraintId.NODE_DEVICE_PLUGIN, daemonset.meta.name, selector, "no node", daemonset.ref),),
        waiting=Waiting(helps="no"),
        fixes=tuple(
            Fix(
                FixKind.SET_LABEL,
                {"object": f"Node/{name}", "key": key, "value": value},
                {"label": f"{key}={value}"},
                who=Who.CLUSTER_ADMIN,
            )
            for name in nodes[:1]
        ),
    )


def spoken_holders(holders: tuple[Holder, ...]) -> tuple[str, ...]:
    """Return holders' names as a sentence says them."""
    return tuple(dict.fromkeys(spoken(holder.gang.rsplit("/", 1)[-1]) for holder in holders))
