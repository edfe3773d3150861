"""What an evicting action proposes: who asks, for how much, and which pods would go.

Shared by the rules that accept or refuse it and by the actions that build it. ``tasks`` of a victim are in
the order in which the search added them; whether a pod was placed again shows in its status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gangdash.engine.rules.steps import next_tasks, step_amounts
from gangdash.engine.session import CPU, GPU, MEMORY, Amounts, JobState, RequestKind, Session, TaskState, Vector

_GPU_AMOUNT = 2


@dataclass(frozen=True, slots=True)
class Demand:
    """Resources as queues count them, and which of the three are involved at all."""

    amounts: Amounts
    involved: frozenset[int]
    """Indexes into ``amounts``; MIG instances count as GPUs in the amounts and not here, as in the scheduler."""


class LossLimit(Protocol):
    """The most GPUs that some of the victims may lose in sum, whatever becomes of the others."""

    def __call__(self, some: Sequence[TaskState], victims: Sequence[TaskState]) -> float: ...


@dataclass(frozen=True, slots=True)
class Victim:
    job: JobState
    tasks: Sequence[TaskState]


@dataclass(frozen=True, slots=True)
class Scenario:
    """``job`` is the gang that asks; ``demand`` is what the part of it under trial needs."""

    job: JobState
    demand: Demand
    victims: Sequence[Victim]


def involved_in(vectors: Iterable[Vector]) -> frozenset[int]:
    """Return which of cpu (0), memory (1) and GPU (2) some vector asks for."""
    found: set[int] = set()
    for vector in vectors:
        found.update(index for index, slot in enumerate((CPU, MEMORY, GPU)) if vector[slot] > 0)
    return frozenset(found)


def demand_of(session: Session, job: JobState) -> Demand:
    """Return what the gang's next step asks; gpu-memory requests in GPUs of the smallest size in the shard."""
    asked: set[int] = set()
    for task in next_tasks(session, job, real=False):
        asked |= involved_in([task.request])
        if task.kind is RequestKind.GPU_MEMORY and session.min_gpu_memory:
            asked.add(_GPU_AMOUNT)
    return Demand(step_amounts(session, job, real=False), frozenset(asked))
