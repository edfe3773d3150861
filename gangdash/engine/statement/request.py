"""What a task asks of GPUs: whole devices, a portion of some, memory, MIG instances or claimed devices.

Mirrors pkg/scheduler/api/resource_info/gpu_resource_requirment.go (KAI d5bc503a). Portions are kept
as the scheduler keeps them: floats, summed in hundredths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from gangdash.engine.statement.vectors import mig_slices


class RequestKind(IntEnum):
    """How the scheduler treats the GPU part of a request; a CPU-only task is ``REGULAR``."""

    REGULAR = 0
    FRACTION = 1
    GPU_MEMORY = 2
    MIG = 3


def gpus_of(portion: float, count: int) -> float:
    """Return ``portion x count`` in hundredths of a GPU, rounded half away from zero as Go does."""
    return math.floor(portion * 100 + 0.5) * count / 100


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """``count`` devices of ``portion`` each; ``memory`` in MiB per device; ``claimed`` devices by class."""

    count: int = 0
    portion: float = 0
    memory: int = 0
    claimed: Mapping[str, int] = field(default_factory=dict)
    mig: Mapping[str, int] = field(default_factory=dict)

    @property
    def gpus(self) -> float:
        return gpus_of(self.portion, self.count)

    @property
    def claimed_count(self) -> int:
        return sum(self.claimed.values())

    @property
    def is_fractional(self) -> bool:
        return self.memory > 0 or (self.count > 0 and self.portion < 1)

    @property
    def quota_gpus(self) -> float:
        """Return the GPUs that a queue is asked for: MIG slices, claimed devices, whole and part GPUs."""
        slices = sum(mig_slices(name) * count for name, count in self.mig.items())
        return slices + self.claimed_count + self.gpus

    def memory_as_gpus(self, device_memory: int | None) -> float:
        """Return a memory request in GPUs of the given size; 0 when there is no request or no size."""
        if self.memory <= 0 or not device_memory or device_memory <= 0:
            return 0
        return self.count * (self.memory / device_memory)


def whole(gpus: float, *, memory: int = 0) -> GpuRequest:
    """Return the request of a number of GPUs: from 1 on whole devices, below it one shared device."""
    if gpus >= 1:
        return GpuRequest(count=int(gpus), portion=1, memory=memory)
    if gpus > 0 or memory > 0:
        return GpuRequest(count=1, portion=gpus, memory=memory)
    return GpuRequest()
