"""Proofs that a trial cannot work, far cheaper than simulating it.

Room: even with every victim gone and none placed again, the nodes hold fewer pods of at least the smallest
size asked than there are pods to place (in each required topology domain for the part that needs one).
Loss: victims that are placed again take room too, so some must be lost; if the rules let victims lose fewer
GPUs than that, or than what is asked beyond all that is free, the trial fails one way or the other. Both only
ever say "hopeless"; a test runs searches with and without them. Nothing in the scheduler corresponds to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gangdash.engine.actions.solver_trial import Ask
from gangdash.engine.rules.scenario import LossLimit
from gangdash.engine.session import GPU, NodeState, Session, SubGroup, SubGroupSet, TaskState

_NO_LIMIT = 1 << 30
_ROUNDING = 1e-6
_Need = tuple[tuple[int, float], ...]
"""Slots of the resource vector with the least that any of the pods asks there."""
_Domain = tuple[str, str]
"""A node label and its value; the empty label stands for all nodes."""
_EVERYWHERE: _Domain = ("", "")


class _Slots(NamedTuple):
    """How many pods of the smallest size asked a node has room for."""

    open: int
    """0 where a rule keeps all of the pods asked for off the node."""
    any: int
    """Whoever it is for: victims may go where the pods asked for may not."""


class Bounds:
    """What can be said of all trials for one ask."""

    def __init__(
        self, session: Session, ask: Ask, feasible: Mapping[str, NodeState], limit: LossLimit | None, known: SlotCache
    ) -> None:
        self._session = session
        self._pods = len(ask.pending)
        self._kinds = tuple({task.template: task for task in ask.pending}.values())
        self._need = _smallest(ask.pending)
        self._known = known.of(self._need, self._kinds)
        self._parts = list(_parts(ask, has_topology=session.config.plugin("topology") is not None))
        self._labels = tuple(dict.fromkeys(label for label, _ in self._parts if label))
        self._feasible = feasible
        self._base = {name: self._slots_now(node) for name, node in feasible.items()}
        self._without: dict[str, tuple[list[TaskState], _Slots]] = {}
        """Slots of a node without the victims that it had in the latest trial: the next one often has the same."""
        self._open: dict[_Domain, int] = {}
        for name, slots in self._base.items():
            self._add(self._open, name, slots.open)
        self._any = sum(slots.any for slots in self._base.values())
        self._limit = limit if all(map(is_plain, ask.pending)) else None
        self._asked = sum(task.request[GPU] for task in ask.pending)
        self._free = sum(map(_free_gpus, feasible.values()))

    def are_short(self, victims: Sequence[TaskState]) -> bool:
        """Whether no simulation with these victims can come to anything."""
        changes: dict[_Domain, int] = {}
        any_slots, free = self._any, self._free
        by_node: dict[str, list[TaskState]] = {}
        for task in victims:
            by_node.setdefault(task.node_name, []).append(task)
        for name, tasks in by_node.items():
            node, base = self._session.nodes[name], self._base.get(name, _NONE)
            known = self._without.get(name)
            if known is None or known[0] != tasks:
                known = self._without[name] = (tasks, self._slots(node, tasks))
            slots = known[1]
            self._add(changes, name, slots.open - base.open)
            any_slots += slots.any - base.any
            if name not in self._feasible:
                free += _free_gpus(node)
        if any(self._lacks(label, pods, changes) for label, pods in self._parts):
            return True
        return self._must_lose_too_much(victims, any_slots, free)

    def loses_too_much(self, lost: Sequence[TaskState], victims: Sequence[TaskState]) -> bool:
        """Whether what a simulation has lost so far is already more than may be."""
        if self._limit is None or not _are_whole(victims):
            return False
        return sum(task.accepted[GPU] for task in lost) > self._limit(lost, victims) + _ROUNDING

    def _must_lose_too_much(self, victims: Sequence[TaskState], slots: int, free: float) -> bool:
        """Whether more must be lost than may be."""
        if self._limit is None or not _are_whole(victims):
            return False
        large = [task for task in victims if all(task.request[slot] >= amount for slot, amount in self._need)]
        lost_pods = self._pods + len(large) - slots
        least = min(task.request[GPU] for task in self._kinds)
        if lost_pods > 0 and lost_pods * least > self._limit(large, victims):
            return True
        return self._asked > free and self._asked - free > self._limit(victims, victims)

    # Slots

    def _slots_now(self, node: NodeState) -> _Slots:
        known = self._known.get(node.index)
        if known is not None and known[0] == node.stamp:
            return known[1]
        slots = self._slots(node, ())
        self._known[node.index] = (node.stamp, slots)
        return slots

    def _slots(self, node: NodeState, freed: Iterable[TaskState]) -> _Slots:
        if node.not_ready:
            return _NONE
        extra = [node.placed[task.key] for task in freed if task.key in node.placed]
        most = _NO_LIMIT
        for slot, amount in self._need:
            if slot in node.unbacked:
                continue
            free = node.idle[slot] + node.releasing[slot] + sum([placed.charge[slot] for placed in extra])
            if slot == GPU:
                free += sum([len(placed.groups) for placed in extra])
            most = min(most, int(free // amount) if free > 0 else 0)
        return _Slots(0 if most and self._is_closed(node) else most, most)

    def _is_closed(self, node: NodeState) -> bool:
        excludes = self._session.hooks.excludes
        return all(any(rule(task, node) for rule in excludes) for task in self._kinds)

    # Domains

    def _add(self, totals: dict[_Domain, int], node: str, count: int) -> None:
        totals[_EVERYWHERE] = totals.get(_EVERYWHERE, 0) + count
        if not self._labels:
            return
        labels = self._session.nodes[node].node.meta.labels
        for label in self._labels:
            value = labels.get(label, "")
            if value:
                totals[label, value] = totals.get((label, value), 0) + count

    def _lacks(self, label: str, pods: int, changes: Mapping[_Domain, int]) -> bool:
        if not label:
            return self._open.get(_EVERYWHERE, 0) + changes.get(_EVERYWHERE, 0) < pods
        keys = {key for key in (*self._open, *changes) if key[0] == label}
        return all(self._open.get(key, 0) + changes.get(key, 0) < pods for key in keys)


_NONE = _Slots(0, 0)


class SlotCache:
    """Slots of nodes as they are, kept while the nodes' stamps stay."""

    def __init__(self) -> None:
        self._tables: dict[tuple[_Need, tuple[int, ...]], dict[int, tuple[int, _Slots]]] = {}

    def of(self, need: _Need, kinds: Sequence[TaskState]) -> dict[int, tuple[int, _Slots]]:
        """Return the table for a size and the kinds of pods that it is counted for, by node index."""
        return self._tables.setdefault((need, tuple(sorted(task.template for task in kinds))), {})


