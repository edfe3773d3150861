"""Place the next step of one gang, all of it or nothing.

Walks the tree of subgroups; for each node of the tree the rules give node sets in order, and each is
tried with everything below it until one takes all tasks. Inside a node set tasks are placed one by one on
the best node that takes them, and never moved again. Mirrors pkg/scheduler/actions/common/allocate.go and
framework/session.go (KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gangdash.engine.rules.choice import choices_of
from gangdash.engine.rules.gpu_sharing import choose_groups
from gangdash.engine.rules.resource_fit import shortages
from gangdash.engine.rules.scoring import ordered_nodes
from gangdash.engine.rules.steps import next_tasks
from gangdash.engine.session import (
    JobState,
    NodeState,
    PodSet,
    Session,
    Statement,
    SubGroup,
    SubGroupSet,
    TaskState,
)
from gangdash.engine.session.buckets import Buckets
from gangdash.engine.session.hooks import SubsetNodes
from gangdash.engine.statement.errors import DEFAULT_TASK_ERROR

SCHEDULING_ERRORS = "PodSchedulingErrors"


def allocate_job(
    session: Session, statement: Statement, job: JobState, nodes: list[NodeState], *, pipeline_only: bool
) -> bool:
    """Place the gang's next step; on failure what was placed is still in the statement.

    ``pipeline_only`` is for simulations: tasks are only promised nodes, and no reasons of nodes are noted.
    ``job`` may be a partial view of the tasks' own gang.
    """
    for hook in session.hooks.before_job:
        hook(job)
    tasks = next_tasks(session, job, real=not pipeline_only)
    if not tasks:
        return False
    for check in session.hooks.over_capacity:
        error = check(job, tasks)
        if error is not None:
            if not pipeline_only:
                job.errors.append(error)
                session.note_fit(job, 0)
            return False
    return _Attempt(session, statement, job, pipeline_only=pipeline_only).place_set(job.root, tasks, nodes)


class _Site:
    """The nodes of one node set, in groups as soon as a task can use them."""

    def __init__(self, session: Session, nodes: list[NodeState]) -> None:
        self.nodes = nodes
        self.choices = choices_of(session)
        self._shortcuts = session.shortcuts
        self._is_all = nodes is session.all_nodes
        self._buckets: Buckets | None = None

    def buckets(self, task: TaskState) -> Buckets | None:
        """Return the groups for a task, ``None`` where every node has to be asked."""
        if not self._shortcuts or not self.choices.is_plain(task):
            return None
        if self._buckets is None or self._is_all:
            self._buckets = self.choices.buckets(task, self.nodes)
        return self._buckets

    def changed(self, node: NodeState) -> None:
        if self._buckets is not None:
            self._buckets.update(node)


class _Attempt:
    """One try to place one gang's step."""

    def __init__(self, session: Session, statement: Statement, job: JobState, *, pipeline_only: bool) -> None:
        self._session = session
        self._statement = statement
        self._job = job
        self._pipeline_only = pipeline_only
        self._start = statement.checkpoint()

    def place_set(self, group: SubGroupSet, tasks: Sequence[TaskState], nodes: list[NodeState]) -> bool:
        return self._try_node_sets(group, tasks, nodes)

    def _try_node_sets(self, member: SubGroup, tasks: Sequence[TaskState], nodes: list[NodeState]) -> bool:
        if not tasks:
            return True
        for node_set in self._node_sets(member, tasks, nodes):
            checkpoint = self._statement.checkpoint()
            if self._place_member(member, tasks, node_set):
                return True
            self._statement.rollback(checkpoint)
        return False

    def _node_sets(
        self, member: SubGroup, tasks: Sequence[TaskState], nodes: list[NodeState]
    ) -> Iterable[list[NodeState]]:
        """Return what the rules leave of a node set, each rule narrowing what the one before it gave."""
        sets: Iterable[list[NodeState]] = (nodes,)
        for subset in self._session.hooks.subset_nodes:
            sets = self._narrowed(subset, member, tasks, sets)
        return sets

    def _narrowed(
        self, subset: SubsetNodes, member: SubGroup, tasks: Sequence[TaskState], sets: Iterable[list[NodeState]]
    ) -> Iterator[list[NodeState]]:
        for nodes in sets:
            yield from subset(self._job, member, tasks, nodes) or ()

    def _place_member(self, member: SubGroup, tasks: Sequence[TaskState], nodes: list[NodeState]) -> bool:
        if isinstance(member, PodSet):
            return self._place_tasks(tasks, nodes)
        for child in sorted(member.members, key=self._session.sub_group_order):
            names = {child.name} if isinstance(child, PodSet) else {pod_set.name for pod_set in child.descendants()}
            if not self._try_node_sets(child, [task for task in tasks if task.sub_group in names], nodes):
                return False
        return True

    def _place_tasks(self, tasks: Sequence[TaskState], nodes: list[NodeState]) -> bool:
        site = _Site(self._session, nodes)
        for index, task in enumerate(tasks):
            if not self._place_task(task, site):
                if not self._pipeline_only:
                    self._session.note_fit(self._job, len(self._statement) - self._start)
                _note_failure(self._job, task, index)
                return False
        return True

    def _place_task(self, task: TaskState, site: _Site) -> bool:
        owner = task.job
        if owner is None:
            return False
        for check in self._session.hooks.pre_predicates:
            text = check(task, owner)
            if text:
                _note_error(owner, task, text)
                return False
        buckets = site.buckets(task)
        if buckets is not None:
            node = site.choices.choose(task, owner, buckets, notes=not self._pipeline_only)
            return node is not None and self._put(task, node, site)
        return any(
            self._takes(owner, task, node) and self._put(task, node, site)
            for node in ordered_nodes(self._session, task, site.nodes)
        )

    def _takes(self, owner: JobState, task: TaskState, node: NodeState) -> bool:
        """Whether the node may host the task; notes why not unless this is a simulation."""
        if not node.fits_future(task):
            if not self._pipeline_only and not node.fits_idle(task) and not node.fits_vector(task, node.idle):
                short = shortages(task, node, of_several=len(owner.tasks) > 1)
                owner.note_task(task).add(reason.short for reason in short)
            return False
        for check in self._session.hooks.predicates:
            reasons = check(task, owner, node)
            if reasons:
                if not self._pipeline_only:
                    owner.note_task(task).add(reasons)
                return False
        return True

    def _put(self, task: TaskState, node: NodeState, site: _Site) -> bool:
        if task.asks_shared_gpu:
            if not self._put_shared(task, node):
                return False
        elif not self._pipeline_only and node.fits_idle(task):
            self._statement.allocate(task, node)
        else:
            self._statement.pipeline(task, node, update_if_on_node=not self._pipeline_only)
        site.changed(node)
        return True

    def _put_shared(self, task: TaskState, node: NodeState) -> bool:
        choice = choose_groups(self._session, task, node, pipeline_only=self._pipeline_only)
        if choice is None:
            return False
        if self._pipeline_only or choice.is_releasing:
            self._statement.pipeline(task, node, update_if_on_node=False, groups=choice.groups)
        else:
            self._statement.allocate(task, node, groups=choice.groups)
        return True


def _note_error(owner: JobState, task: TaskState, text: str) -> None:
    """Note an error of the task itself; only the first text of a cycle is kept."""
    if task.uid not in owner.task_errors:
        owner.note_task(task).error = text


def _note_failure(job: JobState, task: TaskState, placed: int) -> None:
    notes = job.task_errors.get(task.uid)
    why = notes.text() if notes is not None else DEFAULT_TASK_ERROR
    pod_set = job.pod_sets[task.sub_group]
    minimum = pod_set.min_available
    if not job.is_gang or pod_set.active_used >= minimum:
        text = f"Resources were not found for pod {task.key} due to: {why}"
    elif len(job.pod_sets) == 1 and pod_set.name == "default":
        text = (
            f"Resources were found for {placed} pods while {minimum} are required for gang scheduling. "
            f"Additional pods cannot be scheduled due to: {why}"
        )
    else:
        text = (
            f"Resources were found for {placed} pods from all sub-groups while sub-group {pod_set.name} "
            f"requires {minimum} pods for gang scheduling. "
            f"Additional pods cannot be scheduled in this sub-group due to: {why}"
        )
    job.add_error(SCHEDULING_ERRORS, text)
