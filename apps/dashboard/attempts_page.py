"""How far a gang came and how often it was tried: the steps of one attempt, for the ladder on its page.

Relies on the times that readings saw, each the first time a step was made. A step that no reading saw has no time;
whether it is not made yet or was missed is told by the steps after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from apps.workloads.models import Attempt

SHOWN = 8
"""Attempts that the page lists; REST has all of them."""
STEPS = (
    ("requested_at", "Requested"),
    ("created_at", "Gang created"),
    ("gates_removed_at", "Gates removed"),
    ("seen_at", "First read"),
    ("diagnosed_at", "First verdict"),
    ("decided_at", "Node chosen"),
    ("bound_at", "Minimum bound"),
    ("ready_at", "Minimum ready"),
)
GATES = "gates_removed_at"


@dataclass(frozen=True, slots=True)
class Step:
    """``at`` is None where the step was not seen; ``state`` is done, missed (a later one is done) or todo."""

    title: str
    at: datetime | None
    state: str
    before: datetime | None
    """When the step before it was seen; None where the step or the one before was not."""


def steps(attempt: Attempt, *, at: datetime | None = None) -> tuple[Step, ...]:
    """Return the steps of one attempt as far as they were made at a moment; without gates if it had none.

    Those that were seen come in the order of their times: the first reading may be earlier or later than others.
    """
    found = [(title, _time(attempt, name, at)) for name, title in STEPS if name != GATES or attempt.gated_at]
    last = max((place for place, (_, moment) in enumerate(found) if moment is not None), default=-1)
    seen = iter(sorted(((moment, title) for title, moment in found if moment is not None), key=itemgetter(0)))
    made: list[Step] = []
    before: datetime | None = None
    for place, (title, moment) in enumerate(found):
        if moment is None:
            made.append(Step(title, None, "missed" if place < last else "todo", None))
        else:
            time, name = next(seen)
            made.append(Step(name, time, "done", before))
            before = time
    return tuple(made)


def _time(attempt: Attempt, name: str, at: datetime | None) -> datetime | None:
    """Return the time of a step; ``diagnosed_at`` comes with the list and not with the row."""
    moment: datetime | None = getattr(attempt, name, None)
    return None if moment is not None and at is not None and moment > at else moment
