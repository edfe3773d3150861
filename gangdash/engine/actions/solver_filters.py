"""Which trials cannot work whatever is tried? Cheap counts that spare a simulation.

GPUs per node, GPUs per topology domain, and required node affinity, each kept up to date as victims are
added. The scheduler applies the same three, so they also decide which trials exist at all. Mirrors
pkg/scheduler/actions/common/solvers/accumulated_scenario_filters (KAI d5bc503a).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from gangdash.engine.actions.solver_capacity import future_gpus
from gangdash.engine.actions.solver_trial import Trial
from gangdash.engine.rules.matching import has_node_constraint, names_conflict, node_matches_pod
from gangdash.engine.session import NodeState, Session, SubGroupSet, TaskState


class Filter(Protocol):
    def allows(self, trial: Trial) -> bool:
        """Take in what is new in a trial that has only grown since the last call, and judge it."""
        ...


def filters_for(session: Session, trial: Trial, feasible: Mapping[str, NodeState]) -> list[Filter]:
    """Return the filters that apply to a trial, in the scheduler's order."""
    found: list[Filter] = []
    if any(has_node_constraint(task.pod) for task in trial.ask.pending):
        found.append(AffinityFilter(session, trial, feasible))
    constrained = list(_required(trial.ask.view.root))
    if constrained:
        found.append(DomainFilter(session, constrained))
    found.append(GpuFilter(session, trial.ask.pending))
    return found


class _NewVictims:
    """Hands out each victim that has a node once."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def of(self, tasks: Iterable[TaskState]) -> Iterator[TaskState]:
        for task in tasks:
            if task.node_name and task.uid not in self._seen:
                self._seen.add(task.uid)
                yield task


def matches_greedily(wanted: Sequence[float], holders: Sequence[float]) -> bool:
    """Whether each want finds a holder with room, both sorted from the largest; a want of 0 ends the matter."""
    taken = [0.0] * len(holders)
    for amount in wanted:
        if amount == 0:
            return True
        for index, total in enumerate(holders):
            if total < amount:
                return False
            if total - taken[index] >= amount:
                taken[index] += amount
                break
        else:
            return False
    return True


class GpuFilter:
    """Each pending pod needs a node with enough GPUs, counting everything the victims would free."""

    def __init__(self, session: Session, pending: Sequence[TaskState]) -> None:
        self._wanted = sorted((task.gpu.quota_gpus for task in pending), reverse=True)
        self._free = {name: future_gpus(node) for name, node in session.nodes.items()}
        self._new = _NewVictims()
        self._most = max(self._free.values(), default=0.0)

    def allows(self, trial: Trial) -> bool:
        for tasks in (trial.recorded_tasks(), trial.potential_tasks()):
            for task in self._new.of(tasks):
                free = self._free.get(task.node_name, 0.0) + task.accepted_gpu.quota_gpus
                self._free[task.node_name] = free
                self._most = max(self._most, free)
        if self._wanted and self._wanted[0] > self._most:
            return False
        # No more nodes than pods can matter: each pod opens at most one.
        return matches_greedily(self._wanted, heapq.nlargest(len(self._wanted), self._free.values()))


class DomainFilter:
    """Each subgroup with a required level needs a domain with enough GPUs for all of its pods."""

    def __init__(self, session: Session, groups: Sequence[SubGroupSet]) -> None:
        self._wanted: dict[tuple[str, str], list[float]] = {}
        for group in groups:
            if group.constraint is not None:
                key = (group.constraint.topology, group.constraint.required_level)
                self._wanted.setdefault(key, []).append(_gpus_below(group))
        self._free: dict[tuple[str, str], dict[str, float]] = {key: {} for key in self._wanted}
        self._labels = {name: node.node.meta.labels for name, node in session.nodes.items()}
        self._new = _NewVictims()
        for name, node in session.nodes.items():
            self._give(name, future_gpus(node))

    def _give(self, node_name: str, gpus: float) -> None:
        labels = self._labels.get(node_name, {})
        for key, domains in self._free.items():
            domain = labels.get(key[1], "")
            if domain:
                domains[domain] = domains.get(domain, 0.0) + gpus

    def allows(self, trial: Trial) -> bool:
        for tasks in (trial.recorded_tasks(), trial.potential_tasks()):
            for task in self._new.of(tasks):
                self._give(task.node_name, task.accepted_gpu.quota_gpus)
        return all(
            matches_greedily(sorted(wanted, reverse=True), sorted(self._free[key].values(), reverse=True))
            for key, wanted in self._wanted.items()
        )


def _required(group: SubGroupSet) -> Iterator[SubGroupSet]:
    """Yield the inner nodes with a required level; pod sets' own constraints are not looked at here."""
    if group.constraint is not None and group.constraint.required_level:
        yield group
    for child in group.groups:
        yield from _required(child)


def _gpus_below(group: SubGroupSet) -> float:
    return sum(task.gpu.quota_gpus for pod_set in group.descendants() for task in pod_set.tasks)


class AffinityFilter:
    """Each pending pod with required node affinity needs a matching node among the feasible ones."""

    def __init__(self, session: Session, trial: Trial, feasible: Mapping[str, NodeState]) -> None:
        self._nodes = session.nodes
        self._allowed = set(feasible)
        self._new = _NewVictims()
        self._open = [task for task in trial.ask.pending if has_node_constraint(task.pod)]
        self._hopeless = any(names_conflict(task.pod) for task in self._open)
        self._settle(self._allowed)
        self._take_in(trial)

    def _take_in(self, trial: Trial) -> None:
        found: set[str] = set()
        for tasks in (trial.potential_tasks(), trial.recorded_tasks()):
            found.update(task.node_name for task in self._new.of(tasks))
        found -= self._allowed
        self._allowed |= found
        self._settle(found)

    def _settle(self, names: set[str]) -> None:
        """Drop the pods that one of these nodes suits: feasible nodes only ever come to it."""
        matches: Callable[[TaskState], bool] = lambda task: any(  # noqa: E731
            node_matches_pod(task.pod, self._nodes[name].node) for name in names if name in self._nodes
        )
        self._open = [task for task in self._open if not matches(task)]

    def allows(self, trial: Trial) -> bool:
        self._take_in(trial)
        return not self._open and not self._hopeless
