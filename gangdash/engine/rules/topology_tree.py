"""The domains that a Topology makes out of the shard's nodes, and what is free in each.

Only nodes that carry every level's label belong to the tree. Sums of free resources and of room for pods
follow changes of nodes instead of being added up anew for every question. Mirrors
plugins/topology/topology_plugin.go and the accounting half of job_filtering.go (KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gangdash.engine.model.topology import Topology
from gangdash.engine.session import GPU, PODS, NodeState, Session, TaskState, Vector
from gangdash.engine.statement.vectors import added, fits, subtracted

ROOT = "root"
NOTHING_FREE = 1000.0
"""The part of nothing that any request takes."""
_KEPT_LOG = 4
"""How many times the number of nodes the log of changes may grow before room is counted anew."""


class Domain:
    """One value path of a topology. ``id`` joins the label values with dots, broadest first."""

    __slots__ = ("children", "free", "id", "index", "last", "level", "nodes")

    def __init__(self, level: str, id_: str, free: Vector) -> None:
        self.level = level
        self.id = id_
        self.children: list[Domain] = []
        self.nodes: list[NodeState] = []
        self.free = free
        """Idle and releasing resources of its nodes; parts of shared GPUs left out."""
        self.index = 0
        """Place in the tree, before all domains below it; ``last`` is the largest index among those."""
        self.last = 0

    def holds(self, other: Domain) -> bool:
        return self.index <= other.index <= self.last

    def __repr__(self) -> str:
        return f"<domain {self.id} of {self.level}>"


_Chains = dict[int, tuple[Domain, ...]]
"""By index of the node: its domains, from the root down."""


class Tree:
    """A Topology's domains by level and id; the top one is ``root``."""

    def __init__(self, topology: Topology, session: Session) -> None:
        self.name = topology.name
        self.labels = [level.node_label for level in topology.levels]
        self.names = session.layout.names
        """Resource names by slot."""
        self.backed = session.backed_slots
        self.nothing = session.layout.zeros()
        self.root = Domain(ROOT, ROOT, self.nothing)
        self.levels: dict[str, dict[str, Domain]] = {ROOT: {ROOT: self.root}}
        self._chains: _Chains = {}
        self._seen: dict[int, Vector] = {}
        self._changed: set[NodeState] = set()
        self._log: list[NodeState] = []
        self._rooms: dict[tuple[float, ...], _Rooms] = {}
        self._all_nodes = session.all_nodes
        links: set[tuple[int, int]] = set()
        for node in session.all_nodes:
            if self._belongs(node):
                self._add(node, links)
        self._number(self.root, 0)
        self._usable = self._all_nodes if len(self._chains) == len(self._all_nodes) else list(self.root.nodes)
        session.watchers.append(self._changed)

    def _belongs(self, node: NodeState) -> bool:
        labels = node.node.meta.labels
        return all(label in labels for label in self.labels)

    def _add(self, node: NodeState, links: set[tuple[int, int]]) -> None:
        free = added(node.idle, node.releasing)
        self._seen[node.index] = free
        values: list[str] = []
        chain = [self.root]
        for label in self.labels:
            values.append(node.node.meta.labels[label])
            id_ = ".".join(values)
            level = self.levels.setdefault(label, {})
            domain = level.get(id_)
            if domain is None:
                domain = level[id_] = Domain(label, id_, self.nothing)
            link = (id(chain[-1]), id(domain))
            if link not in links:
                links.add(link)
                chain[-1].children.append(domain)
            chain.append(domain)
        for domain in chain:
            domain.nodes.append(node)
            domain.free = added(domain.free, free)
        self._chains[node.index] = tuple(chain)

    def _number(self, domain: Domain, index: int) -> int:
        domain.index = index
        for child in domain.children:
            index = self._number(child, index + 1)
        domain.last = index
        return index

    # What is free

    def refresh(self) -> None:
        """Take over what has changed on the nodes."""
        for node in self._changed:
            chain = self._chains.get(node.index)
            if chain is None:
                continue
            before, now = self._seen[node.index], added(node.idle, node.releasing)
            if now != before:
                change = subtracted(now, before)
                for domain in chain:
                    domain.free = added(domain.free, change)
                self._seen[node.index] = now
            self._log.append(node)
        self._changed.clear()
        if len(self._log) > _KEPT_LOG * len(self._chains):
            self._log.clear()
            self._rooms.clear()

    def rooms(self, largest: Vector, count: int) -> Sequence[int]:
        """Return by index of the domain how many pods as large as ``largest`` fit into it.

        A pod that asks for nothing fits ``count`` times on any node.
        """
        if all(amount <= (slot == PODS) for slot, amount in enumerate(largest)):
            sizes = [0] * (self.root.last + 1)
            for level in self.levels.values():
                for domain in level.values():
                    sizes[domain.index] = count * len(domain.nodes)
            return sizes
        key = tuple(largest)
        rooms = self._rooms.get(key)
        if rooms is None:
            rooms = self._rooms[key] = _Rooms(largest, self.backed, self.root, self._chains)
            rooms.cursor = len(self._log)
        rooms.follow(self._log)
        return rooms.of_domain

    # Nodes

    def usable(self, nodes: list[NodeState]) -> list[NodeState]:
        """Return the nodes that belong to the tree."""
        if nodes is self._all_nodes:
            return self._usable
        return [node for node in nodes if node.index in self._chains]

    def nodes_of(self, domain: Domain, usable: list[NodeState]) -> list[NodeState]:
        """Return the usable nodes of a domain; the very list of all nodes where these are all."""
        if usable is self._usable:
            return usable if domain is self.root else domain.nodes
        allowed = {node.index for node in usable}
        return [node for node in domain.nodes if node.index in allowed]

    def common_domain(self, nodes: list[NodeState], stop_at: str) -> Domain | None:
        """Return the smallest domain that holds all the nodes, not below the level ``stop_at``."""
        values: list[str] = []
        level = ROOT
        for label in self.labels:
            value = nodes[0].node.meta.labels[label] if nodes else ""
            if not value or any(node.node.meta.labels[label] != value for node in nodes):
                break
            values.append(value)
            level = label
            if label == stop_at:
                break
        return self.levels[level].get(".".join(values) if values else ROOT)

    def upwards(self, levels: Sequence[str]) -> Iterator[Domain]:
        """Yield the domains of adjacent levels, deepest first, within a level in the order of the sorted tree."""
        depths = [0 if level == ROOT else self.labels.index(level) + 1 for level in levels]
        rows = [[self.root]]
        while len(rows) <= max(depths):
            rows.append([child for domain in rows[-1] for child in domain.children])
        for depth in sorted(depths, reverse=True):
            yield from rows[depth]


