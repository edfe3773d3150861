"""Nodes in groups that no rule can tell apart but by name.

Big clusters have thousands of nodes in a few dozen states. Grouping them makes a choice among nodes cost
as many questions as there are states. Groups follow changes and undos through ``NodeState.watchers``.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping

from gangdash.engine.session.core import Session
from gangdash.engine.statement import GPU, NodeState

Group = tuple[int, float]
"""Number of the state, and the score that sets nodes of one state apart (0 where nothing does)."""


class StateNumbers:
    """Gives equal numbers to nodes of equal template and equal vectors.

    A node with shared GPUs or counted claim devices gets a number of its own with every change.
    """

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._next = 0

    def of(self, node: NodeState) -> int:
        if node.state_stamp != node.stamp:
            node.state = self._number(node)
            node.state_stamp = node.stamp
        return node.state

    def _number(self, node: NodeState) -> int:
        if node.shared.used or node.device_users:
            self._next += 1
            return self._next
        key = (node.template, *node.idle, *node.used, *node.releasing)
        number = self._numbers.get(key)
        if number is None:
            self._next += 1
            number = self._numbers[key] = self._next
        return number


class Buckets:
    """A set of nodes by group; inside a group by index, which is the order of names."""

    def __init__(
        self, numbers: StateNumbers, nodes: Iterable[NodeState], scores: Mapping[str, float] | None = None
    ) -> None:
        self._numbers = numbers
        self._scores = scores
        self._group: dict[int, Group] = {}
        self._gpus: dict[Group, float] = {}
        self._by_gpus: dict[float, dict[Group, None]] = {}
        """Groups of nodes that have GPUs, by how many are free or being released."""
        self.groups: dict[Group, list[int]] = {}
        of, groups = numbers.of, self.groups
        for node in nodes:
            score = 0.0
            if scores is not None:
                found = scores.get(node.name)
                if found is None:
                    continue
                score = found
            group = (of(node), score)
            self._group[node.index] = group
            members = groups.get(group)
            if members is None:
                groups[group] = [node.index]
                self._enter(group, node)
            else:
                members.append(node.index)
        for members in groups.values():
            members.sort()

    def with_gpus(self, needed: float) -> Iterator[Group]:
        """Yield the groups whose nodes have so many GPUs free or being released."""
        for gpus, groups in self._by_gpus.items():
            if gpus >= needed:
                yield from groups

    def one_per_gpus(self) -> list[int]:
        """Return a node for each number of GPUs that nodes with GPUs have free or being released."""
        return [self.groups[next(iter(groups))][0] for groups in self._by_gpus.values()]

    def _enter(self, group: Group, node: NodeState) -> None:
        if node.allocatable[GPU]:
            gpus = self._gpus[group] = node.idle[GPU] + node.releasing[GPU]
            self._by_gpus.setdefault(gpus, {})[group] = None

    def _leave(self, group: Group) -> None:
        gpus = self._gpus.pop(group, None)
        if gpus is not None:
            groups = self._by_gpus[gpus]
            del groups[group]
            if not groups:
                del self._by_gpus[gpus]

    def update(self, node: NodeState) -> None:
        """Move a node that has changed to its present group."""
        before = self._group.get(node.index)
        if before is None:
            return
        after = (self._numbers.of(node), before[1])
        if after == before:
            return
        members = self.groups[before]
        del members[bisect_left(members, node.index)]
        if not members:
            del self.groups[before]
            self._leave(before)
        self._group[node.index] = after
        others = self.groups.get(after)
        if others is None:
            self.groups[after] = [node.index]
            self._enter(after, node)
        else:
            insort(others, node.index)


class AllBuckets(Buckets):
    """The groups of all nodes of a session, kept up to date."""

    def __init__(self, session: Session, numbers: StateNumbers) -> None:
        super().__init__(numbers, session.all_nodes)
        self._changed: set[NodeState] = set()
        session.watchers.append(self._changed)

    def refresh(self) -> AllBuckets:
        for node in self._changed:
            self.update(node)
        self._changed.clear()
        return self
