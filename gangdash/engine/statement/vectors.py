"""Resource vectors: one slot per resource name, the first four fixed, compared in every slot.

A vector is a plain list of numbers that nobody changes in place: an operation makes a new one, so an
undo only has to put the old list back. Mirrors pkg/scheduler/api/resource_info/resource_vector.go
(KAI d5bc503a). MIG instances have slots of their own and count as GPUs by their number of slices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gangdash.engine.model import resources

Vector = list[float]
Amounts = tuple[float, float, float]
"""cpu (millicores), memory (bytes), GPUs: what queues count."""

CPU, MEMORY, GPU, PODS = 0, 1, 2, 3
NO_AMOUNTS: Amounts = (0, 0, 0)

_MIG_PROFILE = re.compile(r"^nvidia\.com/mig-(\d+)g\.(\d+)gb$")


def mig_slices(name: str) -> int:
    """Return how many GPU slices one instance of a MIG resource counts as; 0 for profiles it cannot read."""
    match = _MIG_PROFILE.match(name)
    return int(match.group(1)) if match else 0


def mig_gigabytes(name: str) -> int:
    match = _MIG_PROFILE.match(name)
    return int(match.group(2)) if match else 0


def normalised(name: str) -> str:
    """Every resource whose name ends in ``gpu`` shares one slot, whatever its vendor."""
    return "gpu" if name.endswith("gpu") else name


class Layout:
    """Which slot belongs to which resource name in one session."""

    __slots__ = ("index", "mig", "names")

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = ["cpu", "memory", "gpu", "pods"]
        self.index: dict[str, int] = {name: i for i, name in enumerate(self.names)}
        for name in names:
            self._add(normalised(name))
        self.mig: tuple[tuple[int, int], ...] = tuple(
            (i, mig_slices(name)) for i, name in enumerate(self.names) if mig_slices(name)
        )

    def _add(self, name: str) -> None:
        if name not in self.index:
            self.index[name] = len(self.names)
            self.names.append(name)

    def zeros(self) -> Vector:
        return [0] * len(self.names)

    def from_amounts(self, amounts: Mapping[str, float]) -> Vector:
        """Return the vector of named amounts; a name without a slot is dropped."""
        vector = self.zeros()
        for name, amount in amounts.items():
            slot = self.index.get(normalised(name))
            if slot is not None and amount:
                vector[slot] = vector[slot] + amount if name in resources.GPU_NAMES else amount
        return vector

    def total_gpus(self, vector: Vector) -> float:
        """Return whole GPUs plus MIG slices, the GPU amount that queues are charged."""
        total = vector[GPU]
        for slot, slices in self.mig:
            total += slices * vector[slot]
        return total

    def amounts(self, vector: Vector) -> Amounts:
        return (vector[CPU], vector[MEMORY], self.total_gpus(vector) if self.mig else vector[GPU])


def added(left: Vector, right: Vector) -> Vector:
    return [a + b for a, b in zip(left, right, strict=True)]


def subtracted(left: Vector, right: Vector) -> Vector:
    return [a - b for a, b in zip(left, right, strict=True)]


def fits(request: Vector, supply: Vector) -> bool:
    """Whether every slot of the request is at most the supply's; a negative supply refuses even a zero."""
    for need, have in zip(request, supply, strict=True):  # noqa: SIM110 (a loop is twice as fast here)
        if need > have:
            return False
    return True
