"""How many GPUs can victims lose at most before a rule of shares objects? A bound, not a rule of the scheduler.

Follows from ``reclaimable``: a queue gives until it is down to its share, the last gang taken bringing it
below at most; and where the queue that asks would be above its share, the others must stay above its
saturation. Levels are gone through from the leaf up, since what is lost beside the leaf makes room above.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gangdash.engine.rules.queue_order import allocatable_share, less_equal
from gangdash.engine.rules.scenario import Demand
from gangdash.engine.session import GPU, UNLIMITED, Amounts, QueueState, TaskState
from gangdash.engine.statement.queue import QueueMemo

_GPUS = 2
"""Index of GPUs in amounts."""


def plus(left: Amounts, right: Amounts) -> Amounts:
    return (left[0] + right[0], left[1] + right[1], left[2] + right[2])


def minus(left: Amounts, right: Amounts) -> Amounts:
    return (left[0] - right[0], left[1] - right[1], left[2] - right[2])


def levels(own: QueueState, other: QueueState) -> tuple[QueueState, QueueState]:
    """Return the pair of queues that compete: where the two paths from the top part, else the last common level."""
    pair = (own.ancestors[-1], other.ancestors[-1])
    for mine, theirs in zip(reversed(own.ancestors), reversed(other.ancestors), strict=False):
        pair = (mine, theirs)
        if mine.name != theirs.name:
            break
    return pair


def saturation(held: float, fair_share: float) -> float:
    """Return the part of its fair share that a queue holds; 0 where the share is unlimited."""
    if fair_share == 0:
        return math.inf if held > 0 else 0.0
    return 0.0 if fair_share == UNLIMITED else held / fair_share


class _Level(NamedTuple):
    """Where a victim's queue competes: the depth on the path of the queue that asks, counted from its leaf."""

    depth: int
    theirs: QueueState
    excess: float
    """GPUs held beyond what the queue may keep; infinite where another resource lets it lose everything."""


class ReclaimLimit:
    """The bound for one gang and its demand, over any set of victims."""

    def __init__(
        self,
        queues: Mapping[str, QueueState],
        before: Mapping[str, QueueMemo],
        multiplier: float,
        own: QueueState,
        demand: Demand,
    ) -> None:
        self._queues = queues
        self._before = before
        self._multiplier = multiplier
        self._own = own
        self._demand = demand.amounts
        self._levels: dict[str, _Level] = {}

    def __call__(self, some: Sequence[TaskState], victims: Sequence[TaskState]) -> float:
        """Return the most GPUs that ``some`` may lose: the others may make room for it at lower levels."""
        counted = self._asked_by_depth(some)
        below = counted if len(some) == len(victims) else self._asked_by_depth(victims)
        total = lost_below = 0.0
        for depth in sorted(below):
            ratio = self._saturation_at(depth, lost_below)
            total += sum(self._allowed(level, gangs, ratio) for level, gangs in counted.get(depth, ()))
            lost_below += sum(self._allowed(level, gangs, ratio) for level, gangs in below[depth])
        return total

    def _asked_by_depth(self, victims: Sequence[TaskState]) -> dict[int, list[tuple[_Level, list[float]]]]:
        """Return the GPUs of each victim gang, by the queue that would lose them."""
        gangs: dict[str, tuple[str, float]] = {}
        for task in victims:
            if task.job is not None:
                queue, gpus = gangs.get(task.job.key, (task.job.queue, 0.0))
                gangs[task.job.key] = (queue, gpus + task.accepted[GPU])
        found: dict[str, tuple[_Level, list[float]]] = {}
        for queue, gpus in gangs.values():
            level = self._level(queue)
            found.setdefault(level.theirs.name, (level, []))[1].append(gpus)
        at_depth: dict[int, list[tuple[_Level, list[float]]]] = {}
        for level, amounts in found.values():
            at_depth.setdefault(level.depth, []).append((level, amounts))
        return at_depth

    def _level(self, name: str) -> _Level:
        level = self._levels.get(name)
        if level is None:
            mine, theirs = levels(self._own, self._queues[name])
            depth = next(i for i, queue in enumerate(self._own.ancestors) if queue.name == mine.name)
            level = self._levels[name] = _Level(depth, theirs, self._excess(mine, theirs))
        return level

    def _excess(self, mine: QueueState, theirs: QueueState) -> float:
        held = self._before[theirs.name].allocated
        keeps = [allocatable_share(theirs)]
        if less_equal(plus(self._before[mine.name].allocated, self._demand), mine.deserved):
            keeps.append(theirs.deserved)
        if any(not _is_within(held[i], keep[i]) for keep in keeps for i in (0, 1)):
            return math.inf
        return max(0.0, *(0.0 if keep[_GPUS] == UNLIMITED else held[_GPUS] - keep[_GPUS] for keep in keeps))

    def _saturation_at(self, depth: int, lost_below: float) -> float:
        """Return the least saturation that the asking side can come to have at a level."""
        mine = self._own.ancestors[depth]
        held = self._before[mine.name].allocated[_GPUS] - lost_below + self._demand[_GPUS]
        return saturation(held, mine.fair_share[_GPUS])

    def _allowed(self, level: _Level, gangs: Sequence[float], ratio: float) -> float:
        if not level.excess:
            return 0.0
        allowed = min(sum(gangs), level.excess + max(gangs))
        share = level.theirs.fair_share[_GPUS]
        if ratio > 1 and share > 0:
            held = self._before[level.theirs.name].allocated[_GPUS]
            allowed = min(allowed, max(0.0, held - ratio * self._multiplier * share))
        return allowed


def _is_within(held: float, share: float) -> bool:
    return share == UNLIMITED or held <= share
