"""How long may the search for victims go on? The scheduler's clocks, told by counting work instead of time.

An action, each gang and each generator have their seconds. The same snapshot must give the same answer on
every machine, so what a trial costs is estimated from its size as the scheduler would have spent it: the
figures were fitted to the session times recorded for clusters of 64 to 1,024 nodes, and hold within a factor
of three. Mirrors pkg/scheduler/actions/common/solvers/search_budget.go (KAI d5bc503a).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

ACTION_SECONDS = 300.0
JOB_SECONDS = 240.0
GENERATOR_SECONDS: Mapping[str, float] = {"NodeLocalGreedy": 30.0, "MultiNodeGang": 120.0}
_PER_TRIAL = 400e-6
_PER_WAITING_GANG = 12e-6
"""A trial puts all waiting gangs in order."""
_PER_POD_AND_NODE = 2.1e-6
"""A trial looks at every node it may use for every pod that it places."""
_PER_PROBE_AND_NODE = 10e-6


def trial_seconds(*, pods: int, nodes: int, waiting: int) -> float:
    return _PER_TRIAL + _PER_WAITING_GANG * waiting + _PER_POD_AND_NODE * pods * nodes


def probe_seconds(nodes: int) -> float:
    return _PER_PROBE_AND_NODE * nodes


class Clock:
    """Seconds left, also of the clock it is part of."""

    def __init__(self, seconds: float, whole: Clock | None = None) -> None:
        self._left = seconds
        self._whole = whole

    @property
    def left(self) -> float:
        return self._left

    def is_over(self) -> bool:
        return self._left <= 0

    def spend(self, seconds: float) -> None:
        self._left -= seconds
        if self._whole is not None:
            self._whole.spend(seconds)


class ActionBudget:
    """The clock of one action, from which gangs get theirs; a limit of 0 is no limit."""

    def __init__(self, limits: Mapping[str, float], action: str) -> None:
        self._limits = limits
        default = limits.get("maxActionSearchDuration.default", ACTION_SECONDS)
        self._clock = Clock(_or_endless(limits.get(f"maxActionSearchDuration.{action}", default)))

    def for_job(self) -> Clock:
        limit = _or_endless(self._limits.get("maxJobSearchDuration", JOB_SECONDS))
        least = self._limits.get("minJobSearchDuration", 0.0)
        return Clock(max(min(limit, self._clock.left), least), self._clock)

    def for_generator(self, job: Clock, name: str) -> Clock:
        default = self._limits.get("maxGeneratorSearchDuration.default", GENERATOR_SECONDS[name])
        limit = _or_endless(self._limits.get(f"maxGeneratorSearchDuration.{name}", default))
        return Clock(min(limit, job.left), job)


def _or_endless(limit: float) -> float:
    return limit or math.inf
