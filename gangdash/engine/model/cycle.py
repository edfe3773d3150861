"""What one scheduling cycle does: the result of a replay, before any word is put to it.

Amounts in ``QueueUse`` are (cpu millicores, memory bytes, GPUs). A fair share of -1 is unlimited;
``None`` means that the session ran without the proportion plugin.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Amounts = tuple[float, float, float]


class PodOutcome(StrEnum):
    BOUND = "bound"
    PIPELINED = "pipelined"
    PENDING = "pending"
    GATED = "gated"
    EVICTED = "evicted"
    MOVED = "moved"
    KEPT = "kept"


class GangOutcome(StrEnum):
    BOUND = "bound"
    PIPELINED = "pipelined"
    NOT_READY = "not_ready"
    UNSCHEDULABLE = "unschedulable"
    EVICTED = "evicted"
    MOVED = "moved"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class PodResult:
    """``node`` is the node promised, kept or lost; ``None`` for pending and gated pods."""

    name: str
    outcome: PodOutcome
    node: str | None = None
    action: str | None = None
    namespace: str = ""
    uid: str = ""
    message: str = ""
    """What the scheduler would write on a pod that waits; empty where it writes nothing."""


@dataclass(frozen=True, slots=True)
class FitError:
    """A job-level error with the scheduler's reason and wording."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class GangResult:
    """``one_of_several`` is set where the scheduler picks among equals in no defined order."""

    namespace: str
    name: str
    uid: str
    shard: str
    queue: str
    ready: bool
    outcome: GangOutcome
    action: str | None
    pods: tuple[PodResult, ...]
    errors: tuple[FitError, ...] = ()
    one_of_several: bool = False
    budget_hit: str = ""
    """Name of the search budget that ran out on this gang, if one did."""
    not_modelled: tuple[str, ...] = ()
    """Parts of the scheduler that matter to this gang and are not replayed."""
    message: str = ""
    """What the scheduler would write on the PodGroup; empty where it writes nothing."""
    fit: int | None = None
    """Of a gang left waiting: the most of its needed pods that any one attempt found a place for; 0 where a
    check refused it before, ``None`` where it was never tried."""


@dataclass(frozen=True, slots=True)
class QueueUse:
    name: str
    shard: str
    fair_share: Amounts | None
    allocated_before: Amounts
    allocated_after: Amounts


@dataclass(frozen=True, slots=True)
class CycleResult:
    """One shard's cycle; gangs and queues in a defined order (namespace, name)."""

    shard: str
    gangs: tuple[GangResult, ...]
    queues: tuple[QueueUse, ...]
