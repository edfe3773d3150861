"""Does the scheduler itself start a gang once queue-side rules are taken away, and which of them have to go?

A trial runs the shard's actions on the session as it opened. Victim search and priorities are the scheduler's own;
taking away the order means that no other gang's waiting pods are tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum

from gangdash.engine.explain.gang import Gang
from gangdash.engine.rules.capacity import OVER_QUOTA, step_quota
from gangdash.engine.sandbox import Attempt, Lift, attempt
from gangdash.engine.session import GangError, JobState, QueueState, Session, TaskState
from gangdash.engine.session.hooks import CapacityCheck
from gangdash.engine.statement import UNLIMITED, Amounts
from gangdash.engine.statement.status import ALLOCATED

_ENDLESS: Amounts = (UNLIMITED, UNLIMITED, UNLIMITED)
_NOTHING: Amounts = (0, 0, 0)
_OWED: Amounts = (-1e18, -1e18, -1e18)

_REDUCED_UP_TO = 256
"""Nodes; beyond it a set that suffices is not tried again without each of its rules among all gangs."""


class Rule(StrEnum):
    """A queue-side rule that a trial takes away."""

    LIMIT = "limit"
    QUOTA = "quota"
    ORDER = "order"
    DELAY = "delay"
    MIN_RUNTIME = "min_runtime"
    SHARE = "share"
    PROTECTION = "protection"


Rules = frozenset[Rule]
_CAPS = frozenset({Rule.LIMIT, Rule.QUOTA})


class Trials:
    """The trials of one gang; each set of rules is run once."""

    def __init__(self, gang: Gang) -> None:
        self.gang = gang
        self._done: dict[Rules, Attempt] = {}

    def result(self, lifted: Iterable[Rule]) -> Attempt:
        """Return what becomes of the gang with these rules lifted."""
        rules = frozenset(lifted)
        if rules not in self._done:
            self._done[rules] = self._run(rules)
        return self._done[rules]

    def starts(self, *lifted: Rule) -> bool:
        return self.result(lifted).starts

    def smallest(self, lifts: Sequence[Rule]) -> Rules | None:
        """Return a minimal set of the rules whose lifting starts the gang; None when lifting all does not.

        The gang waits in the cycle as it is. Limits and quotas, which the scheduler names first, are preferred.
        A trial with the gang alone is cheap and more generous, so it comes before one among all gangs.
        """
        if not self.starts(Rule.ORDER, *lifts):
            return None
        others = [rule for rule in lifts if rule is not Rule.ORDER]
        for rules in _subsets([rule for rule in others if rule in _CAPS]):
            if rules and self._suffices(rules):
                return frozenset(rules)
        chosen = next(rules for rules in _subsets(others) if self.starts(Rule.ORDER, *rules))
        if chosen and self._suffices(chosen):
            return self._reduced(frozenset(chosen))
        return frozenset({Rule.ORDER, *chosen})

    def _suffices(self, rules: Sequence[Rule]) -> bool:
        return self.starts(Rule.ORDER, *rules) and self.starts(*rules)

    def _reduced(self, rules: Rules) -> Rules:
        """Drop rules that turn out not to matter while the other gangs are there too.

        With the gang alone none of them could go, so this seldom changes anything; at scale it costs more than the
        rest of the explanation.
        """
        shard = self.gang.shard
        if shard is not None and len(self.gang.context.session(shard).nodes) > _REDUCED_UP_TO:
            return rules
        for rule in sorted(rules):
            if len(rules) > 1 and self.starts(*(rules - {rule})):
                return self._reduced(rules - {rule})
        return rules

    def _run(self, rules: Rules) -> Attempt:
        shard, job = self.gang.shard, self.gang.job
        if shard is None or job is None:
            return Attempt()
        session = self.gang.context.session(shard)
        lifts = [LIFTS[rule] for rule in sorted(rules) if rule in LIFTS]
        return attempt(session, job, alone=Rule.ORDER in rules, lifts=lifts)


def _subsets(rules: Sequence[Rule]) -> Iterator[tuple[Rule, ...]]:
    for size in range(len(rules) + 1):
        yield from itertools.combinations(rules, size)


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
