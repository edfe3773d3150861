"""Partial views of a gang: the part under trial, or what is left of a victim; and which pods of it go next.

A view is a ``JobState`` with its own tree and counts over the same tasks; the tasks go on belonging to the
whole gang, so that statements change that one. Counts of a view are those of the moment it was made, as in
the scheduler. Mirrors CloneWithTasks, eviction_info.go and getPartialJobRepresentative (KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Iterable

from gangdash.engine.session import (
    ACTIVE_ALLOCATED,
    JobState,
    PodSet,
    Session,
    SubGroup,
    SubGroupSet,
    TaskState,
)


def view_of(job: JobState, tasks: Iterable[TaskState]) -> JobState:
    """Return a view of the gang that holds only some of its tasks."""
    view = JobState(job.podgroup, _copy_set(job.root), [0] * len(job.allocated))
    view.queue, view.key, view.created = job.queue, job.key, job.created
    view.priority, view.is_preemptible = job.priority, job.is_preemptible
    view.last_start, view.last_eviction = job.last_start, job.last_eviction
    for task in sorted(tasks, key=lambda t: t.order):
        view.show_task(task)
    return view


def _copy_set(group: SubGroupSet) -> SubGroupSet:
    copy = SubGroupSet(group.name, group.min_sub_group, group.constraint)
    for pod_set in group.pod_sets:
        copy.add(PodSet(pod_set.name, pod_set.min_available, pod_set.constraint))
    for child in group.groups:
        copy.add(_copy_set(child))
    return copy


def part_of(job: JobState, pending: Iterable[TaskState]) -> JobState:
    """Return the view that asks for some pending tasks beside what runs, its minimums lowered to what it holds."""
    running = [task for task in job.tasks.values() if task.status & ACTIVE_ALLOCATED]
    view = view_of(job, [*running, *pending])
    for pod_set in view.pod_sets.values():
        if pod_set.tasks:
            pod_set.min_available = min(pod_set.min_available, len(pod_set.tasks))
    _lower_sub_groups(view.root)
    return view


def _lower_sub_groups(group: SubGroupSet) -> bool:
    """Lower minimums of subgroups to the members that hold tasks; return whether any does."""
    filled = sum(bool(pod_set.tasks) for pod_set in group.pod_sets)
    filled += sum([_lower_sub_groups(child) for child in group.groups])
    if group.min_sub_group is not None:
        group.min_sub_group = min(group.min_sub_group, filled)
    return filled > 0


def next_to_evict(session: Session, job: JobState) -> tuple[list[TaskState], bool]:
    """Return the pods that go first when the gang is a victim, and whether others would remain active.

    One pod beyond a minimum, else a subgroup beyond a minimum, else everything.
    """
    tasks = _surplus_of_set(session, job.root) or _all_of(job.root)
    return tasks, len(tasks) < job.active_allocated


def _backwards(session: Session, group: SubGroupSet) -> list[SubGroup]:
    return sorted(group.members, key=session.sub_group_order, reverse=True)


def _surplus_of_set(session: Session, group: SubGroupSet) -> list[TaskState]:
    satisfied = group.satisfied_members
    if satisfied == 0:
        return []
    members = _backwards(session, group)
    if _has_surplus(group):
        for member in members:
            tasks = _surplus_of(session, member)
            if tasks:
                return tasks
    if group.minimum < satisfied:
        for member in members:
            tasks = _all_of(member)
            if tasks:
                return tasks
    return []


def _surplus_of(session: Session, member: SubGroup) -> list[TaskState]:
    if isinstance(member, SubGroupSet):
        return _surplus_of_set(session, member)
    if member.active_allocated <= member.min_available:
        return []
    return _all_of(member)[:1]


def _has_surplus(member: SubGroup) -> bool:
    if isinstance(member, PodSet):
        return member.active_allocated > member.min_available
    return member.satisfied_members > member.minimum or any(_has_surplus(m) for m in member.members)


def _all_of(member: SubGroup) -> list[TaskState]:
    """Return the active tasks below, last in task order first."""
    pod_sets = [member] if isinstance(member, PodSet) else member.descendants()
    return [task for pod_set in pod_sets for task in reversed(pod_set.tasks) if task.status & ACTIVE_ALLOCATED]
