"""Which trials cannot work whatever is tried? Cheap counts that spare a simulation.

GPUs per node, GPUs per topology domain, and required node affinity, each kept up to date as victims are
added. The scheduler applies the same three, so they also decide which trials exist at all. Mirrors
pkg/scheduler/actions/common/solvers/accumulated_scenario_filters (KAI d5bc503a).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from gangdash.engine.actions.solver_capacity import Capacities
from gangdash.engine.actions.solver_trial import Trial
from gangdash.engine.rules.matching import has_node_constraint, names_conflict, node_matches_pod
from gangdash.engine.session import NodeState, Session, SubGroupSet, TaskState


class Filter(Protocol):
    def allows(self, trial: Trial) -> bool:
        """Take in what is new in a trial that has only grown since the last call, and judge it."""
        ...


def filters_for(
    session: Session, trial: Trial, feasible: Mapping[str, NodeState], capacities: Capacities
) -> list[Filter]:
    """Return the filters that apply to a trial, in the scheduler's order."""
    found: list[Filter] = []
    if any(has_node_constraint(task.pod) for task in trial.ask.pending):
        found.append(AffinityFilter(session, trial, feasible))
    constrained = list(_required(trial.ask.view.root))
    if constrained:
        found.append(DomainFilter(session, constrained, capacities))
    wanted = sorted((task.gpu.quota_gpus for task in trial.ask.pending), reverse=True)
    if wanted[0] > 0:
        is_plain = wanted[0] == wanted[-1] and wanted[0] == int(wanted[0])
        found.append(EqualGpuFilter(wanted, capacities) if is_plain else GpuFilter(wanted, capacities))
    return found


class _NewVictims:
    """Hands out the victims with a node that a growing trial has gained since the last call."""

    def __init__(self) -> None:
        self._seen = -1
        """Batches looked at; -1 before the recorded ones were."""

    def of(self, trial: Trial) -> Iterator[TaskState]:
        if self._seen < 0:
            self._seen = 0
            yield from (task for task in trial.recorded_tasks() if task.node_name)
        new = trial.batches[self._seen :]
        self._seen = len(trial.batches)
        yield from (task for batch in new for task in batch.tasks if task.node_name)


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

    def __init__(self, wanted: Sequence[float], capacities: Capacities) -> None:
        self._wanted = wanted
        self._free = dict(capacities.future)
        self._new = _NewVictims()
        self._most = max(self._free.values(), default=0.0)

    def allows(self, trial: Trial) -> bool:
        for task in self._new.of(trial):
            free = self._free.get(task.node_name, 0.0) + task.accepted_gpu.quota_gpus
            self._free[task.node_name] = free
            self._most = max(self._most, free)
        if self._wanted[0] > self._most:
            return False
        # No more nodes than pods can matter: each pod opens at most one.
        return matches_greedily(self._wanted, heapq.nlargest(len(self._wanted), self._free.values()))


class EqualGpuFilter:
    """The same for pods that all want the same number of whole GPUs: then places can simply be counted."""

    def __init__(self, wanted: Sequence[float], capacities: Capacities) -> None:
        self._pods, self._gpus = len(wanted), wanted[0]
        self._future = capacities.future
        self._freed: dict[str, float] = {}
        self._new = _NewVictims()
        self._slots = capacities.whole_slots(self._gpus)

    def allows(self, trial: Trial) -> bool:
        for task in self._new.of(trial):
            name = task.node_name
            before = self._future.get(name, 0.0) + self._freed.get(name, 0.0)
            after = before + task.accepted_gpu.quota_gpus
            self._freed[name] = self._freed.get(name, 0.0) + task.accepted_gpu.quota_gpus
            self._slots += int(max(after, 0.0) // self._gpus) - int(max(before, 0.0) // self._gpus)
        return self._slots >= self._pods


class DomainFilter:
    """Each subgroup with a required level needs a domain with enough GPUs for all of its pods."""

    def __init__(self, session: Session, groups: Sequence[SubGroupSet], capacities: Capacities) -> None:
        self._wanted: dict[tuple[str, str], list[float]] = {}
        for group in groups:
            if group.constraint is not None:
                key = (group.constraint.topology, group.constraint.required_level)
                self._wanted.setdefault(key, []).append(_gpus_below(group))
        self._free = {key: dict(capacities.of_domains(key[1])) for key in self._wanted}
        self._nodes = session.nodes
        self._new = _NewVictims()

    def _give(self, node_name: str, gpus: float) -> None:
        if node_name not in self._nodes:
            return
        labels = self._nodes[node_name].node.meta.labels
        for key, domains in self._free.items():
            domain = labels.get(key[1], "")
            if domain:
                domains[domain] = domains.get(domain, 0.0) + gpus

    def allows(self, trial: Trial) -> bool:
        for task in self._new.of(trial):
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
        found = {task.node_name for task in self._new.of(trial)} - self._allowed
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
