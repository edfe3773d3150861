"""The action ``stalegangeviction``: remove gangs that have run below their minimum for longer than allowed.

Looks at every gang, also those whose queue is missing, and ignores minimums of subgroups. Mirrors
pkg/scheduler/actions/stalegangeviction (KAI d5bc503a). A gang found stale for the first time starts its
grace period now.
"""

from __future__ import annotations

from gangdash.engine.session import ACTIVE_ALLOCATED, JobState, Session

NAME = "stalegangeviction"


def execute(session: Session) -> None:
    for job in session.jobs.values():
        if not job.is_stale:
            job.stale_since = None
        elif _grace_is_over(session, job):
            _evict(session, job)


def _grace_is_over(session: Session, job: JobState) -> bool:
    if job.stale_since is None:
        job.stale_since = session.as_of
    own = job.podgroup.staleness_grace
    grace = session.params.staleness_grace if own is None else own
    return grace >= 0 and session.as_of - job.stale_since >= grace


def _evict(session: Session, job: JobState) -> None:
    """Evict pod by pod: one whose node is outside the shard does not keep the others."""
    for task in list(job.tasks.values()):
        if task.status & ACTIVE_ALLOCATED and task.node_name in session.nodes:
            statement = session.statement()
            statement.evict(task)
            session.commit(NAME, statement)
