"""Workloads of Dynamo and Grove: where each stands, and one of them layer by layer."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from apps.chains.models import TopObject
from apps.chains.selectors import gangs_of_top, top_get, top_list
from apps.dashboard.shell import page, scope_for
from apps.dashboard.views.inventory import picked
from apps.workloads.models import Gang
from apps.workloads.veil import veil_for
from gangdash.engine.chain.stages import STAGES

PER_PAGE = 100


@require_safe
def deployments(request: HttpRequest) -> HttpResponse:
    """List the workloads of one cluster, those that stand at a stage first."""
    place = picked(request)
    rows = list(top_list(scope=place.scope, cluster=place.cluster)) if place.cluster else []
    rows.sort(key=lambda row: (not row.is_overdue, not row.stage, row.namespace, row.name))
    context = {
        "pages": Paginator(rows, PER_PAGE).get_page(request.GET.get("page")),
        "standing": sum(bool(row.stage) for row in rows),
        "overdue": sum(row.is_overdue for row in rows),
        "titles": {stage.id: stage.title for stage in STAGES.values()},
        "cluster": place.cluster,
        "veil": veil_for(scope=place.scope),
    }
    return page(
        request, "dashboard/deployments.html", context, scope=place.scope, name="deployments", cluster=place.cluster
    )


@require_safe
def deployment(request: HttpRequest, cluster: str, kind: str, namespace: str, name: str) -> HttpResponse:
    """Show one workload: its stage, each component from the top object to the pods, its gangs."""
    scope = scope_for(request)
    try:
        top = top_get(scope=scope, cluster=cluster, kind=kind, namespace=namespace, name=name)
    except TopObject.DoesNotExist as error:
        raise Http404(f"No {kind} {namespace}/{name} is visible to you") from error
    gangs, veil = gangs_of_top(top=top), veil_for(scope=scope)
    context = {
        "top": top,
        "stage": STAGES.get(top.stage),
        "problem": veil.text(top.problem, cluster=cluster),
        "gangs": _gang_rows(top, gangs),
        "own": gangs.get(f"{top.kind}/{top.name}"),
        "remarks": [(STAGES.get(remark["stage"]), remark) for remark in veil.value(top.remarks, cluster=cluster)],
        "veil": veil,
        "cluster": cluster,
    }
    return page(request, "dashboard/deployment.html", context, scope=scope, name="deployments", cluster=cluster)


def _gang_rows(top: TopObject, gangs: dict[str, Gang]) -> list[dict[str, Any]]:
    """Return each PodGang with the gangs made of it and the title of its stage."""
    return [
        {
            "podgang": entry["podgang"],
            "bases": entry["bases"],
            "stage": STAGES.get(entry["stage"]),
            "problem": entry["problem"],
            "gangs": [gangs[name] for name in entry["podgroups"] if name in gangs],
        }
        for entry in top.gangs
    ]
