"""What the engine is told about before this moment, and what it makes of it for the next one.

The history goes into the analysed snapshot and into the dump that is offered for download, so that the command line
says the same on that dump as the page does.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from apps.clusters.models import Cluster
from apps.workloads.models import Gang
from apps.workloads.selectors import evictions_by_gang
from gangdash.documents import ExplanationDocument
from gangdash.engine.verdict import ReasonCode, Verdict

_PLACEABLE = frozenset({ReasonCode.FITS_NOW, ReasonCode.WAITS_FOR_EVICTION})
"""Codes under which the scheduler has all it needs and only has to act."""


def history_of(*, cluster: Cluster, now: datetime) -> dict[str, dict[str, Any]]:
    """Return per gang uid what is known of the time before; gangs of which nothing is known are left out."""
    gangs = Gang.objects.filter(cluster=cluster, gone_at=None).order_by("uid")
    evictions = evictions_by_gang(cluster=cluster, now=now)
    found = gangs.only("uid", "verdict", "placeable_since", "last_ran_at", "cluster")
    known = ((gang.uid, _entry(gang, evictions.get(gang.uid, ()))) for gang in found)
    return {uid: entry for uid, entry in known if entry}


def _entry(gang: Gang, evictions: Iterable[float]) -> dict[str, Any]:
    entry = {
        "placeable_since": _text(gang.placeable_since),
        "last_ran": _text(gang.last_ran_at),
        "last_verdict": gang.verdict,
        "evictions": [_text(datetime.fromtimestamp(moment, UTC)) for moment in evictions],
    }
    return {name: value for name, value in entry.items() if value}


def _text(moment: datetime | None) -> str:
    return moment.isoformat().replace("+00:00", "Z") if moment else ""


def placeable_since(*, gang: Gang, document: ExplanationDocument, as_of: datetime) -> datetime | None:
    """Return since when the gang could have been placed without a break; None where it cannot be now, or nobody saw.

    A gang that is stuck when it is first seen became placeable before that, and only the objects tell when: to note
    the first sight as the beginning would make it wait anew.
    """
    if document.code in _PLACEABLE:
        return gang.placeable_since or as_of
    return gang.placeable_since if document.verdict is Verdict.STUCK else None
