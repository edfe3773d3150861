"""A range as people type it: ``24h``, ``7d`` up to now, or ``FROM/TO`` with zones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from apps.errors import ApplicationError

LONGEST = timedelta(days=92)
SHORTEST = timedelta(minutes=1)
_SPAN = re.compile(r"([0-9]{1,4})([hd])")
_HINT = "write it like 24h, 7d or 2026-11-29T08:00:00Z/2026-11-30T08:00:00Z"


@dataclass(frozen=True, slots=True)
class Range:
    """From ``start`` up to but not including ``end``."""

    start: datetime
    end: datetime


def parse_range(text: str, *, now: datetime) -> Range:
    """Return the range that a text names; ``ApplicationError`` says what is wrong with it in one line."""
    words = text.strip()
    found = _SPAN.fullmatch(words)
    if found:
        hours = int(found[1]) * (24 if found[2] == "d" else 1)
        return checked(now - timedelta(hours=hours), now, now=now)
    start, slash, end = words.partition("/")
    if not slash:
        raise _refusal(f"{words!r} is no range; {_HINT}")
    return checked(_moment(start), _moment(end), now=now)


def checked(start: datetime, end: datetime, *, now: datetime) -> Range:
    """Return the range where a report can cover it."""
    if end - start < SHORTEST:
        raise _refusal("the range ends before it begins, or within a minute")
    if end - start > LONGEST:
        raise _refusal(f"the range is longer than {LONGEST.days} days")
    if end > now:
        raise _refusal("the range ends in the future")
    return Range(start.astimezone(UTC), end.astimezone(UTC))


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise _refusal(f"{text.strip()!r} is no moment; {_HINT}") from error
    if found.tzinfo is None:
        raise _refusal(f"{text.strip()!r} has no time zone; {_HINT}")
    return found


def _refusal(detail: str) -> ApplicationError:
    return ApplicationError("range_not_valid", f"Range: {detail}")
