"""What could be done to nodes: uncordon or mend some, empty one, take a taint off, label some, add more like one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gangdash.engine.changes import Change
from gangdash.engine.explain.build import spoken
from gangdash.engine.explain.domains import Domain
from gangdash.engine.explain.nodestate import taint_text
from gangdash.engine.explain.refusal import blocking_taints
from gangdash.engine.explain.room import NOTHING, STATE_REASONS, Lifts, reason_lift
from gangdash.engine.fixes.candidate import Candidate, Case
from gangdash.engine.fixes.spare import SpareRoom, emptied, mended
from gangdash.engine.identifiers import NodeReason
from gangdash.engine.model.selectors import Taint
from gangdash.engine.session import GPU, NodeState
from gangdash.engine.verdict import FactValue, FixKind, Who

_STATES = frozenset(STATE_REASONS)
_ANY_STATE: Lifts = frozenset(reason_lift(reason) for reason in STATE_REASONS)
_FOR_COPY: Lifts = _ANY_STATE | {reason_lift(NodeReason.NUMA)}
"""What keeps pods from a node and would not keep them from an empty copy of it."""
_TAINTED = (NodeReason.TAINT, NodeReason.STATE_TAINT)
_EMPTIED = 12
"""Nodes of which emptying one is tried, those with most to give first."""
_LABELLED = 4
_USUAL_GPUS = 8
"""What a node with GPUs has where nothing says how many."""
SHAPES = 2
"""Shapes of nodes of which adding some is tried, the one of which fewest are needed first."""


# Nodes whose state keeps them away


def mended_nodes(room: SpareRoom) -> Iterator[Candidate]:
    """Yield smallest sets of nodes that would make room if they were as they should be."""
    if room.fits(_ANY_STATE) is False:
        return
    lost = [node for node in room.nodes if _state_of(room, node) is not None]
    ranked = sorted(lost, key=lambda node: (_rank(room, node), node.name))
    for chosen in room.sets_that_help([mended(node.name) for node in ranked]):
        nodes = [room.session.nodes[lift.what] for lift in chosen]
        candidate = _mend(room, nodes)
        if candidate is not None:
            yield candidate


def _state_of(room: SpareRoom, node: NodeState) -> NodeReason | None:
    """Return the state that keeps the node's capacity away, the cheapest to end first."""
    found = {reason for row in room.reasons for reason in row[node.index] if reason in _STATES} | set(room.lost(node))
    order = (*_ENDED_BY, NodeReason.STATE_TAINT, NodeReason.NOT_READY, NodeReason.TERMINATING)
    return next((reason for reason in order if reason in found), None)


_ENDED_BY = {
    NodeReason.CORDONED: FixKind.UNCORDON,
    NodeReason.DEVICES_UNHEALTHY: FixKind.REPAIR_DEVICE,
    NodeReason.NO_DEVICE_PLUGIN: FixKind.REPAIR_DEVICE,
}


def _rank(room: SpareRoom, node: NodeState) -> tuple[bool, float]:
    supply = room.supply(node, frozenset({mended(node.name)}))
    return _state_of(room, node) is not NodeReason.CORDONED, -supply[2]


def _mend(room: SpareRoom, nodes: Sequence[NodeState]) -> Candidate | None:
    """Return the candidate for nodes of one state; of several states, the rest goes beside the first."""
    by_state: dict[NodeReason, list[NodeState]] = {}
    for node in nodes:
        state = _state_of(room, node)
        if state is not None:
            by_state.setdefault(state, []).append(node)
    parts = [_mend_alike(state, group) for state, group in by_state.items()]
    if not parts:
        return None
    first = parts[0]
    return Candidate(first.kind, first.changes, first.facts, first.form, first.who, tuple(parts[1:]))


