"""Who comes first: gangs within a queue, subgroups within a gang, tasks within a pod set.

Mirrors plugins/priority, elastic, subgrouporder, kubeflow, ray and taskorder (KAI d5bc503a), in the
order in which the shard lists them. Each order is a sort key; names and creation times break ties.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gangdash.engine.session import JobState, Session, SubGroup, TaskState

ROLE_LABEL = "training.kubeflow.org/job-role"
RAY_LABEL = "ray.io/node-type"
TASK_PRIORITY_LABEL = "kai.scheduler/task-priority"

Key = tuple[Any, ...]

_LEADERS = frozenset({"master", "launcher"})
_INTEGER = re.compile(r"[+-]?\d+")


def install(session: Session) -> None:
    """Set the orders of the session from its enabled plugins and sort every pod set's tasks."""
    enabled = [plugin.name for plugin in session.config.plugins]
    job_parts = [_JOB_PARTS[name] for name in enabled if name in _JOB_PARTS]
    task_parts = [_TASK_PARTS[name] for name in enabled if name in _TASK_PARTS]
    session.job_order = lambda job: (*(part(job) for part in job_parts), job.created, job.key)
    session.sub_group_order = _sub_group_key if "subgrouporder" in enabled else _name_key
    for job in session.jobs.values():
        for pod_set in job.pod_sets.values():
            for task in pod_set.tasks:
                created = task.pod.meta.created or 0.0
                task.order = (*(part(task) for part in task_parts), created, task.uid)
            pod_set.tasks.sort(key=lambda task: task.order)


def elastic_state(job: JobState) -> int:
    """Return 0 below the minimum of some pod set, 1 exactly at all minimums, 2 above."""
    above = False
    for pod_set in job.pod_sets.values():
        if pod_set.active_allocated < pod_set.min_available:
            return 0
        above = above or pod_set.active_allocated > pod_set.min_available
    return 2 if above else 1


def _sub_group_key(member: SubGroup) -> Key:
    """Order unsatisfied members first, then required ones by how far above their minimum, then optional ones."""
    count, needed = member.progress
    if count < needed:
        return (0, 0, member.name)
    if needed > 0:
        return (1, count / needed, member.name)
    return (2, count, member.name)


def _name_key(member: SubGroup) -> Key:
    return (member.name,)


def _leader(task: TaskState) -> int:
    return 0 if task.pod.meta.labels.get(ROLE_LABEL) in _LEADERS else 1


def _ray_head(task: TaskState) -> int:
    return 0 if task.pod.meta.labels.get(RAY_LABEL) == "head" else 1


def _task_priority(task: TaskState) -> Key:
    text = task.pod.meta.labels.get(TASK_PRIORITY_LABEL)
    if text is None:
        return (2, 0)
    return (0, -int(text)) if _INTEGER.fullmatch(text) else (1, 0)


_JOB_PARTS: dict[str, Callable[[JobState], int]] = {"priority": lambda job: -job.priority, "elastic": elastic_state}
_TASK_PARTS: dict[str, Callable[[TaskState], Any]] = {
    "kubeflow": _leader,
    "ray": _ray_head,
    "taskorder": _task_priority,
}
