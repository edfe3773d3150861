"""The room for a gang's step if single things were different: holders gone, nodes emptied, nodes mended.

Adds to ``explain.room`` lifts that name one gang or one node, so that a smallest set of them can be looked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gangdash.engine.explain.room import NOTHING, STATE_REASONS, Lift, Lifts, Room, reason_lift
from gangdash.engine.explain.stock import Stock
from gangdash.engine.identifiers import NodeReason
from gangdash.engine.session import GPU, JobState, NodeState, TaskState

_STATES = frozenset(STATE_REASONS)
_LOCAL = frozenset({"gang", "emptied", "mended"})
_SHORT_LIST = 8
"""Sets of two are looked for among this many; larger sets grow one by one."""
_MOST_ASKED = 24
_FEW_ASKED = 8
"""Exact searches that one question may cost, in a small cluster and in a large one."""
_LARGE = 256
"""Nodes beyond which a cluster is large."""


def without_gang(key: str) -> Lift:
    """Return the lift under which a gang, by the name of its PodGroup, holds nothing."""
    return Lift("gang", key)


def emptied(node: str) -> Lift:
    """Return the lift under which nothing runs on a node."""
    return Lift("emptied", node)


def mended(node: str) -> Lift:
    """Return the lift under which a node and its devices are as they should be."""
    return Lift("mended", node)


def _released(node: NodeState, gone: set[str]) -> list[float]:
    """Return what a node gets back without some gangs: a shared device only when all its users go."""
    back = [0.0] * len(node.allocatable)
    stays: dict[str, bool] = {}
    for placed in node.placed.values():
        owner = placed.task.job
        goes = owner is not None and owner.key in gone
        if goes:
            back = [a + b for a, b in zip(back, placed.charge, strict=True)]
        for group in placed.groups:
            stays[group] = stays.get(group, False) or not goes
    back[GPU] += sum(not kept for kept in stays.values())
    return back


@dataclass(slots=True)
class _Shared:
    """What rooms of one gang need not work out again: it does not depend on the pods that are to be placed."""

    supplies: dict[Lifts, dict[int, list[float]]]
    split: dict[Lifts, tuple[Lifts, frozenset[int]]] = field(default_factory=dict)
    hosts: dict[str, set[int]] = field(default_factory=dict)


class SpareRoom(Room):
    """A room that knows the lifts of this module; ``assumed`` ones hold in every question."""

    def __init__(self, stock: Stock, job: JobState, tasks: Sequence[TaskState]) -> None:
        super().__init__(stock, job, tasks)
        self.assumed: Lifts = NOTHING
        self.shared = _Shared(self._supplies)

    @classmethod
    def of(cls, room: Room, tasks: Sequence[TaskState] | None = None, assumed: Lifts = NOTHING) -> SpareRoom:
        """Return the same step, or other pods in its place, with some lifts taken as given."""
        made = cls(room.stock, room.job, room.tasks if tasks is None else tasks)
        made.assumed = assumed
        if isinstance(room, SpareRoom):
            made.adopt(room.shared)
        return made

    def adopt(self, shared: _Shared) -> None:
        self.shared, self._supplies = shared, shared.supplies

    def _parts(self, lifts: Lifts) -> tuple[Lifts, frozenset[int]]:
        """Return the lifts that hold for all nodes, and the nodes, by index, that the others are about."""
        found = self.shared.split.get(lifts)
        if found is None:
            own = {lift for lift in lifts if lift.kind in _LOCAL}
            touched = frozenset(index for lift in own for index in self._touched(lift))
            found = self.shared.split[lifts] = (lifts - own, touched)
        return found

    def _touched(self, lift: Lift) -> Iterable[int]:
        if lift.kind != "gang":
            return (self.session.nodes[lift.what].index,)
        hosts = self.shared.hosts
        if not hosts:
            for node in self.nodes:
                for placed in node.placed.values():
                    if placed.task.job is not None:
                        hosts.setdefault(placed.task.job.key, set()).add(node.index)
        return hosts.get(lift.what, ())

    def fits(self, lifts: Lifts = NOTHING) -> bool | None:
        return super().fits(lifts | self.assumed)

    def fit_count(self, nodes: Sequence[int], lifts: Lifts = NOTHING) -> int:
        return super().fit_count(nodes, lifts | self.assumed)

    def _node_sets(self, lifts: Lifts) -> Iterator[Sequence[int]]:
        """Leave out domains that no lift of this module touches, where they are known not to do as they are."""
        plain, touched = self._parts(lifts)
        known = bool(touched) and super().fits(plain) is False
        for nodes in super()._node_sets(lifts):
            if not known or not touched.isdisjoint(nodes):
                yield nodes

    def supply(self, node: NodeState, lifts: Lifts) -> list[float]:
        plain, touched = self._parts(lifts)
        return super().supply(node, lifts if node.index in touched else plain)

    def _supply(self, node: NodeState, lifts: Lifts) -> list[float]:
        if Lift("emptied", node.name) in lifts:
            return list(node.allocatable)
        supply = super()._supply(node, lifts)
        gone = {lift.what for lift in lifts if lift.kind == "gang"}
        if gone:
            supply = [a + b for a, b in zip(supply, _released(node, gone), strict=True)]
        if Lift("mended", node.name) in lifts:
            supply = self._whole(node, supply)
        return supply

    def _whole(self, node: NodeState, supply: list[float]) -> list[float]:
        missing, stuck = self.stock.missing[node.index], self.stock.stuck[node.index]
        if stuck is not None:
            supply = [a + b for a, b in zip(supply, stuck, strict=True)]
        if missing is not None:
            supply[GPU] += missing[1]
        return supply

    def allows(self, index: int, node: NodeState, lifts: Lifts) -> bool:
        lifts |= self.assumed
        reasons = self.reasons[index][node.index]
        if not reasons:
            return True
        if NodeReason.NUMA in reasons and node.index in self._parts(lifts)[1]:
            # Which zone gets room is not known here; the re-run will tell.
            reasons = reasons - {NodeReason.NUMA}
        if reasons <= _STATES and (not reasons or Lift("mended", node.name) in lifts):
            return True
        return super().allows(index, node, lifts)

    @property
    def _most_asked(self) -> int:
        return _FEW_ASKED if len(self.nodes) > _LARGE else _MOST_ASKED

    def node_sets(self) -> list[Sequence[int]]:
        """Return the sets of nodes, by index, that the step could be placed in: its domains, or all nodes."""
        return list(self._node_sets(self.assumed))

    def allows_some(self, node: NodeState) -> bool:
        """Whether some class of the step may use the node, amounts aside."""
        return any(self.allows(index, node, NOTHING) for index in range(len(self.classes)))

    @cached_property
    def held_by(self) -> dict[str, float]:
        """Keys of gangs that hold something on nodes which the step may use; with their GPUs there, at least 0."""
        found: dict[str, float] = {}
        for node in self.nodes:
            if self.allows_some(node):
                for placed in node.placed.values():
                    owner = placed.task.job
                    if owner is not None and owner is not self.job and not placed.task.is_reservation:
                        found[owner.key] = found.get(owner.key, 0.0) + placed.task.accepted_amounts[2]
        return found

    def sets_that_help(self, lifts: Sequence[Lift], base: Lifts = NOTHING, most: int = 3) -> list[tuple[Lift, ...]]:
        """Return small sets of the lifts under which the step fits: single ones, else pairs, else one grown and pruned.

        The lifts come in order of preference; no set holds another. Where the step fits anyway, so that others are
        before it, any single one may help.
        """
        if self.fits(base):
            return [(lift,) for lift in lifts[:most]]
        found: list[tuple[Lift, ...]] = []
        pairs = itertools.combinations(lifts[:_SHORT_LIST], 2)
        sets = itertools.chain(((lift,) for lift in lifts), pairs)
        for chosen in itertools.islice(sets, self._most_asked):
            if len(found) == most or (found and len(chosen) > len(found[0])):
                return found
            if self.fits(base | frozenset(chosen)):
                found.append(chosen)
        return found or self._grown(lifts, base)

    def without_reason(self, *reasons: NodeReason) -> tuple[str, ...]:
        """Return the nodes that the step would use if the reasons did not count, on an empty cluster if need be.

        Empty where the reasons are not what keeps the step from them.
        """
        present = frozenset(reason_lift(reason) for reason in reasons if reason in self.present)
        if not present:
            return ()
        busy = frozenset(Lift("busy", name) for name in self.session.layout.names)
        for lifts in (present, present | busy):
            if self.fits(lifts):
                return self.placement
        return ()

    def _grown(self, lifts: Sequence[Lift], base: Lifts) -> list[tuple[Lift, ...]]:
        """Take lifts in order until the step fits, then drop those that it does not need."""
        low, high = 0, len(lifts)
        if not self.fits(base | frozenset(lifts)):
            return []
        while low < high:
            middle = (low + high) // 2
            if self.fits(base | frozenset(lifts[:middle])):
                high = middle
            else:
                low = middle + 1
        kept = list(lifts[:high])
        for lift in reversed(kept[: self._most_asked]):
            fewer = [other for other in kept if other is not lift]
            if self.fits(base | frozenset(fewer)):
                kept = fewer
        return [tuple(kept)]