def _are_whole(victims: Iterable[TaskState]) -> bool:
    """Whether none shares GPUs or holds claimed devices: their room is not what their queue loses."""
    return not any(task.is_shared or task.pod.claims for task in victims)


def is_plain(task: TaskState) -> bool:
    """Whether the task needs whole GPUs of its own, so that a node without one is none for it."""
    return task.request[GPU] > 0 and not task.asks_shared_gpu and not task.pod.claims


def _free_gpus(node: NodeState) -> float:
    return max(0.0, node.idle[GPU] + node.releasing[GPU])


def _smallest(tasks: Sequence[TaskState]) -> _Need:
    """Return per resource the least that any of the pods asks, leaving out what not all of them ask."""
    least = [min(amounts) for amounts in zip(*(task.request for task in tasks), strict=True)]
    if any(task.asks_shared_gpu or task.pod.claims for task in tasks):
        least[GPU] = 0
    return tuple((slot, amount) for slot, amount in enumerate(least) if amount > 0)


def _parts(ask: Ask, *, has_topology: bool) -> Iterator[tuple[str, int]]:
    """Yield the number of pods that must share a value of a node label; the empty label stands for no such need."""
    yield "", len(ask.pending)
    if not has_topology:
        return
    by_set: dict[str, int] = {}
    for task in ask.pending:
        by_set[task.sub_group] = by_set.get(task.sub_group, 0) + 1
    for member in _members(ask.view.root):
        level = member.constraint.required_level if member.constraint is not None else ""
        names = [p.name for p in member.descendants()] if isinstance(member, SubGroupSet) else [member.name]
        pods = sum(by_set.get(name, 0) for name in names)
        if level and pods:
            yield level, pods


def _members(group: SubGroupSet) -> Iterator[SubGroup]:
    yield group
    yield from group.pod_sets
    for child in group.groups:
        yield from _members(child)
