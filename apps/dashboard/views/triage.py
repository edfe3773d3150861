"""The first page: what waits, why, since when, and who can act; its fragments and its exports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps.accounts.scope import Scope
from apps.clusters.selectors import ClusterFreshness, freshness_list
from apps.dashboard import filters, marks, numbers, triage, waiting_chart
from apps.dashboard.export import Column, csv_response, json_response
from apps.dashboard.links import absolute, gang_url
from apps.dashboard.selectors import largest_cause
from apps.dashboard.shell import etag_of, fragment, page, scope_for, strip_etag
from apps.dashboard.views.past import triage_then
from apps.diagnosis.selectors import (
    WaitingSeries,
    change_list,
    explanation_current_list,
    waiting_series,
)
from apps.inventory.selectors import GpuTotals, gpu_totals
from apps.workloads.choices import GangState
from apps.workloads.selectors import cause_groups, filter_choices, loop_list, waiting_totals, who_tiles
from apps.workloads.veil import Veil, veil_for

CHANGES_SHOWN = 8
LOOPS_SHOWN = 4
CHANGES_SPAN = timedelta(hours=1)
CHART_LEAST = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Ask:
    """One request to the triage page: who asks for which view, and how old the answer may be."""

    scope: Scope
    view: filters.ListView
    fresh: tuple[ClusterFreshness, ...]
    now: datetime
    veil: Veil

    @property
    def etag(self) -> str:
        """Return a tag that changes when a reading or an analysis could have changed the page."""
        mine = "all" if self.scope.sees_all else sorted(self.scope.namespaces)
        return etag_of(strip_etag(list(self.fresh)), self.view.query(), mine)


def ask_of(request: HttpRequest) -> Ask:
    scope, view = scope_for(request), filters.parse(request.GET)
    fresh = freshness_list(scope=scope, cluster=view.cluster)
    return Ask(scope, view, tuple(fresh), timezone.now(), veil_for(scope=scope))


def summary_context(ask: Ask) -> dict[str, Any]:
    """Return headline, capacity and tiles: they tell of the whole place, whatever the list's filters hide."""
    place = ask.view.cleared().filter
    gpus = gpu_totals(scope=ask.scope, cluster=ask.view.cluster)
    waiting = waiting_totals(scope=ask.scope, view=place)
    largest = largest_cause(scope=ask.scope, view=place)
    urls = {
        who: (ask.view.without("who", who) if who in ask.view.filter.who else ask.view.with_value("who", who)).query()
        or "?"
        for who in marks.WHO
    }
    found_tiles = who_tiles(scope=ask.scope, view=place)
    return {
        "headline": triage.headline(waiting, gpus, largest),
        "waiting": waiting,
        "gpus": gpus,
        "lost_words": triage.lost_words(gpus),
        "tiles": triage.tiles(found_tiles, urls, ask.view.filter.who, veil=ask.veil),
        "partial": triage.partial_words(ask.scope),
        "view": ask.view,
        "etag_summary": ask.etag,
    }


def filled(ask: Ask, found: Sequence[triage.Group]) -> list[triage.Group]:
    """Return the groups with what the documents of their rows say, as the reader may see it; one query."""
    gangs = [row.gang for group in found for row in group.rows]
    clusters = {gang.pk: gang.cluster.name for gang in gangs}
    records = explanation_current_list(gangs=gangs)
    documents = {key: ask.veil.value(row.data(), cluster=clusters[key]) for key, row in records.items()}
    return triage.filled(found, documents)


def list_groups(ask: Ask) -> list[triage.Group]:
    """Return every waiting gang of the view, grouped and sorted, without what only documents say."""
    causes = [
        replace(cause, subject=ask.veil.text(cause.subject, cluster=cause.gangs[0].cluster.name))
        for cause in cause_groups(scope=ask.scope, view=ask.view.filter)
    ]
    return triage.groups(causes, ask.view, now=ask.now, veil=ask.veil)


def list_context(request: HttpRequest, ask: Ask, found: Sequence[triage.Group]) -> dict[str, Any]:
    kept, left_out = triage.drawn(found)
    groups = filled(ask, kept)
    signatures = [row.signature for group in groups for row in group.rows]
    view = ask.view
    return {
        "groups": groups,
        "left_out": left_out,
        "row_count": len(signatures) + left_out,
        "view": view,
        "chips": filters.chips(view),
        "sort_word": filters.SORTS[view.sort],
        "sorts": {name: replace(view, sort=name).query() or "?" for name in filters.SORTS},
        "group_url": replace(view, is_grouped=not view.is_grouped).query() or "?",
        "clear_url": view.cleared().query() or "?",
        "has_cluster": bool(ask.fresh),
        "is_first_read": bool(ask.fresh) and all(row.cluster.diagnosed_as_of is None for row in ask.fresh),
        "fresh": ask.fresh,
        "curl": curl(request, view),
        "etag_list": etag_of(view.query(), signatures, left_out, [row.state for row in ask.fresh]),
    }


def curl(request: HttpRequest, view: filters.ListView) -> str:
    """Return the list as a command: the same filters over REST."""
    wanted = replace(view, filter=replace(view.filter, text=""), sort=filters.DEFAULT_SORT, is_grouped=True)
    pairs = replace(wanted, hours=filters.DEFAULT_HOURS).without("state").pairs()
    pairs += [("state", str(GangState.WAITS))] + ([("text", view.filter.text)] if view.filter.text else [])
    address = absolute(request, f"/api/v1/gangs?{urlencode(pairs)}")
    return f"curl -H \"Authorization: Bearer $GANGDASH_TOKEN\" '{address}'"


