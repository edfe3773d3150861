"""The pages that stand behind the numbers of a report, pinned to its moment where a page can be pinned.

Paths inside the project; what leaves it puts the base address before them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from django.urls import reverse

from gangdash.engine.verdict import ReasonCode
from gangdash.reasons import REGISTRY


def triage_at(cluster: str, at: datetime, **filters: str) -> str:
    """Return the list of what waited at a moment, filtered by its own fields."""
    return _query(reverse("dashboard:triage"), cluster=cluster, **filters, at=_iso(at))


def gang_at(cluster: str, namespace: str, name: str, uid: str, at: datetime) -> str:
    """Return a gang's page with what was said of it at a moment."""
    return _query(reverse("dashboard:gang", args=[cluster, namespace, name]), uid=uid, at=_iso(at))


def listed(page: str, cluster: str, **filters: str) -> str:
    """Return a list of one cluster as it is now: ``gangs``, ``queues``, ``nodes`` or ``topology``."""
    return _query(reverse(f"dashboard:{page}"), cluster=cluster, **filters)


def health(cluster: str) -> str:
    """Return the page with the readings of a cluster."""
    return reverse("dashboard:cluster", args=[cluster])


def reason(code: str) -> str:
    """Return the page of a code; empty for one that this version no longer knows."""
    return reverse("dashboard:reason", args=[REGISTRY[ReasonCode(code)].slug]) if code in set(ReasonCode) else ""


def _query(path: str, **values: str) -> str:
    return f"{path}?{urlencode(values)}"


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
