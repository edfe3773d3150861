"""How many GPUs a node has or will have free, in the scheduler's own sum over whole, shared and MIG GPUs.

Relies on the working state of one node. Mirrors GetSumOfIdleGPUs and GetSumOfReleasingGPUs in
pkg/scheduler/api/node_info (KAI d5bc503a).
"""

from __future__ import annotations

from gangdash.engine.session import GPU, NodeState
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


def has_gpus_to_give(node: NodeState) -> bool:
    return idle_gpus(node)[0] > 0 or releasing_gpus(node)[0] > 0
