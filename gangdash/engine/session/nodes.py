"""A node as the scheduler takes it into a session: capacity, GPU memory, MIG mode, readiness.

Mirrors pkg/scheduler/api/node_info/node_info.go and scheduler_util/scheduler_utils.go (KAI d5bc503a).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gangdash.engine.model import resources
from gangdash.engine.model.config import SchedulerParams
from gangdash.engine.model.node import Node
from gangdash.engine.statement import GPU, Layout, NodeState

GPU_MEMORY_LABEL = "nvidia.com/gpu.memory"
GPU_COUNT_LABEL = "nvidia.com/gpu.count"
MIG_STRATEGY_LABEL = "nvidia.com/mig.strategy"

_TIB_IN_MIB = 1024 * 1024
_MIB = 1024 * 1024
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_PRESSURES = frozenset({"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})
_NUMBER = re.compile(r"[+-]?\d+")


def node_state(node: Node, index: int, layout: Layout, params: SchedulerParams, claimable_gpus: int) -> NodeState:
    """Return the empty node; ``claimable_gpus`` are GPU devices that resource slices offer on it."""
    allocatable = layout.from_amounts(node.allocatable)
    allocatable[GPU] += claimable_gpus
    state = NodeState(node, index, allocatable, layout)
    labels = node.meta.labels
    state.has_claimed_gpus = claimable_gpus > 0
    memory = gpu_memory(labels.get(GPU_MEMORY_LABEL, ""))
    if memory is not None:
        state.gpu_memory, state.has_gpu_memory = memory, True
    count = labels.get(GPU_COUNT_LABEL, "")
    state.gpu_count = int(count) if _NUMBER.fullmatch(count) else int(state.allocatable[GPU])
    state.is_mig = _is_mig(node, params)
    strategy = labels.get(MIG_STRATEGY_LABEL, "")
    state.mig_strategy = strategy if state.is_mig and strategy in {"mixed", "single"} else ""
    state.is_cpu_only = not state.is_mig and state.allocatable[GPU] <= 0 and not state.has_claimed_gpus
    state.not_ready = tuple(readiness_faults(node))
    return state


def gpu_memory(label: str) -> int | None:
    """Return MiB per GPU, in whole hundreds; a value too large for MiB is bytes."""
    if not _NUMBER.fullmatch(label):
        return None
    value = int(label)
    if value >= _TIB_IN_MIB:
        value //= _MIB
    return value - value % 100


def _is_mig(node: Node, params: SchedulerParams) -> bool:
    label = node.meta.labels.get(params.mig_worker_label_key)
    if label is not None:
        return label in _TRUE
    return any(name.startswith(resources.MIG_PREFIX) and count > 0 for name, count in node.allocatable.items())


def readiness_faults(node: Node) -> Sequence[str]:
    """Return why the node takes no pods, in the scheduler's words; empty when it does."""
    faults = ["node is unschedulable"] if node.unschedulable else []
    for condition in node.conditions:
        if condition.type == "Ready":
            if condition.status != "True":
                faults.append("node has NotReady condition")
        elif condition.type in _PRESSURES and condition.status != "False":
            faults.append(f"node has {condition.type} condition")
    return faults
