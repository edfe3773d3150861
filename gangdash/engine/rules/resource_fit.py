"""Why a node has too little for a task: one reason per resource that is short.

Reasons go by what is allocatable less what is used, not by what made the task fail to fit, so a node
may have several or none. Mirrors pkg/scheduler/api/node_info FittingError and common_info/pod_errors.go
(KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gangdash.engine.model.resources import CPU as CPU_NAME
from gangdash.engine.rules import humanize
from gangdash.engine.session import CPU, GPU, MEMORY, GpuRequest, NodeState, RequestKind, TaskState, Vector
from gangdash.engine.statement.vectors import added

_TOGETHER = "taking all considerations into account"
_SHORT_OF = "node(s) didn't have enough resources: {}"


class Shortage(NamedTuple):
    """A reason in the scheduler's short and detailed wording."""

    short: str
    detailed: str


def shortages(task: TaskState, node: NodeState, *, of_several: bool) -> list[Shortage]:
    """Return why the task cannot be bound to the node now; empty when it can (or nothing explains it).

    ``of_several``: the gang has more than one pod, which makes the detailed wording vague.
    """
    if node.fits_vector(task, node.idle):
        return []
    used = list(node.used)
    used[GPU] += node.shared.used_count()
    found = list(_short_resources(task, node, used, of_several=of_several))
    suffix = _overhead_suffix(task, node)
    return [Shortage(short + suffix, detailed + suffix) for short, detailed in found] if suffix else found


def _short_resources(task: TaskState, node: NodeState, used: Vector, *, of_several: bool) -> Iterator[Shortage]:
    capacity, request, names = node.allocatable, task.request, node.layout.names
    free = [a - b for a, b in zip(capacity, used, strict=True)]
    if task.gpu.mig:
        yield from _short_mig(task.gpu.mig, node, free, used, of_several=of_several)
    else:
        yield from _short_gpus(task, node, free, used, of_several=of_several)
    for slot, name, unit in ((CPU, "CPU cores", humanize.CORES), (MEMORY, "memory", humanize.GIGABYTES)):
        if request[slot] > free[slot]:
            figures = (humanize.digits(v[slot] / unit) for v in (request, used, capacity))
            yield Shortage(_SHORT_OF.format(name), _detail(name, *figures, of_several=of_several))
    for slot in range(GPU + 1, len(names)):
        name = names[slot]
        if not name.startswith("nvidia.com/mig-") and 0 < request[slot] > free[slot]:
            figures = (str(int(v[slot])) for v in (request, used, capacity))
            yield Shortage(_SHORT_OF.format(name), _detail(name, *figures, of_several=of_several))


def _short_mig(
    asked: Mapping[str, int], node: NodeState, free: Vector, used: Vector, *, of_several: bool
) -> Iterator[Shortage]:
    for name in sorted(asked):
        slot = node.layout.index.get(name)
        have, taken, capacity = (0 if slot is None else int(v[slot]) for v in (free, used, node.allocatable))
        if have < asked[name]:
            detailed = _detail(name, str(asked[name]), str(taken), str(capacity), of_several=of_several)
            yield Shortage(f"node(s) didn't have enough of mig profile: {name}", detailed)


def _short_gpus(
    task: TaskState, node: NodeState, free: Vector, used: Vector, *, of_several: bool
) -> Iterator[Shortage]:
    gpu = task.gpu
    if task.kind is RequestKind.GPU_MEMORY:
        gpu = GpuRequest(gpu.count, node.portion_need(gpu), gpu.memory)
    if gpu.gpus > free[GPU]:
        figures = (gpus_text(gpu), humanize.three_digits(used[GPU]), humanize.three_digits(node.allocatable[GPU]))
        yield Shortage(_SHORT_OF.format("GPUs"), _detail("GPUs", *figures, of_several=of_several))
    if gpu.memory > node.gpu_memory:
        detailed = (
            f"Node didn't have enough resources: GPU memory, {_TOGETHER}"
            if of_several
            else "Node didn't have enough resources: Each gpu on the node has a gpu memory capacity of "
            f"{node.gpu_memory} Mib. {gpu.memory} Mib of gpu memory has been requested."
        )
        yield Shortage(_SHORT_OF.format("GPU memory"), detailed)


def _detail(name: str, requested: str, used: str, capacity: str, *, of_several: bool) -> str:
    if of_several:
        return f"Node didn't have enough resources: {name}, {_TOGETHER}"
    return f"Node didn't have enough resources: {name}, requested: {requested}, used: {used}, capacity: {capacity}"


def gpus_text(gpu: GpuRequest) -> str:
    if gpu.is_fractional and gpu.count > 1:
        return f"{gpu.count} X {humanize.three_digits(gpu.portion)}"
    if gpu.claimed:
        return f"{humanize.three_digits(gpu.claimed_count)} as DRA gpu claims "
    return humanize.three_digits(gpu.gpus)


def _overhead_suffix(task: TaskState, node: NodeState) -> str:
    """Return the sentence for a task that would fit but for the overhead of its runtime class."""
    if task.overhead is None or not node.fits_vector(task, added(node.idle, task.overhead)):
        return ""
    listed = "".join(f" {name}: {_quantity(name, amount)}" for name, amount in sorted(task.pod.overhead.items()))
    return f". Not enough resources due to pod overhead resources. The overhead resources are {listed}"


def _quantity(name: str, amount: int) -> str:
    """Return an amount the way Kubernetes prints one: millicores, binary units where they divide it."""
    if name == CPU_NAME:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    for unit, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if amount and amount % size == 0:
            return f"{amount // size}{unit}"
    return str(amount)
