"""The shared GPUs of one node: memory used, being released and allocated per group, in MiB.

A group is one physical GPU that several pods share; its name comes from the pods' labels or is made
up in the cycle. Mirrors pkg/scheduler/api/node_info/gpu_sharing_node_info.go (KAI d5bc503a). Like
vectors, an instance is never changed once others can see it: a change works on a ``copy``.
"""

from __future__ import annotations

import math


class SharedGpus:
    """Per group: ``used`` (all tasks), ``releasing`` (minus pipelined), ``allocated`` (all but pipelined)."""

    __slots__ = ("allocated", "marked", "releasing", "used")

    def __init__(self) -> None:
        self.used: dict[str, int] = {}
        self.releasing: dict[str, int] = {}
        self.allocated: dict[str, int] = {}
        self.marked: set[str] = set()
        """Groups whose whole GPU is counted as releasing on the node."""

    def copy(self) -> SharedGpus:
        other = SharedGpus()
        other.used = dict(self.used)
        other.releasing = dict(self.releasing)
        other.allocated = dict(self.allocated)
        other.marked = set(self.marked)
        return other

    def used_count(self) -> int:
        return sum(1 for memory in self.used.values() if memory > 0)

    def is_releasing(self, group: str) -> bool:
        """Whether everything that is used on the group's GPU is being released."""
        used = self.used.get(group, 0)
        return used != 0 and self.releasing.get(group) == used

    def takes(self, group: str, need: int, device_memory: int) -> bool:
        """Whether ``need`` MiB more fit on a group in use, counting what is being released."""
        allocated = self.allocated.get(group, 0)
        releasing = self.releasing.get(group, 0)
        return (
            self.used.get(group, 0) != 0
            and device_memory - allocated + releasing - need >= 0
            and allocated != releasing
        )

    def takes_now(self, group: str, need: int, device_memory: int) -> bool:
        """Whether ``need`` MiB fit without waiting; never on a group that so far is only promised."""
        return group in self.allocated and device_memory - self.allocated[group] - need >= 0

    def free_portions(self, device_memory: int) -> float:
        """Return the free parts of GPUs in use, releasing parts included, in GPUs."""
        if device_memory <= 0:
            return 0
        free = 0.0
        for group, used in self.used.items():
            left = device_memory - self.allocated.get(group, 0) + self.releasing.get(group, 0)
            if used > 0 and left > 0:
                free += left / device_memory
        return free


def portion_of(memory: int, device_memory: int) -> float:
    """Return ``memory`` as part of a device, rounded up to hundredths."""
    return math.ceil(memory / device_memory * 100) / 100
