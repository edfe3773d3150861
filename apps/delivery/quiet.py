"""When a channel wants to be left alone: a daily window in its own time zone, right over midnight and clock changes.

Pure; holding a message back is the sender's doing and changes nothing in its row.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """``days`` are those on which the window begins, Monday is 0; an end that is not later lies on the next day."""

    zone: str
    days: Collection[int]
    start: time
    end: time


def quiet_until(quiet: QuietHours | None, now: datetime) -> datetime | None:
    """Return when the present quiet hours end, None where it is not quiet."""
    if quiet is None:
        return None
    today = now.astimezone(ZoneInfo(quiet.zone)).date()
    ends = [end for day in (today - DAY, today) for end in _window(quiet, day, now)]
    return max(ends, default=None)


def _window(quiet: QuietHours, day: date, now: datetime) -> list[datetime]:
    """Return the end of the window that begins on a day, if the moment lies in it."""
    if day.weekday() not in quiet.days:
        return []
    zone = ZoneInfo(quiet.zone)
    start = datetime.combine(day, quiet.start, zone).astimezone(UTC)
    last = day if quiet.end > quiet.start else day + DAY
    end = datetime.combine(last, quiet.end, zone).astimezone(UTC)
    return [end] if start <= now < end else []
