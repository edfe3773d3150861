"""Workloads of Dynamo and Grove: where each stands, and one of them layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from apps.chains.models import TopObject
from apps.chains.moments import top_then
from apps.chains.selectors import gangs_of_top, moment_list, top_get, top_get_at, top_list, top_list_at
from apps.dashboard import numbers
from apps.dashboard.links import gang_url, in_cluster, with_moment
from apps.dashboard.shell import page, scope_for
from apps.dashboard.views.inventory import Picked, picked
from apps.workloads.models import Gang
from apps.workloads.veil import Veil, veil_for
from gangdash.engine.chain.stages import STAGES, Stage

PER_PAGE = 100
MOMENTS_SHOWN = 50


@require_safe
def deployments(request: HttpRequest) -> HttpResponse:
    """List the workloads of one cluster, those that stand at a stage first; now or at a moment."""
    place, at = picked(request), numbers.parse_time(request.GET.get("at"))
    rows = tops_of(place, at) if place.cluster else []
    rows.sort(key=lambda row: (not row.is_overdue, not row.stage, row.namespace, row.name))
    live_url = in_cluster("deployments", place.cluster)
    context = {
        "pages": Paginator(rows, PER_PAGE).get_page(request.GET.get("page")),
        "standing": sum(bool(row.stage) for row in rows),
        "overdue": sum(row.is_overdue for row in rows),
        "titles": {stage.id: stage.title for stage in STAGES.values()},
        "cluster": place.cluster,
        "veil": veil_for(scope=place.scope),
        "pinned_at": at,
        "live_url": live_url,
        "here": with_moment(live_url, at),
        "moment_query": f"?{urlencode({'at': numbers.iso(at)})}" if at else "",
    }
    return page(
        request, "dashboard/deployments.html", context, scope=place.scope, name="deployments", cluster=place.cluster
    )


def tops_of(place: Picked, at: datetime | None) -> list[TopObject]:
    """Return the workloads of the picked cluster, now or as they stood."""
    if at is None:
        return list(top_list(scope=place.scope, cluster=place.cluster))
    return [top_then(moment) for moment in top_list_at(scope=place.scope, at=at, cluster=place.cluster)]


@require_safe
def deployment(request: HttpRequest, cluster: str, kind: str, namespace: str, name: str) -> HttpResponse:
    """Show one workload: its stage, each component from the top object to the pods, its gangs, how it stood before."""
    scope, at = scope_for(request), numbers.parse_time(request.GET.get("at"))
    wanted = {"cluster": cluster, "kind": kind, "namespace": namespace, "name": name}
    try:
        top = top_get(scope=scope, **wanted) if at is None else top_get_at(scope=scope, at=at, **wanted)
    except TopObject.DoesNotExist as error:
        then = " at that moment, or it is not kept" if at else ""
        raise Http404(f"No {kind} {namespace}/{name} is visible to you{then}") from error
    gangs, veil = gangs_of_top(top=top, at=at), veil_for(scope=scope)
    live_url = reverse("dashboard:deployment", args=[cluster, kind, namespace, name])
    context = {
        "top": top,
        "stage": STAGES.get(top.stage),
        "problem": veil.text(top.problem, cluster=cluster),
        "gangs": _gang_rows(top, gangs, at),
        "own": _linked(gangs.get(f"{top.kind}/{top.name}"), at),
        "remarks": [(STAGES.get(remark["stage"]), remark) for remark in veil.value(top.remarks, cluster=cluster)],
        "moments": _moment_rows(top, live_url, veil),
        "veil": veil,
        "cluster": cluster,
        "pinned_at": at,
        "live_url": live_url,
    }
    return page(request, "dashboard/deployment.html", context, scope=scope, name="deployments", cluster=cluster)


@dataclass(frozen=True, slots=True)
class MomentRow:
    """One stretch of time in which a workload stood as it did."""

    since: datetime
    until: datetime | None
    url: str
    stage: Stage | None
    problem: str
    is_overdue: bool


def _moment_rows(top: TopObject, url: str, veil: Veil) -> list[MomentRow]:
    return [
        MomentRow(
            since=row.since,
            until=row.until,
            url=f"{url}?{urlencode({'at': numbers.iso(row.since)})}",
            stage=STAGES.get(row.facts["stage"]),
            problem=veil.text(row.facts["problem"], cluster=top.cluster.name),
            is_overdue=row.facts["is_overdue"],
        )
        for row in moment_list(top=top)[:MOMENTS_SHOWN]
    ]


def _linked(gang: Gang | None, at: datetime | None) -> tuple[Gang, str] | None:
    return None if gang is None else (gang, with_moment(gang_url(gang), at))


def _gang_rows(top: TopObject, gangs: dict[str, Gang], at: datetime | None) -> list[dict[str, Any]]:
    """Return each PodGang with the gangs made of it, their addresses, and the title of its stage."""
    return [
        {
            "podgang": entry["podgang"],
            "bases": entry["bases"],
            "stage": STAGES.get(entry["stage"]),
            "problem": entry["problem"],
            "gangs": [_linked(gangs[name], at) for name in entry["podgroups"] if name in gangs],
        }
        for entry in top.gangs
    ]
