"""The points at which rules decide, in the order in which the shard's plugins are configured.

Mirrors pkg/scheduler/framework/session_plugins.go (KAI d5bc503a). A list that is empty means that no
enabled plugin has a say. Texts are the scheduler's; an empty text or tuple means "no objection".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from gangdash.engine.statement import GangError, JobState, NodeState, SubGroup, TaskState

PrePredicate = Callable[[TaskState, JobState], str]
"""Why the task can be placed nowhere, before any node is looked at."""
Predicate = Callable[[TaskState, JobState, NodeState], tuple[str, ...]]
"""The reasons of the first check that refuses the task on the node, resources aside."""
Invariant = Callable[[TaskState], str]
"""Why no eviction could ever help the task."""
SubsetNodes = Callable[[JobState, SubGroup, Sequence[TaskState], list[NodeState]], Iterable[list[NodeState]] | None]
"""Candidate node sets in order of trial; ``None`` where the plugin fails, which nobody is told of."""
CapacityCheck = Callable[[JobState, Sequence[TaskState]], GangError | None]
VictimFilter = Callable[[JobState, JobState], bool]
"""Whether the second gang may be a victim of the first."""
GpuScore = Callable[[TaskState, NodeState, str | None], float]
"""How well a shared GPU group (``None``: a whole free GPU) suits the task."""


class NodeScorer(Protocol):
    """Scores the nodes of one choice. ``prepare`` sees all candidates before any ``score``."""

    def prepare(self, task: TaskState, nodes: Sequence[NodeState]) -> None: ...

    def score(self, task: TaskState, node: NodeState) -> float | None:
        """Return the score; ``None`` drops the node from this choice."""
        ...


@dataclass(slots=True)
class Hooks:
    """What the enabled plugins do. Orders are keys: smaller comes first."""

    pre_predicates: list[PrePredicate] = field(default_factory=list)
    predicates: list[Predicate] = field(default_factory=list)
    all_failures: list[Predicate] = field(default_factory=list)
    """Every failing check of a task on a node, not only the first; for explanations."""
    tells_apart: list[Callable[[TaskState], bool]] = field(default_factory=list)
    """Whether some rule may answer differently for the task on two nodes of equal state: ports, volumes, other pods."""
    excludes: list[Callable[[TaskState, NodeState], bool]] = field(default_factory=list)
    """Whether labels, taints, state or shape alone keep the task off the node, whatever else happens in the cycle."""
    victim_invariants: list[Invariant] = field(default_factory=list)
    node_scorers: list[NodeScorer] = field(default_factory=list)
    gpu_scores: list[GpuScore] = field(default_factory=list)
    subset_nodes: list[SubsetNodes] = field(default_factory=list)
    over_capacity: list[CapacityCheck] = field(default_factory=list)
    """Limit and quota for the tasks of a step."""
    non_preemptible_over_quota: list[CapacityCheck] = field(default_factory=list)
    """The quota alone, for gangs that are not preemptible."""
    before_turn: list[Callable[[str, JobState], None]] = field(default_factory=list)
    """Runs before an action, by name, tries the gang whose turn it is; leaves the session as it was."""
    before_job: list[Callable[[JobState], None]] = field(default_factory=list)
    """Runs before each attempt to place a gang."""
    can_reclaim: list[Callable[[JobState], bool]] = field(default_factory=list)
    reclaim_victims: list[VictimFilter] = field(default_factory=list)
    preempt_victims: list[VictimFilter] = field(default_factory=list)
    reclaim_scenarios: list[Callable[..., bool]] = field(default_factory=list)
    preempt_scenarios: list[Callable[..., bool]] = field(default_factory=list)
    reclaim_limits: list[Callable[..., Callable[[Sequence[TaskState], Sequence[TaskState]], float]]] = field(
        default_factory=list
    )
    """For a gang and its demand: the most GPUs that some of the victims may lose by the rule."""
    solution_start: list[Callable[[], None]] = field(default_factory=list)
    """Runs before the search for the victims of one gang."""
