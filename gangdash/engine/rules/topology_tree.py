"""The domains that a Topology makes out of the shard's nodes, and what is free in each.

Only nodes that carry every level's label belong to the tree. Free resources and room for pods are filled
in per question and only below the domain where the question starts: a domain outside of it counts as
having nothing, which is the scheduler's own behaviour. Mirrors plugins/topology/topology_plugin.go and
the accounting half of job_filtering.go (KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gangdash.engine.model.topology import Topology
from gangdash.engine.session import GPU, PODS, NodeState, Session, TaskState, Vector
from gangdash.engine.statement.vectors import added, fits

ROOT = "root"
NOT_COUNTED = -1
"""Room for pods where it was not worked out: the free resources decide then."""
_NOTHING_FREE = 1000.0


class Domain:
    """One value path of a topology. ``id`` joins the label values with dots, broadest first."""

    __slots__ = ("children", "free", "id", "level", "nodes", "room")

    def __init__(self, level: str, id_: str, free: Vector) -> None:
        self.level = level
        self.id = id_
        self.children: list[Domain] = []
        self.nodes: dict[str, NodeState] = {}
        self.free = free
        """Idle and releasing resources of its nodes; parts of shared GPUs left out."""
        self.room = NOT_COUNTED
        """How many pods like the largest one asked about fit."""

    def __repr__(self) -> str:
        return f"<domain {self.id} of {self.level}>"


class Tree:
    """A Topology's domains by level and id; the top one is ``root``."""

    def __init__(self, topology: Topology, nodes: Iterable[NodeState], session: Session) -> None:
        self.name = topology.name
        self.labels = [level.node_label for level in topology.levels]
        self.backed = session.backed_slots
        self.names = session.layout.names
        """Resource names by slot."""
        self._zeros = session.layout.zeros()
        self.root = Domain(ROOT, ROOT, self._zeros)
        self.levels: dict[str, dict[str, Domain]] = {ROOT: {ROOT: self.root}}
        self._links: set[tuple[int, int]] = set()
        for node in nodes:
            if self.holds(node):
                self._add(node)

    def holds(self, node: NodeState) -> bool:
        labels = node.node.meta.labels
        return all(label in labels for label in self.labels)

    def _add(self, node: NodeState) -> None:
        values: list[str] = []
        parent = self.root
        parent.nodes[node.name] = node
        for label in self.labels:
            values.append(node.node.meta.labels[label])
            id_ = ".".join(values)
            level = self.levels.setdefault(label, {})
            domain = level.get(id_)
            if domain is None:
                domain = level[id_] = Domain(label, id_, self._zeros)
            link = (id(parent), id(domain))
            if link not in self._links:
                self._links.add(link)
                parent.children.append(domain)
            domain.nodes[node.name] = node
            parent = domain

    def common_domain(self, nodes: Sequence[NodeState], stop_at: str) -> Domain | None:
        """Return the smallest domain that holds all the nodes, not below the level ``stop_at``."""
        values: list[str] = []
        level = ROOT
        for label in self.labels:
            shared = {node.node.meta.labels[label] for node in nodes}
            if len(shared) != 1 or "" in shared:
                break
            values.append(shared.pop())
            level = label
            if label == stop_at:
                break
        return self.levels[level].get(".".join(values) if values else ROOT)

    def reset(self) -> None:
        for level in self.levels.values():
            for domain in level.values():
                domain.free, domain.room = self._zeros, NOT_COUNTED

    def upwards(self) -> Iterable[Domain]:
        """Yield every domain, deepest level first, within a level in the order of the sorted tree."""
        levels = [[self.root]]
        while levels[-1]:
            levels.append([child for domain in levels[-1] for child in domain.children])
        for level in reversed(levels):
            yield from level


def fill_free(domain: Domain) -> Vector:
    """Work out what is free in a domain and everything below it."""
    total = list(domain.free)
    if domain.children:
        for child in domain.children:
            total = added(total, fill_free(child))
    else:
        for node in domain.nodes.values():
            total = [t + i + r for t, i, r in zip(total, node.idle, node.releasing, strict=True)]
    domain.free = total
    return total


def fill_room(domain: Domain, largest: Vector, count: int, backed: frozenset[int]) -> int:
    """Work out how many pods as large as ``largest`` fit into a domain and everything below it."""
    if domain.children:
        domain.room = sum(fill_room(child, largest, count, backed) for child in domain.children)
    else:
        domain.room = sum(node_room(node, largest, count, backed) for node in domain.nodes.values())
    return domain.room


def node_room(node: NodeState, largest: Vector, count: int, backed: frozenset[int]) -> int:
    """Return how many such pods fit a node; a pod that asks for nothing always fits ``count`` times."""
    if all(amount <= (slot == PODS) for slot, amount in enumerate(largest)):
        return count
    supply = added(node.idle, node.releasing)
    if 0 < largest[GPU] < 1:
        supply[GPU] += node.shared.free_portions(node.gpu_memory)
    if backed:
        largest = [0 if slot in backed else amount for slot, amount in enumerate(largest)]
        supply = [0 if slot in backed else amount for slot, amount in enumerate(supply)]
    if not fits(largest, supply):
        return 0
    return min((int(have / need) for have, need in zip(supply, largest, strict=True) if need > 0), default=count)


def sort_tree(domain: Domain, asked: Vector, deepest: str, backed: frozenset[int]) -> None:
    """Sort children so that the tightest domain comes first, down to the level ``deepest``."""
    if not deepest:
        return
    domain.children.sort(key=lambda child: (-tightness(asked, child, backed), child.id))
    if domain.level != deepest:
        for child in domain.children:
            sort_tree(child, asked, deepest, backed)


def tightness(asked: Vector, domain: Domain, backed: frozenset[int]) -> float:
    """Return the largest part of its free resources that the request would take; over 1 it does not fit."""
    worst = 0.0
    for slot, need in enumerate(asked):
        if need <= 0 or slot == PODS or slot in backed:
            continue
        free = domain.free[slot]
        worst = max(worst, _NOTHING_FREE if free <= 0 else need / free)
    return worst


def is_homogeneous(tasks: Sequence[TaskState]) -> bool:
    """Whether all or none ask for GPUs and every other resource, cpu and memory aside."""
    with_gpu = sum(task.gpu.gpus > 0 for task in tasks)
    if with_gpu not in {0, len(tasks)}:
        return False
    for slot in range(PODS, len(tasks[0].request)):
        asking = sum(task.request[slot] > 0 for task in tasks)
        if asking not in {0, len(tasks)}:
            return False
    return True
