"""The first page pinned to a moment in the past: what waited then, what was said of it, what was free.

Relies on the reasons and the samples of capacity that are kept; what is not kept of then is said and not guessed.
Links lead to gangs at that moment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from apps.accounts.scope import Scope
from apps.clusters.selectors import cluster_list
from apps.dashboard import filters, waiting_chart
from apps.dashboard.links import gang_url, with_moment
from apps.dashboard.shell import page, scope_for
from apps.diagnosis.selectors import gang_list_at, gang_then, waiting_series
from apps.inventory.selectors import CLUSTER_KEY, capacity_at
from apps.workloads.choices import GangState
from apps.workloads.veil import veil_for

ROWS_SHOWN = 500
BEFORE = 0.75
"""The share of the chart's range that lies before the pinned moment."""


@dataclass(frozen=True, slots=True)
class CapacityThen:
    """GPUs at a moment: of the clusters that have a sample of then; ``unknown`` names the others."""

    total: float
    free: float
    lost: float
    sampled_at: datetime | None
    unknown: tuple[str, ...]

    @property
    def used(self) -> float:
        return self.total - self.free - self.lost


def capacity_then(*, scope: Scope, cluster: str, at: datetime) -> CapacityThen:
    """Return what the visible clusters had then; one query a cluster."""
    names = [cluster] if cluster else list(cluster_list(scope=scope).order_by("name").values_list("name", flat=True))
    samples = {name: capacity_at(scope=scope, cluster=name, at=at) for name in names}
    known = [sample for sample in samples.values() if sample is not None]
    total, free, lost = (sum(sample.domains[CLUSTER_KEY][place] for sample in known) for place in range(3))
    return CapacityThen(
        total=total,
        free=free,
        lost=lost,
        sampled_at=min((sample.at for sample in known), default=None),
        unknown=tuple(name for name, sample in samples.items() if sample is None),
    )


def chart_then(*, scope: Scope, view: filters.ListView, at: datetime, gpus: float) -> dict[str, Any]:
    """Return the chart around a moment, which is marked."""
    span = timedelta(hours=view.hours)
    until = min(timezone.now(), at + (1 - BEFORE) * span)
    series = waiting_series(scope=scope, since=at - BEFORE * span, until=max(until, at), cluster=view.cluster)
    return waiting_chart.context(series, view, cluster_gpus=gpus, pinned=at)


def triage_then(request: HttpRequest, at: datetime) -> HttpResponse:
    """Draw the page as of a moment, longest known reason first."""
    scope, view = scope_for(request), filters.parse(request.GET)
    waiting = gang_list_at(scope=scope, at=at, view=replace(view.filter, state=(str(GangState.WAITS),)))
    found = [gang_then(gang, at=at) for gang in waiting.order_by(F("then_opened_at").asc(), "pk")]
    capacity = capacity_then(scope=scope, cluster=view.cluster, at=at)
    context = {
        "rows": [(gang, with_moment(gang_url(gang), at)) for gang in found[:ROWS_SHOWN]],
        "gangs": len(found),
        "left_out": max(len(found) - ROWS_SHOWN, 0),
        "gpus_waiting": sum(gang.gpus_waiting or 0.0 for gang in found),
        "capacity": capacity,
        "pinned_at": at,
        "live_url": request.path + view.query(),
        "veil": veil_for(scope=scope),
        "now": timezone.now(),
        **chart_then(scope=scope, view=view, at=at, gpus=capacity.total),
    }
    return page(request, "dashboard/triage_then.html", context, scope=scope, name="triage", cluster=view.cluster)
