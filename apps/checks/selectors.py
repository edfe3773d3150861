"""Checks as a reader may see them.

They speak of the whole cluster, so only who sees all of it sees them; for the others there are none.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet

from apps.accounts.scope import Scope
from apps.checks.choices import CheckState
from apps.checks.models import ClusterCheck
from apps.checks.rules import CHECKS, Check

_STATE_ORDER = (CheckState.FAIL, CheckState.UNKNOWN, CheckState.OK, CheckState.ABSENT)
_SEVERITY_ORDER = ("critical", "warning", "info")


@dataclass(frozen=True, slots=True)
class Checked:
    """A row with its entry in the list."""

    row: ClusterCheck
    check: Check


def check_list(*, scope: Scope, cluster: str = "", state: str = "") -> QuerySet[ClusterCheck]:
    """Return the rows that the reader may see, of one cluster or of all that are still read."""
    rows = ClusterCheck.objects.select_related("cluster").filter(cluster__removed_at=None)
    if not scope.sees_all:
        return rows.none()
    if cluster:
        rows = rows.filter(cluster__name=cluster)
    return rows.filter(state=state) if state else rows


def check_rows(*, scope: Scope, cluster: str = "", state: str = "") -> list[Checked]:
    """Return the rows with titles and remedies: what fails first, the grave before the rest, then by number."""
    found = [Checked(row, CHECKS[row.check_id]) for row in check_list(scope=scope, cluster=cluster, state=state)
             if row.check_id in CHECKS]  # fmt: skip
    return sorted(found, key=_order)


def _order(item: Checked) -> tuple[int, int, str, bool, int]:
    return (
        _STATE_ORDER.index(CheckState(item.row.state)),
        _SEVERITY_ORDER.index(item.row.severity),
        item.row.cluster.name,
        item.check.id[0] == "C",
        int(item.check.id[1:]),
    )
