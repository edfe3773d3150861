"""Which of two sibling queues is served first, given the next gang (or the victims so far) of each.

Mirrors pkg/scheduler/plugins/proportion/queue_order/queue_order.go (KAI d5bc503a). Queues that tie to
the end are decided by creation time, and where that is equal too the answer is "the right one" from
both sides: the scheduler defines no order there, and neither does this rule. Written out per resource
where a loop would be shorter, because a cycle at scale compares queues a million times.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gangdash.engine.rules.steps import step_amounts
from gangdash.engine.session import UNLIMITED, Amounts, JobState, QueueState, Session

_NO_SHARE_PENALTY = 1000
_NOTHING: Amounts = (0, 0, 0)


class Contender(NamedTuple):
    """A queue with what speaks for it: its next gang, or what the gangs it would lose hold."""

    queue: QueueState
    job: JobState | None
    lost: Amounts = _NOTHING


class Standing:
    """What does not change about a queue during a cycle."""

    __slots__ = ("_divisors", "quota", "share", "without_share")

    def __init__(self, session: Session, queue: QueueState) -> None:
        self.quota = _endless(queue.deserved)
        self.share = allocatable_share(queue)
        divisors = [total if own == UNLIMITED else own for own, total in zip(self.share, session.total, strict=True)]
        self._divisors = (divisors[0], divisors[1], divisors[2])
        self.without_share = tuple(slot for slot in range(3) if self.share[slot] == 0)

    def dominant(self, held: Amounts) -> float:
        """Return the largest part of what the queue may hold, over resources."""
        cpu, memory, gpu = self._divisors
        return max(
            0.0,
            held[0] / cpu if cpu else held[0] * _NO_SHARE_PENALTY,
            held[1] / memory if memory else held[1] * _NO_SHARE_PENALTY,
            held[2] / gpu if gpu else held[2] * _NO_SHARE_PENALTY,
        )


class Standings(dict[str, Standing]):
    """Every queue's standing, worked out on first use."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def __missing__(self, name: str) -> Standing:
        standing = self[name] = Standing(self._session, self._session.queues[name])
        return standing


def standings_of(session: Session) -> Standings:
    found = session.memo.get(Standings)
    if not isinstance(found, Standings):
        found = session.memo[Standings] = Standings(session)
    return found


def comes_first(session: Session, left: Contender, right: Contender) -> bool:
    """Whether the left queue is served before the right one."""
    mine, other = left.queue, right.queue
    if not session.charges_queues:
        return (mine.created, mine.name) < (other.created, other.name)
    over, other_over = _is_over_used(mine), _is_over_used(other)
    if over != other_over:
        return other_over
    standings = standings_of(session)
    standing, other_standing = standings[mine.name], standings[other.name]
    held = _with_job(session, mine, left.job)
    other_held = _with_job(session, other, right.job)
    beyond, other_beyond = _exceeds(held, standing.quota), _exceeds(other_held, other_standing.quota)
    if beyond != other_beyond:
        return other_beyond
    if mine.priority != other.priority:
        return mine.priority > other.priority
    unfounded = any(held[slot] > 0 for slot in standing.without_share)
    other_unfounded = any(other_held[slot] > 0 for slot in other_standing.without_share)
    if unfounded != other_unfounded:
        return other_unfounded
    share, other_share = (
        standing.dominant(_less(held, left.lost)),
        other_standing.dominant(_less(other_held, right.lost)),
    )
    if share != other_share:
        return share < other_share
    return _by_plain_share(mine, standing, other, other_standing)


def _by_plain_share(mine: QueueState, standing: Standing, other: QueueState, other_standing: Standing) -> bool:
    share, other_share = standing.dominant(mine.allocated), other_standing.dominant(other.allocated)
    if share != other_share:
        return share < other_share
    at_most = less_equal(standing.share, other_standing.share)
    other_at_most = less_equal(other_standing.share, standing.share)
    if at_most != other_at_most:
        return at_most
    return mine.created < other.created


def _with_job(session: Session, queue: QueueState, job: JobState | None) -> Amounts:
    if job is None:
        return queue.allocated
    held, asks = queue.allocated, step_amounts(session, job, real=False)
    return (held[0] + asks[0], held[1] + asks[1], held[2] + asks[2])


def _less(held: Amounts, lost: Amounts) -> Amounts:
    return held if lost is _NOTHING else (held[0] - lost[0], held[1] - lost[1], held[2] - lost[2])


def _is_over_used(queue: QueueState) -> bool:
    """Whether it holds more than its fair share of every resource."""
    fair, held = queue.fair_share, queue.allocated
    return fair[0] < held[0] and fair[1] < held[1] and fair[2] < held[2]


def _exceeds(held: Amounts, quota: Amounts) -> bool:
    return held[0] > quota[0] or held[1] > quota[1] or held[2] > quota[2]


def _endless(amounts: Amounts) -> Amounts:
    cpu, memory, gpu = (math.inf if amount == UNLIMITED else amount for amount in amounts)
    return (cpu, memory, gpu)


def less_equal(left: Amounts, right: Amounts) -> bool:
    """Compare in every resource; -1 is unlimited, so more than any number."""
    return not _exceeds(_endless(left), _endless(right))


def allocatable_share(queue: QueueState) -> Amounts:
    """Return what the queue may hold of each resource: its quota or fair share, capped by its limit."""
    return (_allocatable(queue, 0), _allocatable(queue, 1), _allocatable(queue, 2))


def _allocatable(queue: QueueState, slot: int) -> float:
    deserved, limit = queue.deserved[slot], queue.limit[slot]
    if deserved == UNLIMITED:
        return limit
    share = max(deserved, queue.fair_share[slot])
    return share if limit == UNLIMITED else min(limit, share)
