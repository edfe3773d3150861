"""Changes to a cycle's state that can be taken back: allocate, pipeline, evict, and their undo.

Every operation stores the exact earlier fields of what it touches, so a rollback restores the state
bit for bit and costs as much as the operations did. Nothing here decides anything. Mirrors
pkg/scheduler/framework/statement.go (KAI d5bc503a).
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

from gangdash.engine.statement.job import JobState
from gangdash.engine.statement.node import NodeMemo, NodeState
from gangdash.engine.statement.queue import QueueMemo, QueueState
from gangdash.engine.statement.status import Status
from gangdash.engine.statement.task import TaskMemo, TaskState


class Listener(Protocol):
    """A rule that keeps state of its own about placed tasks.

    ``node_added``/``node_removed`` come whenever a node's set of tasks changes, ``allocated``/``released``
    whenever a task begins or ceases to hold what it was given. Undo calls the opposite method, in
    reverse order: for an undone ``allocated`` before the task's fields are put back, for an undone
    ``released`` after.
    """

    def node_added(self, task: TaskState, node: NodeState) -> None: ...

    def node_removed(self, task: TaskState, node: NodeState) -> None: ...

    def allocated(self, task: TaskState, node: NodeState) -> None: ...

    def released(self, task: TaskState, node: NodeState) -> None: ...


class World:
    """The state that statements change."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeState] = {}
        """The shard's nodes, in order of their names."""
        self.jobs: dict[str, JobState] = {}
        self.queues: dict[str, QueueState] = {}
        self.listeners: list[Listener] = []
        self.watchers: list[set[NodeState]] = []
        """See ``NodeState.watchers``; every node of the world shares this list."""
        self.journal: list[_Entry] | None = None
        """While it is a list, every operation that stands is noted here, and stays after its statement has ended."""
        self.charges_queues = True
        """False without the proportion plugin: queues are not accounted for then."""


class Kind(Enum):
    ALLOCATE = "allocate"
    PIPELINE = "pipeline"
    EVICT = "evict"
    UNDO = "undo"


class _Entry(NamedTuple):
    kind: Kind
    task: TaskState
    node: NodeState
    task_memo: TaskMemo
    node_memo: NodeMemo
    queue_memos: tuple[QueueMemo, ...]
    removed: bool
    """The node lost its view of the task in this operation (and may have got another)."""
    added: bool
    held: int
    """+1: the task began to hold resources, -1: it ceased to."""
    undoes: int
    """Index of the operation that an ``UNDO`` cancels, else -1."""
    message: str


class Committed(NamedTuple):
    """One operation that a committed statement stands for; ``node`` is where it happened."""

    kind: Kind
    task: TaskState
    node: str
    message: str


Checkpoint = int


