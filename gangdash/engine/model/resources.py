"""Resource names and the integer units in which amounts are kept.

The scheduler keeps cpu in millicores; memory, pods, ephemeral storage and MIG instances in whole
units; every other resource (extended, hugepages, attachable volumes) in thousandths, so one
``rdma/ib`` is 1000. Whole GPUs (``nvidia.com/gpu``, ``amd.com/gpu``) are counts. Mirrors
pkg/scheduler/api/resource_info/resource_info.go and resource_requirment.go (KAI d5bc503a).
"""

from __future__ import annotations

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
STORAGE = "storage"
EPHEMERAL_STORAGE = "ephemeral-storage"
GPU_NAMES = ("nvidia.com/gpu", "amd.com/gpu")
MIG_PREFIX = "nvidia.com/mig-"

_WHOLE_UNITS = frozenset({MEMORY, PODS, STORAGE, EPHEMERAL_STORAGE, *GPU_NAMES})


def is_counted_whole(name: str) -> bool:
    """Whether an amount of this resource is kept in whole units (rounded up), not in thousandths."""
    return name in _WHOLE_UNITS or name.startswith(MIG_PREFIX)
