"""Times in free fields of observed objects, as the API writes them.

Metadata and conditions have their times as numbers already; these are the fields that no record knows.
"""

from __future__ import annotations

from datetime import datetime


def moment(text: object) -> float | None:
    """Read an RFC 3339 time as seconds since the epoch; None for anything else."""
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found.timestamp() if found is not None and found.tzinfo is not None else None
