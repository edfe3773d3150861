"""Which tasks a gang asks for next: what completes its minimum, or one increment beyond it.

Mirrors pkg/scheduler/api/podgroup_info/allocation_info.go (KAI d5bc503a). The children that make up a
minimum are chosen by order alone, whether or not they can be placed or have enough pods.
"""

from __future__ import annotations

from gangdash.engine.rules.fairshare import pending_amounts
from gangdash.engine.session import Amounts, JobState, PodSet, Session, SubGroup, SubGroupSet, TaskState


def next_tasks(session: Session, job: JobState, *, real: bool) -> list[TaskState]:
    """Return the tasks of the next step; ``real`` leaves out victims that a simulation may place again.

    The answer is kept on the gang until one of its tasks changes, whichever ``real`` was asked first.
    """
    if job.step is None:
        job.step = _from_set(session, job.root, real=real)
    return job.step


def step_amounts(session: Session, job: JobState, *, real: bool) -> Amounts:
    """Return what the next step asks of the gang's queue."""
    if job.step_amounts is None or job.step is None:
        cpu = memory = gpu = 0.0
        for task in next_tasks(session, job, real=real):
            if task.can_be_placed(real=real):
                asked = pending_amounts(session, task)
                cpu, memory, gpu = cpu + asked[0], memory + asked[1], gpu + asked[2]
        job.step_amounts = (cpu, memory, gpu)
    return job.step_amounts


def has_tasks_left(job: JobState, *, real: bool) -> bool:
    return any(task.can_be_placed(real=real) for task in job.tasks.values())


def _from_set(session: Session, group: SubGroupSet, *, real: bool) -> list[TaskState]:
    members = sorted(group.members, key=session.sub_group_order)
    if not group.is_satisfied:
        return [
            task
            for member in members[: max(group.minimum, 0)]
            if not member.is_satisfied
            for task in _from_member(session, member, real=real)
        ]
    for member in members:
        tasks = _from_member(session, member, real=real)
        if tasks:
            return tasks
    return []


def _from_member(session: Session, member: SubGroup, *, real: bool) -> list[TaskState]:
    if isinstance(member, PodSet):
        return _from_pod_set(member, real=real)
    return _from_set(session, member, real=real)


def _from_pod_set(pod_set: PodSet, *, real: bool) -> list[TaskState]:
    wanted = 1 if pod_set.is_satisfied else pod_set.min_available - pod_set.active_allocated
    found: list[TaskState] = []
    for task in pod_set.tasks:
        if task.can_be_placed(real=real):
            found.append(task)
            if len(found) == wanted:
                break
    return found