def _mend_alike(state: NodeReason, nodes: Sequence[NodeState]) -> Candidate:
    names = tuple(node.name for node in nodes)
    kind = _ENDED_BY.get(state)
    if kind is not None:
        who = Who.CLUSTER_ADMIN if kind is FixKind.UNCORDON else Who.PLATFORM
        return Candidate(kind, tuple(Change(kind, name) for name in names), {"nodes": names}, who=who)
    changes = tuple(Change(FixKind.WAIT_FOR, f"Node/{name}", {"state": "repaired"}) for name in names)
    told = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    what = {
        NodeReason.TERMINATING: f"the terminating pods on {told} to go",
        NodeReason.STATE_TAINT: f"{told} to lose the taint of its state",
    }.get(state, f"node {told} to be ready")
    return Candidate(FixKind.WAIT_FOR, changes, {"what": what}, who=Who.CLUSTER_ADMIN)


# Nodes that others use


def freed(room: SpareRoom) -> Iterator[Candidate]:
    """Yield the fewest nodes that would make room if what runs on them ran elsewhere."""
    busy = [node for node in room.nodes if node.placed and room.allows_some(node)]
    ranked = sorted(busy, key=lambda node: (len(node.placed), -node.allocatable[2], node.name))[:_EMPTIED]
    for chosen in room.sets_that_help([emptied(node.name) for node in ranked], most=1):
        names = tuple(lift.what for lift in chosen)
        placed = [p.task for name in names for p in room.session.nodes[name].placed.values()]
        gangs = {spoken(task.job.name) if task.job is not None else task.name for task in placed}
        facts: dict[str, FactValue] = {"node": names[0], "nodes": names, "gangs": tuple(sorted(gangs))}
        changes = tuple(Change(FixKind.FREE_NODE, name) for name in names)
        form = "several" if len(names) > 1 else ""
        yield Candidate(FixKind.FREE_NODE, changes, facts, form=form, who=Who.CLUSTER_ADMIN)


# Taints and labels that were set on purpose


def untainted(case: Case, room: SpareRoom) -> Iterator[Candidate]:
    """Yield a toleration for what keeps the pods off nodes with room, then the taint taken off those nodes."""
    nodes = [room.session.nodes[name] for name in room.without_reason(*_TAINTED)]
    tainted = {
        node.name: [taint for taint in blocking_taints(room.tasks[0], node.node) if is_settable(taint)]
        for node in nodes
    }
    lifts = frozenset(reason_lift(reason) for reason in _TAINTED)
    for taint in list(dict.fromkeys(taint for found in tainted.values() for taint in found))[:2]:
        told: dict[str, FactValue] = {"taint": taint_text(taint)}
        values = {"key": taint.key, "effect": taint.effect} | ({"value": taint.value} if taint.value else {})
        tolerated = Change(FixKind.ADD_TOLERATION, case.key, values)
        yield Candidate(FixKind.ADD_TOLERATION, (tolerated,), told, lifts=lifts)
        names = tuple(name for name, found in tainted.items() if taint in found)
        changes = tuple(Change(FixKind.REMOVE_TAINT, name, {"key": taint.key}) for name in names)
        facts = {**told, "nodes": names}
        yield Candidate(FixKind.REMOVE_TAINT, changes, facts, who=Who.CLUSTER_ADMIN, lifts=lifts)


def is_settable(taint: Taint) -> bool:
    """Whether people or their tools set the taint; those of Kubernetes itself follow the node's conditions."""
    return not taint.key.startswith("node.kubernetes.io/")


def labelled(room: SpareRoom) -> Iterator[Candidate]:
    """Yield the selector's labels for the nodes that an exact search would use without the selector."""
    selector = room.tasks[0].pod.node_selector
    lacking = [
        name
        for name in room.without_reason(NodeReason.SELECTOR)
        if any(room.session.nodes[name].node.meta.labels.get(key) != value for key, value in selector.items())
    ]
    if not 0 < len(lacking) <= _LABELLED:
        return
    changes = tuple(Change(FixKind.SET_LABEL, f"Node/{name}", dict(selector)) for name in lacking)
    told = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
    target = lacking[0] if len(lacking) == 1 else f"{lacking[0]} and {len(lacking) - 1} more"
    facts: dict[str, FactValue] = {"object": f"Node {target}", "label": told}
    lifts = frozenset({reason_lift(NodeReason.SELECTOR)})
    yield Candidate(FixKind.SET_LABEL, changes, facts, who=Who.CLUSTER_ADMIN, lifts=lifts)


