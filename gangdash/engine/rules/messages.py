"""What the scheduler would write on a waiting gang and on its pods when the cycle closes.

The texts of the PodGroup's condition and of ``PodScheduled``, with or without detailed fit errors. Mirrors
cache/status_updater and the message algebra of api/common_info (KAI d5bc503a).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gangdash.engine.rules.resource_fit import shortages
from gangdash.engine.session import DEFAULT_POD_SET, GangError, JobState, NodeState, Session, Status, TaskState
from gangdash.engine.statement.errors import DEFAULT_GANG_ERROR, DEFAULT_TASK_ERROR, NO_NODES


def gang_message(session: Session, job: JobState) -> str:
    """Return the text for the gang's own condition."""
    write = _detailed if session.params.detailed_fit_errors else _short
    return _prefix(session, job) + write(job.errors)


def pod_message(session: Session, job: JobState, task: TaskState) -> str:
    """Return the text for a waiting pod, empty for one that is gated."""
    notes = job.task_errors.get(task.uid)
    if task.status is not Status.PENDING:
        return ""
    if notes is None:
        return _prefix(session, job) + (_short(job.errors) if job.errors else DEFAULT_TASK_ERROR)
    text = notes.text()
    if session.params.detailed_fit_errors:
        lines = sorted(_node_lines(session, job, task)) if notes.reasons else []
        if lines or not notes.reasons:
            text = "".join(sorted([f"\n{notes.error or NO_NODES}.", *lines]))
    return _prefix(session, job) + text


def _prefix(session: Session, job: JobState) -> str:
    """Return what is put before every text of a gang that backs off after one failure."""
    if job.podgroup.scheduling_backoff != 1:
        return ""
    pool = job.podgroup.meta.labels.get(session.params.node_pool_label_key, "default")
    return f"Node-Pool '{pool}': "


def _reason(errors: list[GangError]) -> str:
    return errors[0].reason if len(errors) == 1 else DEFAULT_GANG_ERROR


def _short(errors: list[GangError]) -> str:
    counts = Counter(message for error in errors for message in error.messages)
    lines = sorted(f"{count} {message}" if count > 1 else message for message, count in counts.items())
    return f"{_reason(errors)}: " + ". \n".join(lines) + "." if lines else _reason(errors)


def _detailed(errors: list[GangError]) -> str:
    return f"\n{_reason(errors)}." + "".join(sorted(f"\n{_detail(error)}." for error in errors))


def _detail(error: GangError) -> str:
    text = ", ".join(error.details or error.messages)
    if error.sub_group and error.sub_group != DEFAULT_POD_SET:
        text = f"subgroup {error.sub_group}: {text}"
    return f"<{error.domain}>: {text}" if error.domain else text


def _node_lines(session: Session, job: JobState, task: TaskState) -> Iterator[str]:
    """Yield why each node refuses the pod now; nothing where the pod could be placed on none before that."""
    if any(check(task, job) for check in session.hooks.pre_predicates):
        return
    for node in session.all_nodes:
        reasons = _refusal(session, job, task, node)
        if reasons:
            yield f"\n<{node.name}>: {', '.join(reasons)}."


def _refusal(session: Session, job: JobState, task: TaskState, node: NodeState) -> list[str]:
    if not node.fits_future(task):
        if node.fits_idle(task):
            return []
        return [reason.detailed for reason in shortages(task, node, of_several=len(job.tasks) > 1)]
    for check in session.hooks.predicates:
        reasons = check(task, job, node)
        if reasons:
            return list(reasons)
    return []
