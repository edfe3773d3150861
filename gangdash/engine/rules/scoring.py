"""Which of the nodes that might host a task comes first.

A node's score is the sum over the enabled plugins; the weights are so far apart that each plugin only
decides among nodes that the stronger ones leave equal. Names break ties. Mirrors plugins/nodeplacement,
resourcetype, nodeavailability, gpusharingorder and nominatednode (KAI d5bc503a); topology and inter-pod
affinity score in their own modules.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangdash.engine.session import CPU, GPU, NodeState, Session, TaskState

RESOURCE_TYPE = 10
AVAILABILITY = 1000
GPU_SHARING = 10_000
NOMINATED = 10_000_000
_DENSEST = 9


def ordered_nodes(session: Session, task: TaskState, nodes: Sequence[NodeState]) -> list[NodeState]:
    """Return the nodes in the order in which the task tries them; a scorer may drop some."""
    scorers = session.hooks.node_scorers
    for scorer in scorers:
        scorer.prepare(task, nodes)
    scored: list[tuple[float, str, NodeState]] = []
    for node in nodes:
        total = 0.0
        for scorer in scorers:
            score = scorer.score(task, node)
            if score is None:
                break
            total += score
        else:
            scored.append((-total, node.name, node))
    scored.sort(key=lambda entry: entry[:2])
    return [node for _, _, node in scored]


class Placement:
    """Fill nodes up (``pack``) or even them out (``spread``), by GPUs or by cpu as the task asks."""

    def __init__(self, *, spread_gpu: bool, spread_cpu: bool) -> None:
        self._spread = {GPU: spread_gpu, CPU: spread_cpu}
        self._slot = CPU
        self._least = self._most = 0.0

    def prepare(self, task: TaskState, nodes: Sequence[NodeState]) -> None:
        slot = self._slot = GPU if task.asks_gpu else CPU
        if not self._spread[slot]:
            free = [node.idle[slot] + node.releasing[slot] for node in nodes if node.allocatable[slot]]
            self._least, self._most = min(free, default=0.0), max(0.0, *free) if free else 0.0

    def score(self, task: TaskState, node: NodeState) -> float:
        slot = self._slot
        free = node.idle[slot] + node.releasing[slot]
        if self._spread[slot]:
            whole = node.gpu_count if slot == GPU else node.allocatable[slot]
            return free / whole if whole else 0.0
        if not node.allocatable[slot] or self._most == 0:
            return 0.0
        if self._least == self._most:
            return _DENSEST
        return _DENSEST * (1 - (free - self._least) / (self._most - self._least))


class StateScorer:
    """A scorer that goes by the task's template and the node's state alone, so that answers can be kept."""

    def prepare(self, task: TaskState, nodes: Sequence[NodeState]) -> None:
        """Nothing to prepare."""


class ResourceType(StateScorer):
    """Keep cpu-only tasks on nodes without GPUs."""

    def score(self, task: TaskState, node: NodeState) -> float:
        return RESOURCE_TYPE if node.is_cpu_only and not task.asks_gpu else 0.0


class Availability(StateScorer):
    """Prefer nodes where the task need not wait."""

    def score(self, task: TaskState, node: NodeState) -> float:
        return AVAILABILITY if node.fits_idle(task) else 0.0


class GpuSharing(StateScorer):
    """Prefer nodes with a GPU in use that takes the task."""

    def score(self, task: TaskState, node: NodeState) -> float:
        shared = node.shared
        if not shared.used:
            return 0.0
        need = node.memory_need(task.gpu)
        return GPU_SHARING if any(shared.takes(group, need, node.gpu_memory) for group in shared.used) else 0.0


class NominatedNode:
    """Prefer the node that the pod was promised in an earlier cycle."""

    def prepare(self, task: TaskState, nodes: Sequence[NodeState]) -> None:
        """Nothing to prepare."""

    def score(self, task: TaskState, node: NodeState) -> float:
        return NOMINATED if task.pod.nominated_node == node.name else 0.0
