"""What is known of the devices behind a task's resource claims.

Written when a session is built (from allocated claims) and by the rule for claims while it places
tasks; carried in ``TaskState.claims`` and restored with the task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gangdash.engine.model.dra import AllocatedDevice


def is_gpu_name(name: str) -> bool:
    """Whether a device class or driver counts as one of GPUs."""
    return "gpu" in name.lower()


@dataclass(frozen=True, slots=True)
class Claims:
    """Allocation per claim of the pod, by the name the pod gives it; ``None`` where none is known."""

    allocations: Mapping[str, tuple[AllocatedDevice, ...] | None] = field(default_factory=dict)
    gpu_devices: tuple[str, ...] = ()
    """``driver/pool/device`` of the GPU devices among them."""

    @classmethod
    def of(cls, allocations: Mapping[str, tuple[AllocatedDevice, ...] | None]) -> Claims:
        devices = tuple(
            f"{device.driver}/{device.pool}/{device.device}"
            for allocation in allocations.values()
            for device in allocation or ()
            if is_gpu_name(device.driver)
        )
        return cls(allocations, devices)
