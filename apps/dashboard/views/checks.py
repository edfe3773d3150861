"""The cluster checks: what an admin would look at by hand, what was found, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.checks.choices import CheckState
from apps.checks.selectors import check_rows
from apps.dashboard.shell import page
from apps.dashboard.views.inventory import picked

MARKS: Mapping[str, tuple[str, str]] = {
    CheckState.FAIL: ("bad", "x"),
    CheckState.UNKNOWN: ("none", "eye"),
    CheckState.OK: ("ok", "check"),
    CheckState.ABSENT: ("none", "dash"),
}
"""Colour family and icon of a state."""


@require_safe
def checks(request: HttpRequest) -> HttpResponse:
    """List every check of one cluster, what fails first."""
    place = picked(request)
    rows = check_rows(scope=place.scope, cluster=place.cluster) if place.cluster else []
    context = {
        "rows": [(item.row, item.check, *MARKS[CheckState(item.row.state)]) for item in rows],
        "counts": Counter(item.row.state for item in rows),
        "cluster": place.cluster,
        "sees_all": place.scope.sees_all,
    }
    return page(request, "dashboard/checks.html", context, scope=place.scope, name="checks", cluster=place.cluster)
