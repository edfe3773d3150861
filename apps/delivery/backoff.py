"""When to try again: longer after each failure up to an hour, or when the far side asks for it.

The jitter of a row's attempt is always the same, so that a test or a reader can tell what comes next.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

FIRST = timedelta(seconds=10)
LONGEST = timedelta(hours=1)
LONGEST_ASKED = timedelta(hours=6)
"""A longer Retry-After is cut to this: a wrong header must not silence a channel for days."""
JITTER = 0.2


def delay(attempts: int, *, seed: str) -> timedelta:
    """Return how long to wait after so many failed attempts: 10 s doubling up to an hour, less up to a fifth."""
    seconds = min(FIRST.total_seconds() * 2.0 ** min(attempts - 1, 20), LONGEST.total_seconds())
    digest = hashlib.sha256(f"{seed}/{attempts}".encode()).digest()
    return timedelta(seconds=seconds * (1 - JITTER * digest[0] / 255))


def asked_delay(retry_after: str, *, date: str, now: datetime) -> timedelta | None:
    """Return what a Retry-After header asks for, None where it says nothing usable.

    A date is taken relative to the answer's own Date header, so that neither side's clock has to be right.
    """
    text = retry_after.strip()
    if text.isdecimal() and len(text) < 10:
        asked = timedelta(seconds=int(text))
    else:
        until, since = _moment(text), _moment(date) or now
        if until is None or until <= since:
            return None
        asked = until - since
    return min(asked, LONGEST_ASKED)


def _moment(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
