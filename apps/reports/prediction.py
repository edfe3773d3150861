"""When could a waiting gang start, by how long its holders' like have run before? Says so, or that there is no saying.

Pure. Each holder ends at a moment that its history gives a distribution for, given how old it is already. The chance
that enough GPUs are free by a moment is summed exactly over the holders; p50 and p90 are the first moments at which
it reaches one half and nine tenths. Holders without history never end here, so an estimate errs towards late. What
else may keep the gang out then (order, quotas, other waiting gangs) is not looked at: the past error shows how much
that matters.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

HALF, MOST = 0.5, 0.9
SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class HolderRun:
    """One holder: the GPUs it would free, its age, and how long its like have run; no runs is no history."""

    gpus: float
    age: float
    runs: tuple[float, ...]

    @property
    def left(self) -> tuple[float, ...]:
        """Return how much longer those of its like ran that became as old as it is."""
        return tuple(sorted(run - self.age for run in self.runs if run > self.age))


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds until enough GPUs are free. ``p90`` is None where even nine tenths are not reached by what is known."""

    p50: float
    p90: float | None


@dataclass(frozen=True, slots=True)
class NoEstimate:
    """Nothing can be said: so many of the holders have no history, and the others do not hold enough."""

    without: int
    holders: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """How estimates of the past turned out. Shares are of those estimated; the error is the median one, in seconds."""

    cases: int
    estimated: int
    within_p50: float | None = None
    within_p90: float | None = None
    median_error: float | None = None


def estimate(short: float, holders: Sequence[HolderRun]) -> Estimate | NoEstimate:
    """Return when enough of the holders have ended to free ``short`` GPUs."""
    known = [(holder.gpus, left) for holder in holders if (left := holder.left)]
    nothing = NoEstimate(without=len(holders) - len(known), holders=len(holders))
    if not holders or sum(gpus for gpus, _ in known) < short - SLACK:
        return nothing
    moments = sorted({moment for _, left in known for moment in left})
    # The chance only grows, so the first moment is found by halving.
    p50, p90 = (_first(moments, known, short, chance) for chance in (HALF, MOST))
    return nothing if p50 is None else Estimate(p50, p90)


def _first(
    moments: Sequence[float], known: Sequence[tuple[float, tuple[float, ...]]], short: float, chance: float
) -> float | None:
    low, high = 0, len(moments)
    while low < high:
        middle = (low + high) // 2
        if chance_free(moments[middle], known, short) >= chance - SLACK:
            high = middle
        else:
            low = middle + 1
    return moments[low] if low < len(moments) else None


def chance_free(moment: float, known: Sequence[tuple[float, tuple[float, ...]]], short: float) -> float:
    """Return the chance that holders that have ended by a moment free enough, each ending on its own."""
    freed = {0.0: 1.0}
    for gpus, left in known:
        ended = sum(value <= moment for value in left) / len(left)
        following: dict[float, float] = {}
        for amount, chance in freed.items():
            # More than enough is not told apart, so that few amounts are carried along.
            more = min(amount + gpus, short)
            following[amount] = following.get(amount, 0.0) + chance * (1 - ended)
            following[more] = following.get(more, 0.0) + chance * ended
        freed = following
    return sum(chance for amount, chance in freed.items() if amount >= short - SLACK)


def calibrate(pairs: Sequence[tuple[Estimate | NoEstimate, float]]) -> Calibration:
    """Return how past estimates compare with the seconds that it really took."""
    told = [(guess, took) for guess, took in pairs if isinstance(guess, Estimate)]
    if not told:
        return Calibration(len(pairs), 0)
    return Calibration(
        cases=len(pairs),
        estimated=len(told),
        within_p50=sum(took <= guess.p50 for guess, took in told) / len(told),
        within_p90=sum(guess.p90 is None or took <= guess.p90 for guess, took in told) / len(told),
        median_error=statistics.median(abs(took - guess.p50) for guess, took in told),
    )
