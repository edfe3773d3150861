"""The topology domains that a gang or a part of it may choose from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gangdash.engine.model.podgroup import TopologyConstraint
from gangdash.engine.model.topology import Topology
from gangdash.engine.session import NodeState, PodSet, SubGroupSet, TaskState
from gangdash.engine.statement.status import ACTIVE_ALLOCATED


@dataclass(frozen=True, slots=True)
class Domain:
    """A topology domain: ``path`` are its label values from the broadest level on."""

    path: tuple[str, ...]
    level: str
    nodes: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.path[-1]


def required(
    topologies: Iterable[Topology], constraint: TopologyConstraint | None
) -> tuple[TopologyConstraint, Topology] | None:
    """Return a constraint that requires a level, with its topology; None if it requires none that exists."""
    if constraint is None or not constraint.topology or not constraint.required_level:
        return None
    found = next((t for t in topologies if t.name == constraint.topology), None)
    if found is None or constraint.required_level not in {level.node_label for level in found.levels}:
        return None
    return constraint, found


def domains_of(
    nodes: Sequence[NodeState], constraint: TopologyConstraint, topology: Topology, homes: set[str]
) -> list[Domain]:
    """Return the domains of the required level; with ``homes`` those alone that have one of these nodes."""
    labels = [level.node_label for level in topology.levels]
    depth = labels.index(constraint.required_level) + 1
    found: dict[tuple[str, ...], list[int]] = {}
    for node in nodes:
        own = node.node.meta.labels
        if all(label in own for label in labels):
            found.setdefault(tuple(own[label] for label in labels[:depth]), []).append(node.index)
    domains = [Domain(path, labels[depth - 1], tuple(members)) for path, members in sorted(found.items())]
    if homes:
        names = {node.index for node in nodes if node.name in homes}
        return [domain for domain in domains if names.intersection(domain.nodes)]
    return domains


def nodes_in_use(group: SubGroupSet | PodSet, tasks: Iterable[TaskState]) -> set[str]:
    """Return the nodes of placed pods in pod sets that have pods of these tasks."""
    leaves = [group] if isinstance(group, PodSet) else list(group.descendants())
    concerned = {task.sub_group for task in tasks}
    return {
        task.node_name
        for leaf in leaves
        if leaf.name in concerned
        for task in leaf.tasks
        if task.start_status & ACTIVE_ALLOCATED and task.node_name
    }


def groups_below(root: SubGroupSet) -> Iterator[SubGroupSet | PodSet]:
    """Yield every group below the root."""
    for member in root.members:
        yield member
        if isinstance(member, SubGroupSet):
            yield from groups_below(member)
