"""Proofs that a trial cannot work, far cheaper than simulating it.

Room: even with every victim gone and none placed again, the nodes hold fewer pods of at least the smallest
size asked than there are pods to place (in each required topology domain for the part that needs one).
Loss: what the victims' queues may lose by the rules, together with what is free, is less than what is
asked. Both only ever say "hopeless"; a test runs searches with and without them. Nothing in the scheduler
corresponds to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gangdash.engine.actions.solver_trial import Ask
from gangdash.engine.rules.scenario import LossLimit
from gangdash.engine.session import GPU, NodeState, Session, SubGroup, SubGroupSet, TaskState

_NO_LIMIT = 1 << 30


class Room:
    """How many pods of the smallest size asked fit, node by node, before and after evictions."""

    def __init__(self, session: Session, ask: Ask, feasible: Mapping[str, NodeState]) -> None:
        self._session = session
        self._need = _smallest(ask.pending)
        self._kinds = list({task.template: task for task in ask.pending}.values())
        self._parts = list(_parts(ask, has_topology=session.config.plugin("topology") is not None))
        self._labels = tuple(dict.fromkeys(label for label, _ in self._parts if label))
        self._base = {name: self._count(node, ()) for name, node in feasible.items()}
        self._totals = self._sums(self._base)

    def _count(self, node: NodeState, freed: Iterable[TaskState]) -> int:
        """Return how many pods the node could take if some of its pods left, 0 where a rule keeps all of them off."""
        if self._is_closed(node):
            return 0
        extra = [node.placed[task.key] for task in freed if task.key in node.placed]
        most = _NO_LIMIT
        for slot, amount in self._need:
            if slot in node.unbacked:
                continue
            free = node.idle[slot] + node.releasing[slot] + sum(placed.charge[slot] for placed in extra)
            if slot == GPU:
                free += sum(len(placed.groups) for placed in extra)
            most = min(most, int(free // amount) if free > 0 else 0)
        return most

    def _is_closed(self, node: NodeState) -> bool:
        excludes = self._session.hooks.excludes
        return all(any(rule(task, node) for rule in excludes) for task in self._kinds)

    def _sums(self, counts: Mapping[str, int]) -> dict[tuple[str, str], int]:
        """Return totals per required label and its value; the empty label stands for all nodes."""
        totals: dict[tuple[str, str], int] = {}
        for name, count in counts.items():
            for key in self._domains(name):
                totals[key] = totals.get(key, 0) + count
        return totals

    def _domains(self, node: str) -> Iterator[tuple[str, str]]:
        yield ("", "")
        labels = self._session.nodes[node].node.meta.labels
        for label in self._labels:
            value = labels.get(label, "")
            if value:
                yield (label, value)

    def is_short(self, victims: Iterable[TaskState]) -> bool:
        """Whether the pods asked for cannot all have room even with these victims gone."""
        by_node: dict[str, list[TaskState]] = {}
        for task in victims:
            by_node.setdefault(task.node_name, []).append(task)
        changes: dict[tuple[str, str], int] = {}
        for name, tasks in by_node.items():
            change = self._count(self._session.nodes[name], tasks) - self._base.get(name, 0)
            for key in self._domains(name):
                changes[key] = changes.get(key, 0) + change
        return any(self._lacks(label, pods, changes) for label, pods in self._parts)

    def _lacks(self, label: str, pods: int, changes: Mapping[tuple[str, str], int]) -> bool:
        keys = {key for key in (*self._totals, *changes) if key[0] == label}
        return all(self._totals.get(key, 0) + changes.get(key, 0) < pods for key in keys)


def _smallest(tasks: Sequence[TaskState]) -> tuple[tuple[int, float], ...]:
    """Return per resource the least that any of the pods asks, leaving out what none or not all of them ask."""
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


class Losses:
    """Whether the GPUs that are free and those that victims may lose are too few for the pods asked.

    A victim that is placed again frees nothing in sum. Says nothing about gangs that ask for parts of GPUs or for
    claimed devices, nor where such pods are among the victims.
    """

    def __init__(self, session: Session, ask: Ask, feasible: Mapping[str, NodeState], limit: LossLimit) -> None:
        self._session = session
        self._limit = limit
        self._asked = sum(task.request[GPU] for task in ask.pending)
        self._is_silent = self._asked <= 0 or not all(map(is_plain, ask.pending))
        self._feasible = feasible
        self._free = sum(map(_free_gpus, feasible.values()))

    def is_short(self, victims: Sequence[TaskState]) -> bool:
        if self._is_silent or any(task.is_shared or task.pod.claims for task in victims):
            return False
        others = {task.node_name for task in victims} - self._feasible.keys()
        free = self._free + sum(_free_gpus(self._session.nodes[name]) for name in others)
        return free + self._limit(victims) < self._asked


def is_plain(task: TaskState) -> bool:
    """Whether the task needs whole GPUs of its own, so that a node without one is none for it."""
    return task.request[GPU] > 0 and not task.asks_shared_gpu and not task.pod.claims


def _free_gpus(node: NodeState) -> float:
    return max(0.0, node.idle[GPU] + node.releasing[GPU])