def chart_context(ask: Ask, gpus: GpuTotals) -> dict[str, Any]:
    """Return the chart of waiting GPUs with its edge labels and its table; two or three queries."""
    series = chart_series(ask)
    return {**waiting_chart.context(series, ask.view, cluster_gpus=gpus.total), "etag_chart": chart_etag(ask)}


def chart_series(ask: Ask) -> WaitingSeries:
    """Return the series of the range; where the first reading is later, it begins there or is marked as not read."""
    since = ask.now - timedelta(hours=ask.view.hours)
    first = min((row.cluster.added_at for row in ask.fresh), default=since)
    begins = min(max(since, first), ask.now - CHART_LEAST)
    only = ask.fresh[0].cluster.name if len(ask.fresh) == 1 else ask.view.cluster
    series = waiting_series(scope=ask.scope, since=begins, until=ask.now, cluster=only)
    return replace(series, gaps=((begins, first), *series.gaps)) if first > begins else series


def chart_etag(ask: Ask) -> str:
    """Return a tag that also changes each minute, as the chart's right edge is now."""
    return etag_of(ask.etag, ask.now.strftime("%Y-%m-%dT%H:%M"))


def changes_context(ask: Ask) -> dict[str, Any]:
    changes = change_list(scope=ask.scope, since=ask.now - CHANGES_SPAN, cluster=ask.view.cluster)
    loops = loop_list(scope=ask.scope, now=ask.now, cluster=ask.view.cluster)
    return {
        "changes": changes[:CHANGES_SHOWN],
        "loops": [(loop, gang_url(loop.gang)) for loop in loops[:LOOPS_SHOWN]],
        "loops_more": max(len(loops) - LOOPS_SHOWN, 0),
        "view": ask.view,
        "etag_changes": ask.etag,
    }


@require_safe
def triage_page(request: HttpRequest) -> HttpResponse:
    """Draw the whole page, of now or of the moment that the address names."""
    at = numbers.parse_time(request.GET.get("at"))
    if at is not None:
        return triage_then(request, at)
    ask = ask_of(request)
    found = list_groups(ask)
    summary = summary_context(ask)
    context = {
        **summary,
        **chart_context(ask, summary["gpus"]),
        **changes_context(ask),
        **list_context(request, ask, found),
        "menus": filters.menus(ask.view, filter_choices(scope=ask.scope)),
    }
    return page(request, "dashboard/triage.html", context, scope=ask.scope, name="triage", cluster=ask.view.cluster)


@require_safe
def summary_fragment(request: HttpRequest) -> HttpResponse:
    ask = ask_of(request)
    return fragment(request, "dashboard/_triage_summary.html", lambda: summary_context(ask), etag=ask.etag)


@require_safe
def list_fragment(request: HttpRequest) -> HttpResponse:
    """Answer with the whole list; the script puts changed cells in place and counts rows that would move."""
    ask = ask_of(request)
    context = list_context(request, ask, list_groups(ask))
    return fragment(request, "dashboard/_triage_list.html", lambda: context, etag=context["etag_list"])


@require_safe
def chart_fragment(request: HttpRequest) -> HttpResponse:
    ask = ask_of(request)
    return fragment(
        request,
        "dashboard/_waiting_chart.html",
        lambda: chart_context(ask, gpu_totals(scope=ask.scope, cluster=ask.view.cluster)),
        etag=chart_etag(ask),
    )


@require_safe
def changes_fragment(request: HttpRequest) -> HttpResponse:
    ask = ask_of(request)
    return fragment(request, "dashboard/_changes.html", lambda: changes_context(ask), etag=ask.etag)


COLUMNS: Sequence[Column[triage.Row]] = (
    Column("cluster", lambda row: row.gang.cluster.name),
    Column("namespace", lambda row: row.gang.namespace),
    Column("name", lambda row: row.gang.name),
    Column("kind", lambda row: row.gang.kind),
    Column("uid", lambda row: row.gang.uid),
    Column("queue", lambda row: row.gang.queue),
    Column("verdict", lambda row: row.gang.verdict),
    Column("code", lambda row: row.gang.code),
    Column("who", lambda row: row.gang.who),
    Column("certainty", lambda row: row.gang.certainty),
    Column("sentence", lambda row: row.sentence),
    Column("subject", lambda row: row.gang.subject),
    Column("pods_waiting", lambda row: row.gang.pods_waiting),
    Column("gpus_waiting", lambda row: row.gang.gpus_waiting),
    Column("waiting_since", lambda row: row.gang.waiting_since),
    Column("gpu_hours", lambda row: round(row.gpu_hours, 2)),
    Column("cheapest_fix", lambda row: row.fix),
    Column("diagnosed_as_of", lambda row: row.gang.diagnosed_as_of),
)


@require_safe
def export(request: HttpRequest, form: str) -> HttpResponse:
    """Hand out the list as CSV or JSON, with the moment it is true for and the filters it was made with."""
    ask = ask_of(request)
    rows = [row for group in filled(ask, list_groups(ask)) for row in group.rows]
    read = [row.cluster.read_as_of for row in ask.fresh if row.cluster.read_as_of]
    as_of = min(read, default=None)
    respond = csv_response if form == "csv" else json_response
    return respond("waiting-gangs", COLUMNS, rows, as_of=as_of, view=ask.view.query().lstrip("?"))
