"""Times in and out of documents: RFC 3339 in UTC on the outside, epoch seconds inside."""

from __future__ import annotations

from datetime import UTC, datetime


def stamp(seconds: float | None) -> str | None:
    """Return ``2026-11-30T08:56:01Z``; a fraction of a second is kept only where there is one."""
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="microseconds" if moment.microsecond else "seconds").replace("+00:00", "Z")


def parse_stamp(text: str) -> float:
    """Read an RFC 3339 time with a zone; raise ValueError for anything else."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; write it like 2026-11-30T08:56:01Z")
    return moment.timestamp()
