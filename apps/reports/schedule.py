"""When a schedule is due: days and a wall clock in one time zone, turned into instants.

Pure. A wall time that a zone skips counts as the first instant after the gap, one that it shows twice counts the
first time only, so that a day never has two reports or none. What was made already is the rows' business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from zoneinfo import ZoneInfo

DAY = timedelta(days=1)
MARGIN = 2 * DAY
"""A wall clock is at most a day away from UTC, and a zone that moves over the date line skips one more."""
STEP = timedelta(seconds=1)


class Every(StrEnum):
    DAY = "daily"
    WEEK = "weekly"


@dataclass(frozen=True, slots=True)
class Plan:
    """``weekday`` is 0 for Monday and counts for weekly plans only; ``zone`` is an IANA name."""

    every: Every
    weekday: int
    at: time
    zone: str


def due_moments(plan: Plan, *, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the instants (UTC) of a plan that are later than ``after`` and not later than ``until``, in order."""
    zone = ZoneInfo(plan.zone)
    last = after
    for day in _days(plan, (after - MARGIN).date(), (until + MARGIN).date()):
        moment = instant(datetime.combine(day, plan.at), zone)
        # Two wall times can be one instant where a zone leaves out a whole day.
        if last < moment <= until:
            yield moment
            last = moment


def next_due(plan: Plan, *, after: datetime) -> datetime:
    """Return the first instant of a plan that is later than a moment."""
    return next(due_moments(plan, after=after, until=after + 16 * DAY))


def instant(wall: datetime, zone: tzinfo) -> datetime:
    """Return when a zone's clocks show this time first, or first show a later one where they skip it."""
    early = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if early.astimezone(zone).replace(tzinfo=None) == wall:
        return early
    return _end_of_gap(wall, zone, before=wall.replace(tzinfo=zone, fold=1).astimezone(UTC), beyond=early)


def _end_of_gap(wall: datetime, zone: tzinfo, *, before: datetime, beyond: datetime) -> datetime:
    """Halve the span between an instant that is before the jump of a clock and one that is not, to the second."""
    while beyond - before > STEP:
        middle = before + ((beyond - before) / 2 // STEP) * STEP
        if middle.astimezone(zone).replace(tzinfo=None) >= wall:
            beyond = middle
        else:
            before = middle
    return beyond


def _days(plan: Plan, first: date, last: date) -> Iterator[date]:
    step = DAY if plan.every == Every.DAY else 7 * DAY
    day = first if plan.every == Every.DAY else first + timedelta(days=(plan.weekday - first.weekday()) % 7)
    while day <= last:
        yield day
        day += step
