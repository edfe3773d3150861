"""Which of two sibling queues is served first, given the next gang (or the victims so far) of each.

Mirrors pkg/scheduler/plugins/proportion/queue_order/queue_order.go (KAI d5bc503a). Queues that tie to
the end are decided by creation time, and where that is equal too the answer is "the right one" from
both sides: the scheduler defines no order there, and neither does this rule. Written out per resource
where a loop would be shorter, because a cycle at scale compares queues a million times.
"""

from __future__ import annotations

import math
from typing import Any

from gangdash.engine.session import UNLIMITED, Amounts, QueueState, Session
from gangdash.engine.statement.vectors import NO_AMOUNTS

_NO_SHARE_PENALTY = 1000
Rank = tuple[Any, ...]


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


def rank_of(session: Session, queue: QueueState, asks: Amounts, lost: Amounts = NO_AMOUNTS) -> Rank:
    """Return what decides between sibling queues, most important first: the smaller rank is served first.

    ``asks`` is what the queue's next gang asks, ``lost`` what the gangs hold that it would lose.
    """
    if not session.charges_queues:
        return (queue.created, queue.name)
    standing = standings_of(session)[queue.name]
    used = queue.allocated
    held = (used[0] + asks[0], used[1] + asks[1], used[2] + asks[2])
    without_share = standing.without_share
    return (
        _is_over_used(queue),
        _exceeds(held, standing.quota),
        -queue.priority,
        any(held[slot] > 0 for slot in without_share),
        standing.dominant((held[0] - lost[0], held[1] - lost[1], held[2] - lost[2])),
        standing.dominant(used),
    )


def comes_first(session: Session, mine: QueueState, rank: Rank, other: QueueState, other_rank: Rank) -> bool:
    """Whether a queue with its rank is served before a sibling with its own."""
    if rank != other_rank:
        return rank < other_rank
    standings = standings_of(session)
    share, other_share = standings[mine.name].share, standings[other.name].share
    at_most, other_at_most = less_equal(share, other_share), less_equal(other_share, share)
    if at_most != other_at_most:
        return at_most
    return mine.created < other.created


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
