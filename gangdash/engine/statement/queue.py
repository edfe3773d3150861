"""The working state of a queue: its place in the tree and what it may use, asks for and holds.

Triples are (cpu millicores, memory bytes, GPUs); -1 is unlimited in ``deserved``, ``limit`` and
``fair_share``. Mirrors pkg/scheduler/plugins/proportion/resource_share (KAI d5bc503a).
"""

from __future__ import annotations

from typing import NamedTuple

from gangdash.engine.model.queue import Queue
from gangdash.engine.statement.vectors import NO_AMOUNTS, Amounts

UNLIMITED = -1


class QueueMemo(NamedTuple):
    allocated: Amounts
    allocated_non_preemptible: Amounts


class QueueState:
    """``children`` are names; a queue without any is a leaf. ``parent`` is empty at the top."""

    __slots__ = (
        "allocated",
        "allocated_before",
        "allocated_non_preemptible",
        "ancestors",
        "children",
        "created",
        "deserved",
        "fair_share",
        "limit",
        "name",
        "parent",
        "priority",
        "queue",
        "request",
        "shown_name",
        "uid",
        "usage",
        "weight",
    )

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.name = queue.name
        self.uid = queue.meta.uid or queue.name
        self.shown_name = queue.shown_name
        self.parent = queue.parent
        self.children: list[str] = []
        self.ancestors: tuple[QueueState, ...] = ()
        """The queue itself and everything above it, leaf first."""
        self.created = queue.meta.created or 0.0
        self.priority = 100 if queue.priority is None else queue.priority
        self.deserved: Amounts = NO_AMOUNTS
        self.limit: Amounts = NO_AMOUNTS
        self.weight: Amounts = NO_AMOUNTS
        self.usage: Amounts = NO_AMOUNTS
        """Historic use as a part of the cluster, 0 without a usage database."""
        self.request: Amounts = NO_AMOUNTS
        """What is held plus what pending pods ask, as the cycle begins."""
        self.fair_share: Amounts = NO_AMOUNTS
        self.allocated: Amounts = NO_AMOUNTS
        self.allocated_non_preemptible: Amounts = NO_AMOUNTS
        self.allocated_before: Amounts = NO_AMOUNTS

    @property
    def is_leaf(self) -> bool:
        return not self.children

    def save(self) -> QueueMemo:
        return QueueMemo(self.allocated, self.allocated_non_preemptible)

    def restore(self, memo: QueueMemo) -> None:
        self.allocated, self.allocated_non_preemptible = memo

    def charge(self, amounts: Amounts, sign: int, *, preemptible: bool) -> None:
        """Add (+1) or take away (-1) what a task holds."""
        cpu, memory, gpu = amounts
        held = self.allocated
        self.allocated = (held[0] + sign * cpu, held[1] + sign * memory, held[2] + sign * gpu)
        if not preemptible:
            held = self.allocated_non_preemptible
            self.allocated_non_preemptible = (held[0] + sign * cpu, held[1] + sign * memory, held[2] + sign * gpu)

    def __repr__(self) -> str:
        return f"<queue {self.name} allocated {self.allocated}>"
