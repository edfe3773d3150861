"""How many GPUs nodes have or will have free, in the scheduler's own sum over whole, shared and MIG GPUs.

``Capacities`` keeps the sums of all nodes as they are between two searches. Mirrors GetSumOfIdleGPUs and
GetSumOfReleasingGPUs in pkg/scheduler/api/node_info (KAI d5bc503a).
"""

from __future__ import annotations

from gangdash.engine.session import GPU, JobState, NodeState, Session
from gangdash.engine.statement.sharing import portion_of


def idle_gpus(node: NodeState) -> tuple[float, int]:
    """Return free GPUs, free parts of shared ones included, and their memory in MiB."""
    gpus, memory = 0.0, 0
    if not node.shared.allocated and not node.layout.mig:
        return node.idle[GPU], int(node.idle[GPU]) * node.gpu_memory
    for allocated in node.shared.allocated.values():
        if allocated > 0:
            gpus += 1 - portion_of(allocated, node.gpu_memory)
            memory += node.gpu_memory - allocated
    whole = node.layout.total_gpus(node.idle)
    return gpus + whole, memory + int(whole) * node.gpu_memory


def releasing_gpus(node: NodeState) -> tuple[float, int]:
    """Return GPUs that are being released, and their memory; a shared GPU that goes as a whole is counted whole."""
    gpus, memory = 0.0, 0
    if not node.shared.releasing and not node.layout.mig:
        return node.releasing[GPU], int(node.releasing[GPU]) * node.gpu_memory
    for group, releasing in node.shared.releasing.items():
        if releasing > 0 and not node.shared.is_releasing(group):
            gpus += portion_of(releasing, node.gpu_memory)
            memory += releasing
    whole = node.layout.total_gpus(node.releasing)
    return gpus + whole, memory + int(whole) * node.gpu_memory


def future_gpus(node: NodeState) -> float:
    if not node.shared.allocated and not node.shared.releasing and not node.layout.mig:
        return node.idle[GPU] + node.releasing[GPU]
    return idle_gpus(node)[0] + releasing_gpus(node)[0]


class Capacities:
    """What nodes have free between two searches; a search changes nothing that it does not take back."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stamps: list[int] = []
        self.future: dict[str, float] = {}
        """GPUs by node, those being released included."""
        self._giving: dict[str, NodeState] = {}
        self._by_label: dict[str, dict[str, float]] = {}
        self._whole: dict[float, int] = {}

    def refresh(self) -> None:
        """Sum anew if anything has changed."""
        nodes = self._session.nodes
        stamps = [node.stamp for node in nodes.values()]
        if stamps == self._stamps:
            return
        self._stamps = stamps
        self.future = {name: future_gpus(node) for name, node in nodes.items()}
        self._giving = {
            name: node for name, node in nodes.items() if idle_gpus(node)[0] > 0 or releasing_gpus(node)[0] > 0
        }
        self._by_label = {}
        self._whole = {}

    def feasible_for(self, job: JobState) -> dict[str, NodeState]:
        """Return all nodes, or for a gang of GPU pods only those with a GPU idle or being released."""
        return self._giving if all(task.asks_gpu for task in job.tasks.values()) else self._session.nodes

    def of_domains(self, label: str) -> dict[str, float]:
        """Return the GPUs by value of a node label; nodes without it are left out."""
        found = self._by_label.get(label)
        if found is None:
            found = self._by_label[label] = {}
            for name, node in self._session.nodes.items():
                value = node.node.meta.labels.get(label, "")
                if value:
                    found[value] = found.get(value, 0.0) + self.future[name]
        return found

    def whole_slots(self, gpus: float) -> int:
        """Return how many pods of so many whole GPUs the nodes could take together."""
        slots = self._whole.get(gpus)
        if slots is None:
            slots = self._whole[gpus] = sum(int(free // gpus) for free in self.future.values() if free > 0)
        return slots
