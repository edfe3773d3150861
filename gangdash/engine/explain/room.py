"""Is there room for the next step of a gang, and which single thing would have to be different?

Problem: the pods of a step come in classes of equal pods; nodes have free amounts and reasons to refuse a class;
a topology constraint asks for one domain. A *lift* takes one thing away: a reason, the use of a resource by others,
a node's size, the constraint. ``fits`` answers by exact search for any set of lifts; ``smallest`` finds a smallest
set that makes the step fit. Relaxations are only ever generous: a "no" is a proof, a "yes" is one where ``is_exact``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from gangdash.engine.exact import PodClass, Vector, alone, place
from gangdash.engine.explain.classes import classes_of, has_pod_terms
from gangdash.engine.explain.domains import Domain, domains_of, groups_below, nodes_in_use, required
from gangdash.engine.explain.numa import Zones
from gangdash.engine.explain.stock import Stock
from gangdash.engine.identifiers import NodeReason
from gangdash.engine.model.podgroup import TopologyConstraint
from gangdash.engine.model.topology import Topology
from gangdash.engine.session import GPU, JobState, NodeState, PodSet, TaskState
from gangdash.engine.statement.status import ACTIVE_ALLOCATED

STATE_REASONS = (
    NodeReason.CORDONED,
    NodeReason.NOT_READY,
    NodeReason.STATE_TAINT,
    NodeReason.NO_DEVICE_PLUGIN,
    NodeReason.DEVICES_UNHEALTHY,
    NodeReason.TERMINATING,
)
"""What keeps capacity away because of the state of a node or of its devices."""
CHECK_REASONS = (
    NodeReason.SELECTOR,
    NodeReason.TAINT,
    NodeReason.VOLUME,
    NodeReason.CLAIM,
    NodeReason.POD_AFFINITY,
    NodeReason.PORTS,
    NodeReason.GPU_SHAPE,
    NodeReason.RESOURCE,
    NodeReason.NUMA,
)
SEARCH_STEPS = 20_000
"""Steps of one exact search here. Many are asked for one gang, so each is kept short."""
_HOME_CHOICES = 300
"""Choices of domains for subgroups that one question may try."""
_UNBOUNDED = 1e18


class Lift(NamedTuple):
    """One thing taken away: ``kind`` is reason, busy (what others use), size (what a node has) or domain."""

    kind: str
    what: str = ""


class PartDomains(NamedTuple):
    """A subgroup with a constraint of its own: its classes and the domains that it may choose from."""

    name: str
    classes: list[int]
    domains: list[Domain]
    level: str


class _Choice(NamedTuple):
    """The domains that one subgroup may choose from, as sets of nodes."""

    classes: list[int]
    homes: list[frozenset[int]]


_REASON_LIFTS = {reason: Lift("reason", reason.value) for reason in NodeReason}
DOMAIN = Lift("domain")
EVICTABLE = Lift("evictable")
"""What gangs hold that some queue rule could let the scheduler evict for this one."""
UNPROTECTED = Lift("evictable", "all")
"""The same, with non-preemptible gangs of other queues among them."""
Lifts = frozenset[Lift]
NOTHING: Lifts = frozenset()


def reason_lift(reason: NodeReason) -> Lift:
    return _REASON_LIFTS[reason]


class Room:
    """The room for one step of one gang in the session as it opened."""

    def __init__(self, stock: Stock, job: JobState, tasks: Sequence[TaskState]) -> None:
        session = stock.session
        self.stock = stock
        self.session = session
        self.job = job
        self.tasks = list(tasks)
        self.nodes: list[NodeState] = session.all_nodes
        self.classes = classes_of(self.tasks)
        self.placement: tuple[str, ...] = ()
        """The nodes of the last placement found."""
        self._known: dict[Lifts, bool | None] = {}
        self._supplies: dict[Lifts, dict[int, list[float]]] = {}

    # What the nodes say

    @cached_property
    def reasons(self) -> list[list[frozenset[NodeReason]]]:
        """``reasons[class][node]``: why the node refuses the class, amounts aside."""
        return [self.stock.row(self.job, item.task) for item in self.classes]

    @property
    def zones(self) -> dict[str, Zones]:
        return self.stock.zones

    @cached_property
    def present(self) -> frozenset[NodeReason]:
        """Every reason that some node gives some class, and every loss of capacity that some node has."""
        found = {reason for row in self.reasons for reasons in row for reason in reasons}
        found.update(reason for node in self.nodes for reason in self.lost(node))
        return frozenset(found)

    def lost(self, node: NodeState) -> dict[NodeReason, float]:
        """Return the GPUs that the node's devices or terminating pods keep away, by reason."""
        found: dict[NodeReason, float] = {}
        missing, stuck = self.stock.missing[node.index], self.stock.stuck[node.index]
        if missing is not None:
            found[missing[0]] = missing[1]
        if stuck is not None:
            found[NodeReason.TERMINATING] = stuck[GPU]
        return found

    @cached_property
    def slots(self) -> list[int]:
        """Resources that the step asks for."""
        width = len(self.session.layout.names)
        return [slot for slot in range(width) if any(item.task.request[slot] > 0 for item in self.classes)]

    def slot_name(self, slot: int) -> str:
        return self.session.layout.names[slot]

    def supply(self, node: NodeState, lifts: Lifts) -> list[float]:
        """Return what the node can give, releases under way included, with lifts applied. Callers do not change it."""
        known = self._supplies.setdefault(lifts, {})
        if node.index not in known:
            known[node.index] = self._supply(node, lifts)
        return known[node.index]

    def _supply(self, node: NodeState, lifts: Lifts) -> list[float]:
        supply = [a + b for a, b in zip(node.idle, node.releasing, strict=True)]
        if not lifts:
            return supply
        stuck = self.stock.stuck[node.index]
        if stuck is not None and reason_lift(NodeReason.TERMINATING) in lifts:
            supply = [a + b for a, b in zip(supply, stuck, strict=True)]
        if EVICTABLE in lifts or UNPROTECTED in lifts:
            supply = self._without_evictable(node, supply, unprotected=UNPROTECTED in lifts)
        missing = self.stock.missing[node.index]
        extra = missing[1] if missing is not None and reason_lift(missing[0]) in lifts else 0.0
        supply[GPU] += extra
        for lift in lifts:
            if lift.kind in {"size", "busy"}:
                slot = self.session.layout.index[lift.what]
                has = node.allocatable[slot] + (extra if slot == GPU else 0.0)
                supply[slot] = _UNBOUNDED if lift.kind == "size" else max(has, supply[slot])
        return supply

    def _without_evictable(self, node: NodeState, supply: list[float], *, unprotected: bool) -> list[float]:
        for placed in node.placed.values():
            owner = placed.task.job
            if (
                owner is not None
                and placed.status & ACTIVE_ALLOCATED
                and self.may_be_victim(owner, unprotected=unprotected)
            ):
                charge = list(placed.charge)
                if placed.groups:
                    # The whole device comes back when everything that shares it can go.
                    charge[GPU] = placed.task.gpu.count
                supply = [a + b for a, b in zip(supply, charge, strict=True)]
        return supply

    def may_be_victim(self, owner: JobState, *, unprotected: bool = False) -> bool:
        """Whether eviction for this gang depends on queue rules alone and not on what the holder is."""
        if owner is self.job:
            return False
        if owner.queue != self.job.queue:
            return owner.is_preemptible or unprotected
        return owner.is_preemptible and (owner.priority < self.job.priority or self.job.is_preemptible)

    def allows(self, index: int, node: NodeState, lifts: Lifts) -> bool:
        """Whether the checks, amounts aside, let the class on the node."""
        return all(reason_lift(reason) in lifts for reason in self.reasons[index][node.index])

    # Exact questions

    @property
    def is_exact(self) -> bool:
        """Whether a "yes" is a proof: nothing of the step depends on where its other pods go."""
        return all(
            not item.task.asks_shared_gpu and not item.task.pod.claims and not has_pod_terms(item.task)
            for item in self.classes
        )

    def fits(self, lifts: Lifts = NOTHING) -> bool | None:
        """Whether the step fits with the lifts; None when the search budget ran out."""
        if lifts not in self._known:
            self._known[lifts] = self._fits(lifts)
        return self._known[lifts]

    def may_help(self, lift: Lift) -> bool:
        """Whether there is room now or with the lift; no trial starts the gang otherwise."""
        return self.fits() is not False or self.fits(frozenset({lift})) is not False

    def _fits(self, lifts: Lifts) -> bool | None:
        unsure = False
        for nodes in self._node_sets(lifts):
            answer = self.fits_on(nodes, lifts)
            if answer:
                return True
            unsure |= answer is None
        return None if unsure else False

    def fits_without(self, nodes: frozenset[int], lifts: Lifts) -> bool:
        """Whether the step surely fits with the lifts on what is left when these nodes are taken away."""
        return any(
            self.fits_on([index for index in chosen if index not in nodes], lifts) for chosen in self._node_sets(lifts)
        )

    def _node_sets(self, lifts: Lifts) -> Iterator[Sequence[int]]:
        if DOMAIN in lifts or self.domains is None:
            yield range(len(self.nodes))
        else:
            for domain in self.domains:
                yield domain.nodes

    def fits_on(self, nodes: Sequence[int], lifts: Lifts) -> bool | None:
        """Whether the step fits on these nodes alone; subgroups with a domain of their own each need one there."""
        together = self._place(nodes, lifts, {})
        if not together or DOMAIN in lifts or not self._constrained_parts:
            return together
        choices = [_Choice(part.classes, self._homes(part, nodes, lifts)) for part in self._constrained_parts]
        choices.sort(key=lambda choice: len(choice.homes))
        return self._with_homes(nodes, lifts, choices, {}, [_HOME_CHOICES])

    def holds(self, nodes: Sequence[int], lifts: Lifts, classes: Sequence[int]) -> bool | None:
        """Whether these classes fit on the nodes, the domains that subgroups ask for aside."""
        return self._place(nodes, lifts, {}, classes)

    def _homes(self, part: PartDomains, nodes: Sequence[int], lifts: Lifts) -> list[frozenset[int]]:
        """Return the domains that would hold the subgroup if it were alone on the nodes."""
        inside = frozenset(nodes)
        homes = [inside.intersection(domain.nodes) for domain in part.domains]
        return [home for home in homes if self._place(sorted(home), lifts, {}, part.classes) is not False]

    def _with_homes(
        self,
        nodes: Sequence[int],
        lifts: Lifts,
        choices: Sequence[_Choice],
        homes: dict[int, frozenset[int]],
        budget: list[int],
    ) -> bool | None:
        """Choose a domain for each subgroup in turn; ``budget`` counts the choices that may still be tried."""
        if not choices:
            return self._place(nodes, lifts, homes)
        classes, unsure = choices[0].classes, False
        for chosen in choices[0].homes:
            if budget[0] <= 0:
                return None
            budget[0] -= 1
            narrower = homes | {index: homes.get(index, chosen) & chosen for index in classes}
            if not self._place(nodes, lifts, narrower, classes):
                continue
            answer = self._with_homes(nodes, lifts, choices[1:], narrower, budget)
            if answer:
                return True
            unsure |= answer is None
        return None if unsure else False

    def _place(
        self,
        nodes: Sequence[int],
        lifts: Lifts,
        homes: Mapping[int, frozenset[int]],
        classes: Sequence[int] | None = None,
    ) -> bool | None:
        """Search one placement of the classes, all by default; ``homes`` are the nodes that a class must keep to."""
        supply = [self.supply(self.nodes[n], lifts) for n in nodes]
        # A node with a negative amount of anything takes no pod at all.
        usable = [position for position, amounts in enumerate(supply) if min(amounts) >= 0]
        free: list[Vector] = [tuple(supply[p][slot] for slot in self.slots) for p in usable]
        indexes = [nodes[p] for p in usable]
        demand = [
            self._demand(index, indexes, lifts, homes.get(index))
            for index in (range(len(self.classes)) if classes is None else classes)
        ]
        answer = place(demand, free, SEARCH_STEPS)
        if answer.fits and classes is None:
            self.placement = tuple(
                self.nodes[n].name for n, fill in zip(indexes, answer.fills, strict=False) if any(fill)
            )
        return answer.fits

    def _demand(self, index: int, nodes: Sequence[int], lifts: Lifts, home: frozenset[int] | None) -> PodClass:
        item = self.classes[index]
        request = [item.task.request[slot] for slot in self.slots]
        allowed = [
            p for p, n in enumerate(nodes) if (home is None or n in home) and self.allows(index, self.nodes[n], lifts)
        ]
        if not item.task.asks_shared_gpu:
            return PodClass(len(item.tasks), tuple(request), frozenset(allowed), item.per_node)
        # Shared GPUs: only nodes with a device that has room, each pod as if it were alone there.
        if GPU in self.slots:
            request[self.slots.index(GPU)] = 0.0
        shares = {p: self.takes_share(item.task, self.nodes[nodes[p]], lifts) for p in allowed}
        most = max(shares.values(), default=0)
        takers = frozenset(p for p, count in shares.items() if count > 0)
        return PodClass(len(item.tasks), tuple(request), takers, max(most, 1))

    def takes_share(self, task: TaskState, node: NodeState, lifts: Lifts) -> int:
        """Return how many pods with the task's share the node's devices can take."""
        if Lift("size", "gpu") in lifts or reason_lift(NodeReason.GPU_SHAPE) in lifts:
            return len(self.tasks)
        whole = math.floor(max(self.supply(node, lifts)[GPU], 0))
        portion = node.portion_need(task.gpu)
        if portion > 1 and portion != int(portion):
            return 0
        if portion <= 0 or portion > 1:
            return whole // max(task.gpu.count, 1)
        devices = [1.0] * whole
        if Lift("busy", "gpu") not in lifts:
            need = node.memory_need(task.gpu)
            room = [node.gpu_memory - used for used in node.shared.used.values() if used > 0]
            devices += [left / node.gpu_memory for left in room if left >= need]
        return sum(math.floor(left / portion + 1e-9) for left in devices) // max(task.gpu.count, 1)

    def smallest(self, lifts: Sequence[Lift], base: Lifts = NOTHING) -> Lifts | None:
        """Return a smallest set of the lifts that makes the step fit on top of ``base``; None when none does."""
        if self.fits(base | frozenset(lifts)) is False:
            return None
        for size in range(1, len(lifts) + 1):
            for chosen in itertools.combinations(lifts, size):
                if self.fits(base | frozenset(chosen)):
                    return frozenset(chosen)
        return frozenset(lifts)

    # Counting, for sentences

    def fit_count(self, nodes: Sequence[int], lifts: Lifts = NOTHING) -> int:
        """Return how many pods of the step find a place on these nodes, placed class by class, largest first."""
        return self.fit_count_of(range(len(self.classes)), nodes, lifts)

    def most_pods(self) -> int:
        """Return how many pods find a place in the best of the domains that the whole step may choose from."""
        return max((self.fit_count(nodes) for nodes in self._node_sets(NOTHING)), default=0)

    def fit_count_of(self, classes: Sequence[int], nodes: Sequence[int], lifts: Lifts) -> int:
        """Return the same for these classes alone."""
        free = {n: tuple(self.supply(self.nodes[n], lifts)) for n in nodes}
        placed = 0
        for index in sorted(classes, key=lambda i: self.classes[i].task.request[GPU], reverse=True):
            placed += self._fill(index, free, lifts)
        return placed

    def _fill(self, index: int, free: dict[int, tuple[float, ...]], lifts: Lifts) -> int:
        item, placed = self.classes[index], 0
        for n in sorted(free, key=lambda n: (free[n][GPU], n)):
            if placed == len(item.tasks) or not self.allows(index, self.nodes[n], lifts):
                continue
            count = min(self.capacity(index, n, free[n], lifts), len(item.tasks) - placed)
            if count > 0:
                placed += count
                taken = [amount * count for amount in item.task.request]
                free[n] = tuple(a - b for a, b in zip(free[n], taken, strict=True))
        return placed

    def capacity(self, index: int, n: int, free: tuple[float, ...], lifts: Lifts) -> int:
        """Return how many pods of a class the amounts of a node allow."""
        item = self.classes[index]
        if any(amount < 0 for amount in free):
            return 0
        request = list(item.task.request)
        if item.task.asks_shared_gpu:
            request[GPU] = 0
        count = alone(PodClass(len(item.tasks), tuple(request)), 0, free)
        if item.task.asks_shared_gpu:
            count = min(count, self.takes_share(item.task, self.nodes[n], lifts))
        return count if item.per_node is None else min(count, item.per_node)

    # Topology

    @cached_property
    def _constraint(self) -> tuple[TopologyConstraint, Topology] | None:
        return required(self.session.snapshot.topologies, self.job.root.constraint)

    @cached_property
    def level(self) -> str:
        """The node label of the level that the step must keep to; the outermost, empty without a constraint."""
        if self._constraint is not None:
            return self._constraint[0].required_level
        return self._inner_levels[0] if self._inner_levels else ""

    @cached_property
    def domains(self) -> list[Domain] | None:
        """The domains that the whole step may choose from; None without a constraint on the whole."""
        if self._constraint is None:
            return None
        return domains_of(self.nodes, *self._constraint, nodes_in_use(self.job.root, self.tasks))

    @cached_property
    def is_pinned(self) -> bool:
        """Whether running pods tie the step to a domain."""
        return bool(self._constraint and nodes_in_use(self.job.root, self.tasks))

    @cached_property
    def _constrained_parts(self) -> list[PartDomains]:
        found = []
        for group in groups_below(self.job.root):
            resolved = required(self.session.snapshot.topologies, group.constraint)
            if resolved is None:
                continue
            names = {group.name} if isinstance(group, PodSet) else {leaf.name for leaf in group.descendants()}
            classes = [i for i, item in enumerate(self.classes) if item.task.sub_group in names]
            if classes:
                domains = domains_of(self.nodes, *resolved, nodes_in_use(group, self.tasks))
                found.append(PartDomains(group.name, classes, domains, resolved[0].required_level))
        return found

    @property
    def _inner_levels(self) -> list[str]:
        return [part.level for part in self._constrained_parts]

    def part_domains(self) -> list[PartDomains]:
        """Return the subgroups with constraints of their own."""
        return self._constrained_parts
