"""One shard's working state for one cycle.

Time is the snapshot's ``as_of``; nothing here reads a clock. Built by ``session.build``; rules add
themselves to ``hooks`` and ``listeners``. Mirrors pkg/scheduler/framework/session.go (KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.config import SchedulerConfig, SchedulerParams, Shard
from gangdash.engine.session.hooks import Hooks
from gangdash.engine.statement import (
    Amounts,
    Committed,
    JobState,
    Layout,
    NodeState,
    Statement,
    SubGroup,
    TaskState,
    World,
)
from gangdash.engine.statement.vectors import NO_AMOUNTS


class Session(World):
    """What the actions of a cycle share. ``jobs`` and ``queues`` are keyed by name, nodes sorted by name."""

    def __init__(self, snapshot: ClusterSnapshot, shard: Shard) -> None:
        super().__init__()
        self.snapshot = snapshot
        self.shard = shard
        self.layout = Layout()
        self.tasks: dict[str, TaskState] = {}
        """Every pod that the scheduler sees, by uid, also pods of no gang."""
        self.all_nodes: list[NodeState] = []
        """The nodes in order of their names. Where a list of nodes means all, it is this very one."""
        self.shortcuts = True
        """Whether equal nodes share answers. Off, every node is asked: slower, and the same in the end."""
        self.hooks = Hooks()
        self.job_order: Callable[[JobState], tuple[Any, ...]] = lambda job: (job.created, job.key)
        """Sort key of gangs within a queue; it moves as tasks are placed."""
        self.sub_group_order: Callable[[SubGroup], tuple[Any, ...]] = lambda member: (member.name,)
        """Sort key of the members of one subgroup; it moves too."""
        self.min_gpu_memory: int | None = None
        """Smallest and largest MiB per GPU among nodes that say it; ``None`` where none does."""
        self.max_gpu_memory: int | None = None
        self.backed_slots: frozenset[int] = frozenset()
        """Slots of resources, GPUs aside, that a device class stands behind."""
        self.total: Amounts = NO_AMOUNTS
        """What the top-level queues share."""
        self.memo: dict[type, object] = {}
        """What rules keep for the time of the session, by their own type."""
        self.done: list[tuple[str, Committed]] = []
        """Every committed operation with the action that did it, in order."""
        self.one_of_several: set[str] = set()
        """Keys of gangs for which the scheduler would have picked among equals in no defined order."""
        self.fits: dict[str, int] = {}
        """The most pods that any one attempt found a place for, by key of the gang."""
        self.budget_hits: dict[str, str] = {}
        """Search budget that ran out, by key of the gang."""
        self.not_modelled: dict[str, list[str]] = {}
        """Parts of the scheduler that matter to a gang and are not replayed, by key of the gang."""

    @property
    def as_of(self) -> float:
        return self.snapshot.as_of

    @property
    def config(self) -> SchedulerConfig:
        return self.shard.config

    @property
    def params(self) -> SchedulerParams:
        return self.shard.config.params

    @property
    def pool_name(self) -> str:
        """The node pool as messages name it."""
        return self.params.node_pool_label_value or "default"

    def statement(self) -> Statement:
        return Statement(self)

    def commit(self, action: str, statement: Statement) -> None:
        """Make a statement final and remember which action did it."""
        for operation in statement.commit():
            self.done.append((action, operation))
            if operation.task.job is not None and operation.kind.value == "evict":
                operation.task.job.last_eviction = self.as_of

    def note_fit(self, job: JobState, placed: int) -> None:
        """Remember how far an attempt came that failed."""
        self.fits[job.key] = max(self.fits.get(job.key, 0), placed)

    def is_queue_usable(self, job: JobState) -> bool:
        """Whether the gang's queue exists with its parent and is a leaf: no action tries the gang otherwise."""
        queue = self.queues.get(job.queue)
        if queue is None or not queue.is_leaf:
            return False
        return not queue.parent or queue.parent in self.queues
