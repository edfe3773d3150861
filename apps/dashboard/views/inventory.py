"""What the clusters offer: all gangs, nodes, the topology map, queues with their shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps.accounts.scope import Scope
from apps.clusters.selectors import cluster_list
from apps.dashboard import filters, queue_page, topology_page, trends, triage
from apps.dashboard.export import Column, csv_response, json_response
from apps.dashboard.shell import page, scope_for
from apps.inventory.models import Node, StateChange
from apps.inventory.selectors import (
    domain_list,
    gpu_totals,
    node_list,
    node_state_counts,
    queue_list,
    state_change_list,
    topology_list,
)
from apps.workloads.models import Gang
from apps.workloads.selectors import filter_choices, gang_list, waiting_totals
from apps.workloads.veil import veil_for

GANGS_PER_PAGE = 100
NODES_PER_PAGE = 200
CHANGES_SHOWN = 50
CHANGES_SPAN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Picked:
    """The one cluster that a page shows, empty where there is none at all."""

    scope: Scope
    cluster: str


def picked(request: HttpRequest) -> Picked:
    """Return the cluster of the address, else the first that is read."""
    scope = scope_for(request)
    names = list(cluster_list(scope=scope).order_by("-is_read", "name").values_list("name", flat=True))
    wanted = request.GET.get("cluster", "")
    return Picked(scope, wanted if wanted in names else next(iter(names), ""))


@require_safe
def gangs(request: HttpRequest) -> HttpResponse:
    """List every gang that exists, waiting or not, with the same filters as the triage page."""
    scope, view = scope_for(request), filters.parse(request.GET)
    rows = gang_list(scope=scope, view=view.filter).order_by("cluster__name", "namespace", "name", "pk")
    pages = Paginator(rows, GANGS_PER_PAGE)
    shown = pages.get_page(request.GET.get("page"))
    context = {
        "pages": shown,
        "numbers": {n: page_url(view, n) for n in (shown.number - 1, shown.number + 1) if 1 <= n <= pages.num_pages},
        "totals": waiting_totals(scope=scope, view=view.filter),
        "view": view,
        "chips": filters.chips(view),
        "menus": filters.menus(view, filter_choices(scope=scope)),
        "clear_url": view.unfiltered().query() or "?",
        "partial": triage.partial_words(scope),
        "veil": veil_for(scope=scope),
    }
    return page(request, "dashboard/gangs.html", context, scope=scope, name="gangs", cluster=view.cluster)


def page_url(view: filters.ListView, number: int) -> str:
    query = view.query()
    return f"{query}&page={number}" if query else f"?page={number}"


GANG_COLUMNS: Sequence[Column[Gang]] = (
    Column("cluster", lambda gang: gang.cluster.name),
    Column("namespace", lambda gang: gang.namespace),
    Column("name", lambda gang: gang.name),
    Column("kind", lambda gang: gang.kind),
    Column("queue", lambda gang: gang.queue),
    Column("verdict", lambda gang: gang.verdict),
    Column("code", lambda gang: gang.code),
    Column("sentence", lambda gang: gang.sentence),
    Column("pods", lambda gang: gang.pods_total),
    Column("pods_placed", lambda gang: gang.pods_placed),
    Column("gpus", lambda gang: gang.gpus),
    Column("diagnosed_as_of", lambda gang: gang.diagnosed_as_of),
)
NODE_COLUMNS: Sequence[Column[Node]] = (
    Column("cluster", lambda node: node.cluster.name),
    Column("name", lambda node: node.name),
    Column("state", lambda node: node.state),
    Column("state_reason", lambda node: node.state_reason),
    Column("product", lambda node: node.product),
    Column("gpus", lambda node: node.gpus),
    Column("gpus_used", lambda node: node.gpus_used),
    Column("gpus_free", lambda node: node.gpus_free),
    Column("gpus_lost", lambda node: node.gpus_lost),
    Column("pods", lambda node: node.pods),
)


@require_safe
def gangs_export(request: HttpRequest, form: str) -> HttpResponse:
    scope, view = scope_for(request), filters.parse(request.GET)
    rows = list(gang_list(scope=scope, view=view.filter))
    as_of = min((gang.cluster.read_as_of for gang in rows if gang.cluster.read_as_of), default=None)
    respond = csv_response if form == "csv" else json_response
    return respond("gangs", GANG_COLUMNS, rows, as_of=as_of, view=view.query().lstrip("?"))


@require_safe
def nodes(request: HttpRequest) -> HttpResponse:
    """List the nodes of one cluster with what is free on each."""
    place = picked(request)
    rows = node_list(scope=place.scope, cluster=place.cluster) if place.cluster else node_list(scope=place.scope)
    shown = Paginator(rows.order_by("name"), NODES_PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "pages": shown,
        "gpus": gpu_totals(scope=place.scope, cluster=place.cluster),
        "states": node_state_counts(scope=place.scope, cluster=place.cluster),
        "changes": state_changes(place),
        "cluster": place.cluster,
    }
    return page(request, "dashboard/nodes.html", context, scope=place.scope, name="nodes", cluster=place.cluster)


def state_changes(place: Picked) -> list[StateChange]:
    """Return what nodes and parts of the platform did of late, newest first, without their first sight."""
    since = timezone.now() - CHANGES_SPAN
    rows = state_change_list(scope=place.scope, cluster=place.cluster, since=since).exclude(was="")
    return list(rows[:CHANGES_SHOWN])


@require_safe
def nodes_export(request: HttpRequest, form: str) -> HttpResponse:
    place = picked(request)
    rows = list(node_list(scope=place.scope, cluster=place.cluster))
    as_of = rows[0].cluster.read_as_of if rows else None
    respond = csv_response if form == "csv" else json_response
    return respond("nodes", NODE_COLUMNS, rows, as_of=as_of, view=f"cluster={place.cluster}")


@require_safe
def topology(request: HttpRequest) -> HttpResponse:
    """Draw the map: domains within domains, nodes with their GPUs, and where a picked gang would fit."""
    place = picked(request)
    cluster = place.cluster
    found = list(topology_list(scope=place.scope, cluster=cluster)) if cluster else []
    named = request.GET.get("topology", "")
    shown = next((row for row in found if row.name == named), found[0] if found else None)
    rows = list(node_list(scope=place.scope, cluster=cluster)) if cluster else []
    domains = list(domain_list(scope=place.scope, cluster=cluster, topology=shown.name)) if shown else []
    context: dict[str, Any] = {
        "topologies": found,
        "topology": shown,
        "map": topology_page.build(shown, domains, rows),
        "gpus": gpu_totals(scope=place.scope, cluster=cluster),
        "cluster": cluster,
        "veil": veil_for(scope=place.scope),
        **trends.trend_context(request, place.scope, cluster, lambda rows, span: trends.free_trend(rows, shown, span)),
        **topology_page.picked_gang(place.scope, cluster, request.GET.get("gang", ""), domains, shown),
    }
    return page(request, "dashboard/topology.html", context, scope=place.scope, name="topology", cluster=cluster)


@require_safe
def queues(request: HttpRequest) -> HttpResponse:
    """Show what each queue is entitled to, holds and waits for, on one scale."""
    place = picked(request)
    rows = list(queue_list(scope=place.scope, cluster=place.cluster)) if place.cluster else []
    asked = queue_page.waiting_by_queue(scope=place.scope, cluster=place.cluster)
    table = queue_page.build(rows, asked)
    context = {
        "table": table,
        "headline": queue_page.headline(table),
        "cluster": place.cluster,
        "as_of": rows[0].cycle_as_of if rows else None,
        **trends.trend_context(request, place.scope, place.cluster, lambda s, span: trends.share_trend(s, rows, span)),
        "partial": triage.partial_words(place.scope),
    }
    return page(request, "dashboard/queues.html", context, scope=place.scope, name="queues", cluster=place.cluster)
