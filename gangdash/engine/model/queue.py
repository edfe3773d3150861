"""Queues and priority classes: who may use how much, and in which order.

An absent number is ``None`` here and counts as 0 in the scheduler; -1 is unlimited. cpu is in
millicores, memory in megabytes of 10^6 bytes and gpu in GPUs, as the API has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gangdash.engine.model.meta import Condition, Meta


@dataclass(frozen=True, slots=True)
class QueueResource:
    quota: float | None = None
    limit: float | None = None
    over_quota_weight: float | None = None


@dataclass(frozen=True, slots=True)
class Queue:
    """``cpu``, ``memory`` and ``gpu`` are ``None`` when the spec does not name the resource at all."""

    meta: Meta
    display_name: str = ""
    parent: str = ""
    has_resources: bool = True
    """False when spec.resources itself is absent."""
    cpu: QueueResource | None = None
    memory: QueueResource | None = None
    gpu: QueueResource | None = None
    priority: int | None = None
    preempt_min_runtime: float | None = None
    reclaim_min_runtime: float | None = None
    conditions: tuple[Condition, ...] = ()
    reported: Mapping[str, int] | None = None
    """status.allocated in scheduler units, ``None`` when the status does not say."""

    @property
    def name(self) -> str:
        return self.meta.name

    @property
    def shown_name(self) -> str:
        """The name that the scheduler prints in its messages."""
        return self.display_name or self.meta.name


@dataclass(frozen=True, slots=True)
class PriorityClass:
    meta: Meta
    value: int = 0
    global_default: bool = False
