"""Queue-side rules that a trial can take away from the session of one shard, and give back exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum

from gangdash.engine.rules.capacity import OVER_QUOTA, step_quota
from gangdash.engine.sandbox import Lift
from gangdash.engine.session import GangError, JobState, QueueState, Session, TaskState
from gangdash.engine.session.hooks import CapacityCheck
from gangdash.engine.statement import UNLIMITED, Amounts
from gangdash.engine.statement.status import ALLOCATED

_ENDLESS: Amounts = (UNLIMITED, UNLIMITED, UNLIMITED)
_NOTHING: Amounts = (0, 0, 0)
_OWED: Amounts = (-1e18, -1e18, -1e18)


class Rule(StrEnum):
    """A queue-side rule. ``ORDER`` is lifted by trying one gang alone, not by a change to the session."""

    LIMIT = "limit"
    QUOTA = "quota"
    ORDER = "order"
    DELAY = "delay"
    MIN_RUNTIME = "min_runtime"
    SHARE = "share"
    PROTECTION = "protection"


Rules = frozenset[Rule]


def lifts_of(rules: Iterable[Rule]) -> list[Lift]:
    return [LIFTS[rule] for rule in sorted(rules) if rule in LIFTS]


def _chain(session: Session, job: JobState) -> tuple[QueueState, ...]:
    queue = session.queues.get(job.queue)
    return queue.ancestors if queue is not None else ()


@contextmanager
def _no_limit(session: Session, job: JobState) -> Iterator[None]:
    before = [(queue, queue.limit) for queue in _chain(session, job)]
    for queue, _ in before:
        queue.limit = _ENDLESS
    try:
        yield
    finally:
        for queue, limit in before:
            queue.limit = limit


@contextmanager
def _no_quota(session: Session, job: JobState) -> Iterator[None]:
    """Let the gang's queues count nothing as held without being preemptible. Their quotas, and so all shares, stay."""
    before = [(queue, queue.allocated_non_preemptible) for queue in _chain(session, job)]
    for queue, _ in before:
        queue.allocated_non_preemptible = _OWED
    try:
        yield
    finally:
        for queue, amounts in before:
            queue.allocated_non_preemptible = amounts


@contextmanager
def _first_claim(session: Session, job: JobState) -> Iterator[None]:
    """Give the gang's queues a claim to everything and all others to nothing; what they are refused for stays."""
    own = {queue.name for queue in _chain(session, job)}
    before = {queue.name: queue.deserved for queue in session.queues.values()}
    check = _quota_check(session, before)
    for queue in session.queues.values():
        queue.deserved = _ENDLESS if queue.name in own else _NOTHING
    session.hooks.over_capacity.append(check)
    session.hooks.non_preemptible_over_quota.append(check)
    try:
        yield
    finally:
        session.hooks.over_capacity.remove(check)
        session.hooks.non_preemptible_over_quota.remove(check)
        for queue in session.queues.values():
            queue.deserved = before[queue.name]


def _quota_check(session: Session, quotas: Mapping[str, Amounts]) -> CapacityCheck:
    """Return the check of non-preemptible gangs against these quotas."""

    def check(job: JobState, tasks: Sequence[TaskState]) -> GangError | None:
        if job.is_preemptible:
            return None
        asked = step_quota(session, tasks)
        for queue in _chain(session, job):
            for cap, held, more in zip(quotas[queue.name], queue.allocated_non_preemptible, asked, strict=True):
                if more and cap != UNLIMITED and cap < held + more:
                    return GangError(OVER_QUOTA, (queue.name,))
        return None

    return check


@contextmanager
def _no_delay(_session: Session, job: JobState) -> Iterator[None]:
    before = job.podgroup
    job.podgroup = replace(before, preemption_delay=None)
    try:
        yield
    finally:
        job.podgroup = before


@contextmanager
def _no_min_runtime(session: Session, _job: JobState) -> Iterator[None]:
    """A gang without a known start is not protected."""
    before = [(other, other.last_start) for other in session.jobs.values()]
    for other, _ in before:
        other.last_start = None
    try:
        yield
    finally:
        for other, last_start in before:
            other.last_start = last_start


@contextmanager
def _no_protection(session: Session, job: JobState) -> Iterator[None]:
    """Make gangs of other queues preemptible; whether their queue is above its quota stays the scheduler's question."""
    changed = [other for other in session.jobs.values() if other.queue != job.queue and not other.is_preemptible]
    held = [(queue, queue.allocated_non_preemptible) for queue in session.queues.values()]
    kept = [other for other in session.jobs.values() if not other.is_preemptible and other.queue == job.queue]
    for other in changed:
        other.is_preemptible = True
    for queue, _ in held:
        queue.allocated_non_preemptible = _held_by(kept) if queue in _chain(session, job) else _NOTHING
    try:
        yield
    finally:
        for other in changed:
            other.is_preemptible = False
        for queue, amounts in held:
            queue.allocated_non_preemptible = amounts


def _held_by(jobs: Iterable[JobState]) -> Amounts:
    held = [task.accepted_amounts for other in jobs for task in other.tasks.values() if task.status & ALLOCATED]
    return (sum(a[0] for a in held), sum(a[1] for a in held), sum(a[2] for a in held))


LIFTS: Mapping[Rule, Lift] = {
    Rule.LIMIT: _no_limit,
    Rule.QUOTA: _no_quota,
    Rule.SHARE: _first_claim,
    Rule.DELAY: _no_delay,
    Rule.MIN_RUNTIME: _no_min_runtime,
    Rule.PROTECTION: _no_protection,
}
