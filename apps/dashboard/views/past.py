"""The first page pinned to a moment in the past: what waited then, and what was said of it.

Relies on the reasons that are kept; capacity and charts of then are not redrawn. Links lead to gangs at that moment.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from apps.dashboard import filters
from apps.dashboard.links import gang_url
from apps.dashboard.shell import page, scope_for
from apps.dashboard.views.gang import with_moment
from apps.diagnosis.selectors import gang_list_at, gang_then
from apps.workloads.choices import GangState
from apps.workloads.veil import veil_for

ROWS_SHOWN = 500


def triage_then(request: HttpRequest, at: datetime) -> HttpResponse:
    """Draw the page as of a moment, longest known reason first."""
    scope, view = scope_for(request), filters.parse(request.GET)
    waiting = gang_list_at(scope=scope, at=at, view=replace(view.filter, state=(str(GangState.WAITS),)))
    found = [gang_then(gang, at=at) for gang in waiting.order_by(F("then_opened_at").asc(), "pk")]
    context = {
        "rows": [(gang, with_moment(gang_url(gang), at)) for gang in found[:ROWS_SHOWN]],
        "gangs": len(found),
        "left_out": max(len(found) - ROWS_SHOWN, 0),
        "gpus": sum(gang.gpus_waiting or 0.0 for gang in found),
        "pinned_at": at,
        "live_url": request.path + view.query(),
        "view": view,
        "veil": veil_for(scope=scope),
        "now": timezone.now(),
    }
    return page(request, "dashboard/triage_then.html", context, scope=scope, name="triage", cluster=view.cluster)
