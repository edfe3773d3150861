"""Place gangs on what is free or being released, in queue order, step by step.

A gang that was placed and still has pods left goes back into the queue for its next increment. Where a
required pod has to wait for resources, the whole step waits with it. Mirrors
pkg/scheduler/actions/allocate/allocate.go (KAI d5bc503a).
"""

from __future__ import annotations

from gangdash.engine.actions.ordering import JobsByQueue, Selection
from gangdash.engine.actions.placement import allocate_job
from gangdash.engine.rules.steps import has_tasks_left
from gangdash.engine.session import JobState, Session, Status

NAME = "allocate"


def execute(session: Session) -> None:
    jobs = JobsByQueue(session, depth=session.config.queue_depth.get(NAME))
    jobs.add(session.jobs.values(), Selection(only_ready=True, only_pending=True))
    while not jobs.is_empty:
        job = jobs.pop()
        for look in session.hooks.before_turn:
            look(NAME, job)
        statement = session.statement()
        was_allocated = job.has_allocated
        if not allocate_job(session, statement, job, session.all_nodes, pipeline_only=False):
            statement.discard()
            continue
        waits = must_wait(job)
        if waits:
            statement.pipeline_allocated(job)
        session.commit(NAME, statement)
        if not waits and not was_allocated:
            job.last_start = session.as_of
        if has_tasks_left(job, real=True):
            jobs.push(job)


def must_wait(job: JobState) -> bool:
    """Whether some pod set needs a promised pod for its minimum: then nothing of the step is bound now."""
    for pod_set in job.pod_sets.values():
        promised = pod_set.by_status.get(Status.PIPELINED, 0)
        if promised and pod_set.active_allocated - promised < pod_set.min_available:
            return True
    return False