class Statement:
    """A log of operations on a world. Either ``commit`` or ``discard`` ends it; it can then be used again."""

    __slots__ = ("_cancelled", "_entries", "world")

    def __init__(self, world: World) -> None:
        self.world = world
        self._entries: list[_Entry] = []
        self._cancelled: set[int] = set()

    # Operations

    def allocate(self, task: TaskState, node: NodeState, *, groups: tuple[str, ...] = ()) -> None:
        """Give a pending task idle resources of a node; ``groups`` are the shared GPUs it gets."""
        self._place(Kind.ALLOCATE, task, node, Status.ALLOCATED, groups)

    def pipeline(
        self, task: TaskState, node: NodeState, *, update_if_on_node: bool, groups: tuple[str, ...] = ()
    ) -> None:
        """Promise a task a node once others have left it.

        A task that this statement evicted from the same node stays there: its eviction is taken back,
        unless it gets other shared GPUs or ``update_if_on_node`` asks for a new promise.
        """
        there = node.placed.get(task.key)
        if there is None:
            self._place(Kind.PIPELINE, task, node, Status.PIPELINED, groups)
            return
        changes_gpu = bool(groups) and task.is_shared and groups != there.groups
        if not update_if_on_node and not changes_gpu:
            self.unevict(task)
            return
        self._place(Kind.PIPELINE, task, node, Status.PIPELINED, groups, keeps_charge=changes_gpu)

    def evict(self, task: TaskState, message: str = "") -> None:
        """Start to release what a task holds. It stays on its node as releasing."""
        node = self.world.nodes[task.node_name]
        memos = self._save(task, node)
        job = _job(task)
        job.set_status(task, Status.RELEASING)
        node.update(task)
        self._charge(job, task, -1)
        for listener in self.world.listeners:
            listener.node_removed(task, node)
            listener.node_added(task, node)
            listener.released(task, node)
        task.is_virtual = True
        self._note(_Entry(Kind.EVICT, task, node, *memos, True, True, -1, -1, message))

    def unevict(self, task: TaskState) -> None:
        """Take back this statement's first eviction of the task that still stands."""
        for index, entry in enumerate(self._entries):
            if entry.kind is Kind.EVICT and entry.task is task and index not in self._cancelled:
                self._undo_evict(index, entry)
                return
        raise LookupError(f"{task.key} was not evicted by this statement")

    def _undo_evict(self, index: int, evicted: _Entry) -> None:
        task, node = evicted.task, evicted.node
        memos = self._save(task, node)
        job, before = _job(task), evicted.task_memo
        job.set_status(task, before.status)
        task.gpu_groups, task.is_virtual, task.claims = before.gpu_groups, before.is_virtual, before.claims
        was_there = task.key in node.placed
        if was_there:
            node.update(task)
        else:
            node.add(task)
        self._charge(job, task, 1)
        for listener in self.world.listeners:
            if was_there:
                listener.node_removed(task, node)
            listener.node_added(task, node)
            listener.allocated(task, node)
        self._cancelled.add(index)
        self._note(_Entry(Kind.UNDO, task, node, *memos, was_there, True, 1, index, ""))

    def _place(
        self,
        kind: Kind,
        task: TaskState,
        node: NodeState,
        status: Status,
        groups: tuple[str, ...],
        *,
        keeps_charge: bool = False,
    ) -> None:
        memos = self._save(task, node)
        job = _job(task)
        job.set_status(task, status)
        task.node_name = node.name
        if groups:
            task.gpu_groups = groups
        was_there = task.key in node.placed
        if was_there and keeps_charge:
            node.forget(task.key)
        elif was_there:
            node.remove(task.key)
        node.add(task)
        self._charge(job, task, 1)
        for listener in self.world.listeners:
            if was_there and not keeps_charge:
                listener.node_removed(task, node)
            listener.node_added(task, node)
            listener.allocated(task, node)
        task.is_virtual = True
        removed = was_there and not keeps_charge
        self._note(_Entry(kind, task, node, *memos, removed, True, 1, -1, ""))

    def pipeline_allocated(self, job: JobState) -> None:
        """Turn every allocation of the gang in this statement into a promise on the same node."""
        for index, entry in enumerate(list(self._entries)):
            if entry.kind is Kind.ALLOCATE and entry.task.job is job and index not in self._cancelled:
                self._unallocate(index, entry)
                self._place(Kind.PIPELINE, entry.task, entry.node, Status.PIPELINED, entry.task.gpu_groups)

    def _unallocate(self, index: int, allocated: _Entry) -> None:
        task, node = allocated.task, allocated.node
        memos = self._save(task, node)
        job = _job(task)
        job.set_status(task, Status.PENDING)
        node.remove(task.key)
        self._charge(job, task, -1)
        for listener in self.world.listeners:
            listener.node_removed(task, node)
            listener.released(task, node)
        self._cancelled.add(index)
        self._note(_Entry(Kind.UNDO, task, node, *memos, True, False, -1, index, ""))

    # Ends

    def checkpoint(self) -> Checkpoint:
        return len(self._entries)

    def rollback(self, checkpoint: Checkpoint) -> None:
        """Take back everything since the checkpoint; the state is exactly what it was then."""
        journal = self.world.journal
        while len(self._entries) > checkpoint:
            entry = self._entries.pop()
            if journal is not None and journal.pop() is not entry:
                raise LookupError(f"an operation on {entry.task.key} is taken back out of turn")
            self._revert(entry)

    def rewind(self, mark: int = 0) -> None:
        """Take back what the world's journal holds beyond a mark, operations of ended statements too."""
        journal = self.world.journal
        while journal is not None and len(journal) > mark:
            self._revert(journal.pop())

    def discard(self) -> None:
        self.rollback(0)

    def commit(self) -> list[Committed]:
        """Make the operations final and return those that stand, in order."""
        standing = [
            Committed(entry.kind, entry.task, entry.node.name, entry.message)
            for index, entry in enumerate(self._entries)
            if entry.kind is not Kind.UNDO and index not in self._cancelled
        ]
        self._entries.clear()
        self._cancelled.clear()
        for operation in standing:
            if operation.kind is Kind.EVICT:
                operation.task.is_virtual = False
            elif operation.kind is Kind.ALLOCATE:
                _job(operation.task).set_status(operation.task, Status.BINDING)
        return standing

    def __len__(self) -> int:
        return len(self._entries)

    def evicted(self) -> list[TaskState]:
        """Return the tasks whose eviction by this statement stands."""
        return [
            entry.task
            for index, entry in enumerate(self._entries)
            if entry.kind is Kind.EVICT and index not in self._cancelled
        ]

    # Bookkeeping

    def _note(self, entry: _Entry) -> None:
        self._entries.append(entry)
        if self.world.journal is not None:
            self.world.journal.append(entry)

    def _save(self, task: TaskState, node: NodeState) -> tuple[TaskMemo, NodeMemo, tuple[QueueMemo, ...]]:
        queue = self.world.queues.get(_job(task).queue)
        queues = tuple(q.save() for q in queue.ancestors) if queue is not None else ()
        return task.save(), node.save(task.key), queues

    def _charge(self, job: JobState, task: TaskState, sign: int) -> None:
        queue = self.world.queues.get(job.queue)
        if queue is not None and self.world.charges_queues:
            for member in queue.ancestors:
                member.charge(task.accepted_amounts, sign, preemptible=job.is_preemptible)

    def _revert(self, entry: _Entry) -> None:
        task, node, listeners = entry.task, entry.node, self.world.listeners
        job = _job(task)
        if entry.held > 0:
            for listener in listeners:
                listener.released(task, node)
        for listener in listeners:
            if entry.added:
                listener.node_removed(task, node)
            if entry.removed:
                listener.node_added(task, node)
        job.set_status(task, entry.task_memo.status)
        task.restore(entry.task_memo)
        node.restore(entry.node_memo)
        queue = self.world.queues.get(job.queue)
        if queue is not None:
            for member, memo in zip(queue.ancestors, entry.queue_memos, strict=True):
                member.restore(memo)
        self._cancelled.discard(entry.undoes)
        if entry.held < 0:
            for listener in listeners:
                listener.allocated(task, node)


def _job(task: TaskState) -> JobState:
    if task.job is None:
        raise LookupError(f"{task.key} belongs to no gang of this shard")
    return task.job
