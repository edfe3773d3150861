"""Which of two sibling queues is served first, given the next gang (or the victims so far) of each.

Mirrors pkg/scheduler/plugins/proportion/queue_order/queue_order.go (KAI d5bc503a). Queues that tie to
the end are decided by creation time, and where that is equal too the answer is "the right one" from
both sides: the scheduler defines no order there, and neither does this rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gangdash.engine.rules.steps import step_amounts
from gangdash.engine.session import UNLIMITED, Amounts, JobState, QueueState, Session

_NO_SHARE_PENALTY = 1000
_NOTHING: Amounts = (0, 0, 0)


class Contender(NamedTuple):
    """A queue with what speaks for it: its next gang, or the gangs it would lose."""

    queue: QueueState
    job: JobState | None
    victims: Sequence[JobState] = ()


def comes_first(session: Session, left: Contender, right: Contender) -> bool:
    """Whether the left queue is served before the right one."""
    mine, other = left.queue, right.queue
    if not session.charges_queues:
        return (mine.created, mine.name) < (other.created, other.name)
    asks, other_asks = _asks(session, left.job), _asks(session, right.job)
    checks = (
        (_is_over_used(mine), _is_over_used(other)),
        (not _stays_in_quota(mine, asks), not _stays_in_quota(other, other_asks)),
        (-mine.priority, -other.priority),
        (_uses_without_share(mine, asks), _uses_without_share(other, other_asks)),
    )
    for of_left, of_right in checks:
        if of_left != of_right:
            return of_left < of_right
    share = _dominant_share(session, mine, asks, left.victims)
    other_share = _dominant_share(session, other, other_asks, right.victims)
    if share != other_share:
        return share < other_share
    return _by_plain_share(session, mine, other)


def _by_plain_share(session: Session, left: QueueState, right: QueueState) -> bool:
    of_left, of_right = _dominant_share(session, left), _dominant_share(session, right)
    if of_left != of_right:
        return of_left < of_right
    left_share, right_share = allocatable_share(left), allocatable_share(right)
    left_at_most, right_at_most = less_equal(left_share, right_share), less_equal(right_share, left_share)
    if left_at_most != right_at_most:
        return left_at_most
    return left.created < right.created


def _asks(session: Session, job: JobState | None) -> Amounts:
    return _NOTHING if job is None else step_amounts(session, job, real=False)


def _is_over_used(queue: QueueState) -> bool:
    """Whether it holds more than its fair share of every resource."""
    return all(fair < held for fair, held in zip(queue.fair_share, queue.allocated, strict=True))


def _stays_in_quota(queue: QueueState, asks: Amounts) -> bool:
    held = queue.allocated
    return less_equal((held[0] + asks[0], held[1] + asks[1], held[2] + asks[2]), queue.deserved)


def _uses_without_share(queue: QueueState, asks: Amounts) -> bool:
    share = allocatable_share(queue)
    return any(share[slot] == 0 and queue.allocated[slot] + asks[slot] > 0 for slot in range(3))


def less_equal(left: Amounts, right: Amounts) -> bool:
    """Compare in every resource; -1 is unlimited, so more than any number."""
    for mine, other in zip(left, right, strict=True):
        if other == UNLIMITED:
            continue
        if mine == UNLIMITED or mine > other:
            return False
    return True


def allocatable_share(queue: QueueState) -> Amounts:
    """Return what the queue may hold of each resource: its quota or fair share, capped by its limit."""
    return (_allocatable(queue, 0), _allocatable(queue, 1), _allocatable(queue, 2))


def _allocatable(queue: QueueState, slot: int) -> float:
    deserved, limit = queue.deserved[slot], queue.limit[slot]
    if deserved == UNLIMITED:
        return limit
    share = max(deserved, queue.fair_share[slot])
    return share if limit == UNLIMITED else min(limit, share)


def _dominant_share(
    session: Session, queue: QueueState, asks: Amounts = _NOTHING, victims: Sequence[JobState] = ()
) -> float:
    """Return the largest part of what it may hold, over resources, with a gang added and victims gone."""
    dominant = 0.0
    for slot in range(3):
        held = queue.allocated[slot] + asks[slot]
        for victim in victims:
            held -= session.layout.amounts(victim.allocated)[slot]
        share = _allocatable(queue, slot)
        if share == UNLIMITED:
            share = session.total[slot]
        dominant = max(dominant, held * _NO_SHARE_PENALTY if share == 0 else held / share)
    return dominant