# More nodes


@dataclass(frozen=True, slots=True)
class Shape:
    """A node to copy, and how many copies the step needs if it goes first, or if nothing else is left for it."""

    like: NodeState
    fewest: int
    most: int
    domain: Domain | None = None
    gpus: int = 0
    """What each copy has, where it is more than the node itself."""


def shapes(room: SpareRoom) -> list[Shape]:
    """Return nodes of which copies would make room, by how few would do; one of each shape and domain."""
    found = [shape for node, domain in _models(room) if (shape := _shape(room, node, domain)) is not None]
    if not found and not any(_whole(room, node)[GPU] for node in room.nodes):
        found = [shape for node, domain in _models(room) if (shape := _with_gpus(room, node, domain)) is not None]
    return sorted(found, key=lambda s: (s.fewest, s.most, s.like.allocatable[2], s.like.name))[:SHAPES]


def _whole(room: SpareRoom, node: NodeState) -> tuple[float, ...]:
    """Return what the node would offer with all its devices."""
    missing = room.stock.missing[node.index]
    whole = list(node.allocatable)
    whole[GPU] += missing[1] if missing is not None else 0.0
    return tuple(whole)


def _with_gpus(room: SpareRoom, node: NodeState, domain: Domain | None) -> Shape | None:
    """Return the node with GPUs, for a cluster in which no node is known to have any."""
    asked = max(math.ceil(task.request[GPU]) for task in room.tasks)
    each = max(_USUAL_GPUS, asked)
    offered = list(node.allocatable)
    offered[GPU] = each
    most = 0
    for index, item in enumerate(room.classes):
        per_node = room.capacity(index, node.index, tuple(offered), NOTHING)
        if not asked or not per_node or not room.allows(index, node, _ANY_STATE):
            return None
        most += math.ceil(len(item.tasks) / per_node)
    return Shape(node, most, most, domain, each)


def common_shape(room: SpareRoom) -> Shape | None:
    """Return the first shape, by the name of its node, of which copies make room: many gangs have it in common."""
    models = sorted(_models(room), key=lambda model: model[0].name)
    return next((shape for node, domain in models if (shape := _shape(room, node, domain)) is not None), None)


def _models(room: SpareRoom) -> Iterator[tuple[NodeState, Domain | None]]:
    """Yield one node of each template, in each domain that the step could choose."""
    if room.domains is None:
        models = {(node.template, node.node.unschedulable): node for node in reversed(room.nodes)}
        yield from ((node, None) for node in sorted(models.values(), key=lambda node: node.name))
        return
    for domain in room.domains:
        seen: set[object] = set()
        for index in domain.nodes:
            node = room.nodes[index]
            key = (tuple(node.allocatable), node.node.taints)
            if key not in seen:
                seen.add(key)
                yield node, domain


def _shape(room: SpareRoom, node: NodeState, domain: Domain | None) -> Shape | None:
    inside = range(len(room.nodes)) if domain is None else domain.nodes
    most = fewest = 0
    fit = room.fit_count(inside)
    whole = _whole(room, node)
    for index, item in enumerate(room.classes):
        per_node = room.capacity(index, node.index, whole, NOTHING)
        if not per_node or not room.allows(index, node, _FOR_COPY):
            return None
        most += math.ceil(len(item.tasks) / per_node)
        fewest = max(fewest, math.ceil((len(room.tasks) - fit) / per_node))
    return Shape(node, max(fewest, 1), max(most, 1), domain)


def added(shape: Shape, count: int) -> Candidate:
    name = shape.like.name
    facts: dict[str, FactValue] = {"nodes": count, "like": name}
    if shape.domain is not None:
        facts["domain"] = shape.domain.name
    values = {"count": str(count)}
    form = "domain" if shape.domain is not None else ""
    if shape.gpus:
        facts["gpus"] = shape.gpus
        values["gpu"] = str(shape.gpus)
        form = "gpus"
    change = Change(FixKind.ADD_NODES, name, values)
    weight = count.bit_length() - 1
    return Candidate(FixKind.ADD_NODES, (change,), facts, form=form, who=Who.CLUSTER_ADMIN, weight=weight)