class _Rooms:
    """How many pods of one size fit on each node and into each domain."""

    __slots__ = ("_backed", "_chains", "_largest", "_of_node", "cursor", "of_domain")

    def __init__(self, largest: Vector, backed: frozenset[int], root: Domain, chains: _Chains) -> None:
        self._largest = largest
        self._backed = backed
        self._chains = chains
        self._of_node = dict.fromkeys(chains, 0)
        self.of_domain = [0] * (root.last + 1)
        self.cursor = 0
        for node in root.nodes:
            self._count(node)

    def _count(self, node: NodeState) -> None:
        room = node_room(node, self._largest, self._backed)
        change = room - self._of_node[node.index]
        if change:
            self._of_node[node.index] = room
            for domain in self._chains[node.index]:
                self.of_domain[domain.index] += change

    def follow(self, log: list[NodeState]) -> None:
        """Count again what the log says has changed since the last time."""
        for node in set(log[self.cursor :]):
            self._count(node)
        self.cursor = len(log)


def node_room(node: NodeState, largest: Vector, backed: frozenset[int]) -> int:
    """Return how many pods of that size fit a node."""
    supply = added(node.idle, node.releasing)
    if 0 < largest[GPU] < 1:
        supply[GPU] += node.shared.free_portions(node.gpu_memory)
    if backed:
        largest = [0 if slot in backed else amount for slot, amount in enumerate(largest)]
        supply = [0 if slot in backed else amount for slot, amount in enumerate(supply)]
    if not fits(largest, supply):
        return 0
    room = None
    for have, need in zip(supply, largest, strict=True):
        if need > 0:
            times = int(have / need)
            room = times if room is None or times < room else room
    return room or 0


def tightness(asked: Sequence[tuple[int, float]], free: Vector) -> float:
    """Return the largest part of what is free that the request would take; over 1 it does not fit."""
    worst = 0.0
    for slot, need in asked:
        have = free[slot]
        part = NOTHING_FREE if have <= 0 else need / have
        worst = max(worst, part)
    return worst


def sort_tree(domain: Domain, asked: Sequence[tuple[int, float]], deepest: str) -> None:
    """Sort children so that the tightest domain comes first, down to the level ``deepest``.

    The scheduler sorts one level more, which nothing looks at.
    """
    if not deepest or domain.level == deepest:
        return
    domain.children.sort(key=lambda child: (-tightness(asked, child.free), child.id))
    for child in domain.children:
        sort_tree(child, asked, deepest)


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
