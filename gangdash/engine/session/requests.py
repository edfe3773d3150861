"""What a pod asks for: the sum the scheduler makes of its containers, and its GPU request.

Mirrors pkg/scheduler/api/pod_info/pod_info.go (KAI d5bc503a): only requests count, init containers by
their peak, sidecars as running beside everything after them, overhead without GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gangdash.engine.model import resources
from gangdash.engine.model.pod import Container, Pod
from gangdash.engine.statement.request import GpuRequest, RequestKind, gpus_of, whole

GPU_FRACTION = "gpu-fraction"
GPU_MEMORY = "gpu-memory"
GPU_DEVICES = "gpu-fraction-num-devices"

_INTEGER = re.compile(r"[+-]?\d+")
_KNOWN_NAMES = frozenset({
    resources.CPU, resources.MEMORY, resources.PODS, resources.STORAGE, resources.EPHEMERAL_STORAGE,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class PodRequest:
    """``amounts`` are everything but GPUs and MIG instances; ``names`` every resource any container names."""

    amounts: Mapping[str, int]
    gpu: GpuRequest
    kind: RequestKind
    is_legacy_mig: bool
    names: frozenset[str]


@dataclass(slots=True)
class _Sum:
    amounts: dict[str, int]
    gpu_count: int = 0
    gpu_portion: int = 0

    def add(self, other: _Sum) -> None:
        for name, amount in other.amounts.items():
            self.amounts[name] = self.amounts.get(name, 0) + amount
        self.gpu_count += other.gpu_count
        self.gpu_portion = max(self.gpu_portion, other.gpu_portion)

    def raise_to(self, other: _Sum) -> None:
        for name, amount in other.amounts.items():
            self.amounts[name] = max(self.amounts.get(name, 0), amount)
        if gpus_of(other.gpu_portion, other.gpu_count) > gpus_of(self.gpu_portion, self.gpu_count):
            self.gpu_count, self.gpu_portion = other.gpu_count, other.gpu_portion


def _is_counted(name: str) -> bool:
    """Whether the scheduler knows the kind of resource; it drops any other name."""
    return name in _KNOWN_NAMES or "/" in name or name.startswith("hugepages-")


def _container_sum(requests: Mapping[str, int]) -> _Sum:
    total = _Sum({})
    for name, amount in requests.items():
        if name in resources.GPU_NAMES:
            total.gpu_count += max(amount, 1)
            total.gpu_portion = max(total.gpu_portion, min(amount, 1))
        elif _is_counted(name):
            total.amounts[name] = amount
    return total


def _pod_sum(pod: Pod) -> _Sum:
    main: dict[str, int] = {}
    for container in pod.containers:
        if container.role == "main":
            for name, amount in container.requests.items():
                main[name] = main.get(name, 0) + amount
    total = _container_sum(main)
    sidecars, peak = _init_sums(pod.containers)
    total.add(sidecars)
    total.raise_to(peak)
    for name, amount in pod.overhead.items():
        if name not in resources.GPU_NAMES and _is_counted(name):
            total.amounts[name] = total.amounts.get(name, 0) + amount
    return total


def _init_sums(containers: tuple[Container, ...]) -> tuple[_Sum, _Sum]:
    """Return what sidecars hold for good, and the most that any init container holds with those before it."""
    sidecars, peak = _Sum({}), _Sum({})
    for container in containers:
        if container.role == "main":
            continue
        own = _container_sum(container.requests)
        if container.role == "sidecar":
            sidecars.add(own)
            continue
        own.add(sidecars)
        peak.raise_to(own)
    return sidecars, peak


def pod_request(pod: Pod, claimed: Mapping[str, int]) -> PodRequest:
    """Return what the pod asks; ``claimed`` are GPU devices of its resource claims by device class."""
    total = _pod_sum(pod)
    mig = {name: total.amounts.pop(name) for name in list(total.amounts) if name.startswith(resources.MIG_PREFIX)}
    total.amounts[resources.PODS] = 1
    gpu = GpuRequest(total.gpu_count, total.gpu_portion, mig=mig)
    gpu, kind = _shared_request(pod.meta.annotations, gpu)
    if claimed:
        gpu = GpuRequest(gpu.count, gpu.portion, gpu.memory, claimed, gpu.mig)
    legacy = _legacy_mig(pod.meta.annotations)
    if legacy is not None:
        gpu = GpuRequest(mig=legacy)
    if gpu.mig:
        kind = RequestKind.MIG
    names = frozenset(name for container in pod.containers for name in container.requests)
    return PodRequest(total.amounts, gpu, kind, legacy is not None, names)


class RequestMemo:
    """Requests of the pods seen last, by identity: snapshots that differ in a few objects share the others.

    Holds on to the pods of one session build at most.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Pod, Mapping[str, int], PodRequest]] = {}

    def of(self, asked: Iterable[tuple[Pod, Mapping[str, int]]]) -> dict[int, PodRequest]:
        """Return requests by identity of the pod, given each pod's claimed GPUs."""
        before, now = self._known, {}
        for pod, claimed in asked:
            known = before.get(id(pod))
            if known is None or known[0] is not pod or known[1] != claimed:
                known = (pod, claimed, pod_request(pod, claimed))
            now[id(pod)] = known
        self._known = now
        return {key: known[2] for key, known in now.items()}


def _shared_request(annotations: Mapping[str, str], gpu: GpuRequest) -> tuple[GpuRequest, RequestKind]:
    """Return the request that the sharing annotations make; a fraction wins over memory."""
    kind = RequestKind.REGULAR
    memory = _integer(annotations.get(GPU_MEMORY))
    if memory is not None and memory > 0:
        gpu, kind = whole(0, memory=memory), RequestKind.GPU_MEMORY
    portion = _fraction(annotations.get(GPU_FRACTION))
    if portion is not None and 0 < portion <= 1:
        gpu, kind = whole(portion), RequestKind.FRACTION
    if kind is not RequestKind.REGULAR:
        devices = _integer(annotations.get(GPU_DEVICES))
        if devices is not None:
            gpu = GpuRequest(devices, portion or 0, memory or 0)
    return gpu, kind


def _legacy_mig(annotations: Mapping[str, str]) -> dict[str, int] | None:
    found = None
    for name in sorted(annotations):
        if name.startswith(resources.MIG_PREFIX):
            count = _integer(annotations[name])
            if count is not None:
                found = {name: count}
    return found


def _integer(text: str | None) -> int | None:
    return int(text) if text and _INTEGER.fullmatch(text) else None


def _fraction(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def asked_gpus(pod: Pod) -> float:
    """Return the GPUs a pod asks for, fractions included; a memory request counts as its device."""
    gpu = pod_request(pod, {}).gpu
    return gpu.gpus or float(gpu.count if gpu.memory else sum(gpu.mig.values()))
