"""Runs the checks on a reading and writes what changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from apps.checks.models import ClusterCheck
from apps.checks.rules import CHECKS, Check, Outcome, run
from apps.clusters.models import Cluster
from gangdash.engine.model.cluster import ClusterSnapshot

EVIDENCE_LONGEST = 1000
OBJECTS_KEPT = 20
_FACTS = ["severity", "state", "evidence", "objects_found", "since", "checked_at"]


def checks_record(*, cluster: Cluster, snapshot: ClusterSnapshot, as_of: datetime, **_more: Any) -> int:
    """Write the outcome of every check; return how many rows say something new. ``_more`` is the signal's own."""
    known = {row.check_id: row for row in ClusterCheck.objects.filter(cluster=cluster)}
    rows = [_row(cluster, known.get(check.id), check, outcome, as_of) for check, outcome in run(snapshot)]
    changed = [row for row in rows if _differs(row, known.get(row.check_id))]
    with transaction.atomic():
        ClusterCheck.objects.bulk_create(
            changed, update_conflicts=True, unique_fields=["cluster", "check_id"], update_fields=_FACTS
        )
        ClusterCheck.objects.filter(cluster=cluster).exclude(check_id__in=CHECKS).delete()
        ClusterCheck.objects.filter(cluster=cluster).update(checked_at=as_of)
    return len(changed)


def _row(
    cluster: Cluster, before: ClusterCheck | None, check: Check, outcome: Outcome, as_of: datetime
) -> ClusterCheck:
    is_same = before is not None and before.state == outcome.state.value
    return ClusterCheck(
        cluster=cluster,
        check_id=check.id,
        severity=check.severity.value,
        state=outcome.state.value,
        evidence=outcome.evidence[:EVIDENCE_LONGEST],
        objects_found=list(outcome.objects[:OBJECTS_KEPT]),
        since=before.since if before is not None and is_same else as_of,
        checked_at=as_of,
    )


def _differs(row: ClusterCheck, before: ClusterCheck | None) -> bool:
    if before is None:
        return True
    return any(
        getattr(row, name) != getattr(before, name) for name in ("severity", "state", "evidence", "objects_found")
    )
