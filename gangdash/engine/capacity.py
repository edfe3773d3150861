"""Free capacity told as gangs: per topology level and domain, which gang still fits, and what blocks the rest.

Counts whole GPUs that a pod could be bound to now, from an opened session. Only GPUs, readiness, taints and
pod slots are looked at here; whether a gang of one queue may use them is a question for a replay of that gang.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gangdash.engine.model.topology import Topology
from gangdash.engine.session import GPU, PODS, NodeState, Session

SHAPES = (1, 2, 4, 8)
"""GPUs a pod: the shapes of the table."""
WHOLE_CLUSTER = "cluster"
_REFUSING = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True)
class DomainCapacity:
    """One domain. ``path`` are its label values from the broadest level down; empty for the whole cluster.

    ``free`` counts whole idle GPUs of nodes that take pods; ``largest`` maps GPUs a pod to the most pods of
    that shape that fit now; ``blocked`` maps a cause to the idle or lost GPUs that it keeps from use.
    ``fragmentation`` is the share of ``free`` that pods of the largest shape which fits an empty node of the
    domain cannot use: 0 when all of it is whole nodes, 1 when none is; ``None`` without free GPUs.
    """

    topology: str
    level: str
    path: tuple[str, ...]
    nodes: int
    gpus: int
    free: int
    held: int
    largest: Mapping[int, int] = field(default_factory=dict)
    blocked: Mapping[str, int] = field(default_factory=dict)
    fragmentation: float | None = None


def capacity(session: Session) -> tuple[DomainCapacity, ...]:
    """Return the whole cluster first, then each topology's domains, broadest level first, by path."""
    nodes = [node for node in session.nodes.values() if node.allocatable[GPU] > 0 or _lost(node)]
    rows = [_domain("", WHOLE_CLUSTER, (), nodes)]
    for topology in sorted(session.snapshot.topologies, key=lambda t: t.name):
        rows.extend(_topology_rows(topology, nodes))
    return tuple(rows)


def _topology_rows(topology: Topology, nodes: Sequence[NodeState]) -> Iterable[DomainCapacity]:
    labels = [level.node_label for level in topology.levels]
    for depth, label in enumerate(labels, start=1):
        groups: dict[tuple[str, ...], list[NodeState]] = {}
        for node in nodes:
            values = node.node.meta.labels
            if all(name in values for name in labels):
                groups.setdefault(tuple(values[name] for name in labels[:depth]), []).append(node)
        for path in sorted(groups):
            yield _domain(topology.name, label, path, groups[path])


def _domain(topology: str, level: str, path: tuple[str, ...], nodes: Sequence[NodeState]) -> DomainCapacity:
    free = sum(usable_gpus(node) for node in nodes)
    largest = {shape: sum(usable_gpus(node) // shape for node in nodes) for shape in SHAPES}
    return DomainCapacity(
        topology=topology,
        level=level,
        path=path,
        nodes=len(nodes),
        gpus=sum(int(node.allocatable[GPU]) for node in nodes),
        free=free,
        held=sum(_held(node) for node in nodes),
        largest=largest,
        blocked=_blocked(nodes),
        fragmentation=_fragmentation(nodes, free),
    )


def usable_gpus(node: NodeState) -> int:
    """Return whole GPUs that a pod without tolerations could be bound to on this node now."""
    return 0 if blocking_cause(node) else idle_gpus(node)


def idle_gpus(node: NodeState) -> int:
    return max(0, math.floor(node.idle[GPU]))


def blocking_cause(node: NodeState) -> str:
    """Return why a node's idle GPUs are out of reach, empty if they are not: the first cause in a fixed order."""
    if node.node.unschedulable:
        return "cordoned"
    if node.not_ready:
        return "not ready"
    if any(taint.effect in _REFUSING for taint in node.node.taints):
        return "tainted"
    if min(node.idle) < 0:
        return "over-committed"
    return "no pod slot" if node.idle[PODS] < 1 else ""


def _lost(node: NodeState) -> int:
    """Return devices that the node has and does not offer."""
    capacity_gpus = sum(amount for name, amount in node.node.capacity.items() if name.endswith("/gpu"))
    offered = sum(amount for name, amount in node.node.allocatable.items() if name.endswith("/gpu"))
    return max(0, capacity_gpus - offered)


def _held(node: NodeState) -> int:
    return max(0, math.ceil(node.allocatable[GPU] - max(0.0, node.idle[GPU])))


def _blocked(nodes: Iterable[NodeState]) -> dict[str, int]:
    causes: dict[str, int] = {}
    for node in nodes:
        cause = blocking_cause(node)
        if cause and idle_gpus(node):
            causes[cause] = causes.get(cause, 0) + idle_gpus(node)
        if lost := _lost(node):
            causes["device not offered"] = causes.get("device not offered", 0) + lost
    return dict(sorted(causes.items()))


def _fragmentation(nodes: Sequence[NodeState], free: int) -> float | None:
    if not free:
        return None
    widest = max(int(node.allocatable[GPU]) for node in nodes)
    shape = max((s for s in SHAPES if s <= widest), default=1)
    whole = sum(usable_gpus(node) // shape * shape for node in nodes)
    return 1 - whole / free
