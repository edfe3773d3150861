"""The working state of a gang: its tree of subgroups, its tasks by status, and the errors noted for it.

A gang is called a job here as the scheduler does, to keep it apart from the frozen ``PodGroup``.
Mirrors pkg/scheduler/api/podgroup_info (job_info.go, subgroup_info/) at KAI d5bc503a.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangdash.engine.model.podgroup import PodGroup, TopologyConstraint
from gangdash.engine.statement.errors import GangError, TaskErrors
from gangdash.engine.statement.status import ACTIVE_ALLOCATED, ACTIVE_USED, ALIVE, ALLOCATED, Status
from gangdash.engine.statement.task import DEFAULT_POD_SET, TaskState
from gangdash.engine.statement.vectors import Amounts, Vector, added, subtracted


class PodSet:
    """A leaf of the tree: pods with a common minimum."""

    __slots__ = (
        "active_allocated",
        "active_used",
        "alive",
        "by_status",
        "constraint",
        "min_available",
        "name",
        "parent",
        "tasks",
    )

    def __init__(self, name: str, min_available: int, constraint: TopologyConstraint | None = None) -> None:
        self.name = name
        self.min_available = min_available
        self.constraint = constraint
        self.parent: SubGroupSet | None = None
        self.tasks: list[TaskState] = []
        """In task order once the session is built."""
        self.active_allocated = 0
        self.active_used = 0
        self.alive = 0
        self.by_status: dict[Status, int] = {}

    def count(self, status: Status, change: int) -> None:
        """Move the counters for a task that enters (+1) or leaves (-1) a status."""
        self.by_status[status] = self.by_status.get(status, 0) + change
        if status & ACTIVE_ALLOCATED:
            self.active_allocated += change
        if status & ACTIVE_USED:
            self.active_used += change
        if status & ALIVE:
            self.alive += change

    @property
    def gated(self) -> int:
        return self.by_status.get(Status.GATED, 0)

    @property
    def is_ready(self) -> bool:
        return self.alive - self.gated >= self.min_available

    @property
    def is_satisfied(self) -> bool:
        """Whether it needs no more pods: what a step of placement goes by."""
        return self.active_allocated >= self.min_available

    @property
    def is_gang_satisfied(self) -> bool:
        """Whether its minimum is there with terminating pods counted: what staleness goes by."""
        return self.active_used >= self.min_available

    @property
    def is_elastic(self) -> bool:
        return self.min_available < len(self.tasks)

    @property
    def progress(self) -> tuple[int, int]:
        """Members that count, and how many are needed."""
        return self.active_allocated, self.min_available


class SubGroupSet:
    """An inner node: ``minimum`` of its direct children must be satisfied, all of them where it is unset."""

    __slots__ = ("constraint", "groups", "min_sub_group", "name", "parent", "pod_sets")

    def __init__(
        self, name: str, min_sub_group: int | None = None, constraint: TopologyConstraint | None = None
    ) -> None:
        self.name = name
        self.min_sub_group = min_sub_group
        self.constraint = constraint
        self.parent: SubGroupSet | None = None
        self.groups: list[SubGroupSet] = []
        self.pod_sets: list[PodSet] = []

    def add(self, child: SubGroupSet | PodSet) -> None:
        child.parent = self
        if isinstance(child, PodSet):
            self.pod_sets.append(child)
        else:
            self.groups.append(child)

    @property
    def members(self) -> list[SubGroupSet | PodSet]:
        return [*self.groups, *self.pod_sets]

    @property
    def minimum(self) -> int:
        return len(self.groups) + len(self.pod_sets) if self.min_sub_group is None else self.min_sub_group

    @property
    def satisfied_members(self) -> int:
        return sum(g.is_satisfied for g in self.groups) + sum(p.is_satisfied for p in self.pod_sets)

    @property
    def is_satisfied(self) -> bool:
        return self.satisfied_members >= self.minimum

    @property
    def is_ready(self) -> bool:
        return sum(m.is_ready for m in self.groups) + sum(m.is_ready for m in self.pod_sets) >= self.minimum

    @property
    def progress(self) -> tuple[int, int]:
        return self.satisfied_members, self.minimum

    def descendants(self) -> Iterator[PodSet]:
        """Yield the pod sets below, own ones first."""
        yield from self.pod_sets
        for group in self.groups:
            yield from group.descendants()


SubGroup = SubGroupSet | PodSet


class JobState:
    """A PodGroup in the cycle. Its key is the PodGroup's name: the scheduler keys its gangs by name alone."""

    __slots__ = (
        "allocated",
        "created",
        "errors",
        "invalid_tasks",
        "is_preemptible",
        "key",
        "last_eviction",
        "last_start",
        "pending",
        "pod_sets",
        "podgroup",
        "priority",
        "queue",
        "rank",
        "root",
        "signature",
        "stale_since",
        "step",
        "step_amounts",
        "task_errors",
        "tasks",
    )

    def __init__(self, podgroup: PodGroup, root: SubGroupSet, allocated: Vector) -> None:
        self.podgroup = podgroup
        self.key = podgroup.meta.name
        self.queue = podgroup.queue
        self.priority = 0
        self.is_preemptible = False
        """Stays False where the queue does not exist: the scheduler does not work it out then."""
        self.created = podgroup.meta.created or 0.0
        self.root = root
        self.pod_sets: dict[str, PodSet] = {pod_set.name: pod_set for pod_set in root.descendants()}
        self.tasks: dict[str, TaskState] = {}
        """By uid, tasks of unknown subgroups excluded."""
        self.invalid_tasks: dict[str, TaskState] = {}
        self.errors: list[GangError] = []
        self.task_errors: dict[str, TaskErrors] = {}
        self.allocated = allocated
        """Sum of the requests of its allocated tasks."""
        self.last_start: float | None = None
        self.last_eviction: float | None = None
        self.stale_since: float | None = None
        self.step: list[TaskState] | None = None
        """The tasks of the next step, kept until a task of the gang changes its status."""
        self.step_amounts: Amounts | None = None
        """What that step asks of its queue, kept as long."""
        self.rank: tuple[Any, ...] | None = None
        """Its sort key among the gangs of its queue, kept as long."""
        self.pending = 0
        """Tasks that are pending."""
        self.signature: str | None = None

    @property
    def namespace(self) -> str:
        return self.podgroup.meta.namespace

    @property
    def name(self) -> str:
        return self.podgroup.meta.name

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_ready(self) -> bool:
        return self.root.is_ready

    @property
    def is_gang_satisfied(self) -> bool:
        return all(pod_set.is_gang_satisfied for pod_set in self.pod_sets.values())

    @property
    def is_elastic(self) -> bool:
        return any(pod_set.is_elastic for pod_set in self.pod_sets.values())

    @property
    def is_gang(self) -> bool:
        """Whether some part of it needs more than one pod at once."""
        return any(pod_set.min_available > 1 for pod_set in self.pod_sets.values())

    def count(self, status: Status) -> int:
        return sum(pod_set.by_status.get(status, 0) for pod_set in self.pod_sets.values())

    @property
    def has_allocated(self) -> bool:
        """Whether some task of it counts as the use of its queue."""
        return any(task.status & ALLOCATED for task in self.tasks.values())

    @property
    def active_used(self) -> int:
        return sum(pod_set.active_used for pod_set in self.pod_sets.values())

    @property
    def active_allocated(self) -> int:
        return sum(pod_set.active_allocated for pod_set in self.pod_sets.values())

    @property
    def is_stale(self) -> bool:
        """Whether pods of it run below the minimum of some pod set while none has succeeded."""
        return not self.count(Status.SUCCEEDED) and self.active_used > 0 and not self.is_gang_satisfied

    def add_task(self, task: TaskState) -> None:
        """Join a task to its pod set, or note that it names none that exists."""
        task.job = self
        pod_set = self.pod_sets.get(task.sub_group or DEFAULT_POD_SET)
        if pod_set is None:
            self.invalid_tasks[task.uid] = task
            error = self.task_errors.setdefault(task.uid, TaskErrors())
            error.error = (
                f'Pod references subgroup "{task.sub_group}", which does not exist in PodGroup {self.full_name}'
            )
            return
        task.pod_set = pod_set
        self._count_in(task, pod_set)

    def show_task(self, task: TaskState) -> None:
        """Count a task that belongs to another view of this gang, without making it this one's own."""
        self._count_in(task, self.pod_sets[task.sub_group])

    def _count_in(self, task: TaskState, pod_set: PodSet) -> None:
        pod_set.tasks.append(task)
        pod_set.count(task.status, 1)
        self.tasks[task.uid] = task
        self.pending += task.status is Status.PENDING
        if task.status & ALLOCATED:
            self.allocated = added(self.allocated, task.request)

    def set_status(self, task: TaskState, status: Status) -> None:
        """Give a task another status and keep every count in step."""
        before, task.status = task.status, status
        self.step = self.step_amounts = self.rank = None
        if task.pod_set is None:
            return
        task.pod_set.count(before, -1)
        task.pod_set.count(status, 1)
        self.pending += (status is Status.PENDING) - (before is Status.PENDING)
        was_allocated, is_allocated = before & ALLOCATED, status & ALLOCATED
        if is_allocated and not was_allocated:
            self.allocated = added(self.allocated, task.request)
        elif was_allocated and not is_allocated:
            self.allocated = subtracted(self.allocated, task.request)

    def add_error(self, reason: str, message: str) -> None:
        self.errors.append(GangError(reason, (message,)))

    def note_task(self, task: TaskState) -> TaskErrors:
        """Return the notes about one task, made on first use."""
        notes = self.task_errors.get(task.uid)
        if notes is None:
            notes = self.task_errors[task.uid] = TaskErrors()
        return notes

    def __repr__(self) -> str:
        return f"<job {self.full_name} queue {self.queue}>"
