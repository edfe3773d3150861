"""Which cluster and which span a report is of, and the equal steps that its charts are drawn in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

STEPS = (timedelta(hours=1), timedelta(hours=6), timedelta(days=1))
STEPS_MAX = 200
"""More columns than this are not seen apart in a printed chart."""


@dataclass(frozen=True, slots=True)
class Period:
    """``[start, end)`` of one cluster. ``zone`` is the IANA name that moments are written in.

    ``known_from`` is since when the cluster is read and its history kept; None is since before anything asked for.
    """

    cluster: str
    cluster_id: int
    start: datetime
    end: datetime
    now: datetime
    zone: str = "UTC"
    known_from: datetime | None = None

    @property
    def length(self) -> timedelta:
        return self.end - self.start

    @property
    def before(self) -> datetime:
        """Return the start of the span of the same length before this one."""
        return self.start - self.length

    @property
    def knows_before(self) -> bool:
        """Tell whether the span before this one is kept whole."""
        return self.knows(self.before)

    def knows(self, moment: datetime) -> bool:
        """Tell whether history reaches back to a moment."""
        return self.known_from is None or self.known_from <= moment

    @property
    def step(self) -> timedelta:
        """Return the width of one column of a chart."""
        return next((step for step in STEPS if self.length / step <= STEPS_MAX), STEPS[-1])

    @property
    def steps(self) -> int:
        return max(1, math.ceil(self.length / self.step))

    @property
    def step_starts(self) -> tuple[datetime, ...]:
        return tuple(self.start + number * self.step for number in range(self.steps))

    def step_seconds(self, number: int) -> float:
        """Return how long one step is; the last one may be cut short by the end."""
        opened = self.start + number * self.step
        return (min(opened + self.step, self.end) - opened).total_seconds()
