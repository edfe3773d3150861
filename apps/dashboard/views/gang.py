"""One gang: the answer word for word, what it rests on, how it came about, and the files to check it with."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_safe

from apps.accounts.scope import Scope
from apps.alerts.selectors import alerts_of_gangs
from apps.clusters.choices import Freshness
from apps.clusters.selectors import freshness_state
from apps.dashboard import attempts_page, gang_page, numbers, stages
from apps.dashboard.figures import figure_json
from apps.dashboard.gang_figures import DomainRow, domain_figure, reason_figure
from apps.dashboard.links import absolute, gang_url, with_moment
from apps.dashboard.marks import STALE, reason_of
from apps.dashboard.names import level_word
from apps.dashboard.shell import etag_of, fragment, page, scope_for
from apps.diagnosis.models import ExplanationRecord
from apps.diagnosis.selectors import (
    attempt_diagnosed_list,
    document_text,
    explanation_at,
    explanation_get,
    gang_as_of,
    timeline_list,
)
from apps.diagnosis.services.downloads import dump_name, snapshot_dump
from apps.errors import ApplicationError
from apps.inventory.models import Domain
from apps.inventory.selectors import barred_gpus, capacity_at, domain_list, domains_then, topology_list
from apps.workloads.models import Gang
from apps.workloads.selectors import gang_by_name, gang_get, loop_get, pod_list
from apps.workloads.veil import veil_for


@dataclass(frozen=True, slots=True)
class Ask:
    """One request for a gang; ``at`` pins it to a moment in the past."""

    scope: Scope
    gang: Gang
    record: ExplanationRecord | None
    at: datetime | None
    now: datetime

    @property
    def is_stale(self) -> bool:
        state = freshness_state(cluster=self.gang.cluster, now=self.now)
        return self.at is None and state in {Freshness.STALE, Freshness.BLIND, Freshness.REMOVED}

    @property
    def etag(self) -> str:
        record = (self.record.pk, self.record.snapshot.digest) if self.record else None
        gang = (self.gang.fingerprint, self.gang.gone_at, self.gang.pods_placed, self.gang.last_seen_at)
        return etag_of(self.gang.pk, record, gang, self.gang.cluster.read_as_of, self.is_stale, self.at)


@dataclass(frozen=True, slots=True)
class Places:
    """Domains of one level; ``as_of`` is None where those of a pinned moment are not kept.

    ``knows_nodes`` says that the nodes which the gang may not use are told apart.
    """

    level: str
    rows: list[DomainRow]
    as_of: datetime | None
    knows_nodes: bool


def ask_of(request: HttpRequest, cluster: str, namespace: str, name: str) -> Ask:
    """Find the gang by uid where the address has one, else by name; 404 where it is not there or not visible."""
    scope, now = scope_for(request), timezone.now()
    uid = request.GET.get("uid", "")
    try:
        if uid:
            gang = gang_get(scope=scope, public_id=f"{cluster}~{uid}")
        else:
            gang = gang_by_name(scope=scope, cluster=cluster, namespace=namespace, name=name)
    except Gang.DoesNotExist as error:
        raise Http404(f"No gang {namespace}/{name} in cluster {cluster} is visible to you") from error
    at = numbers.parse_time(request.GET.get("at"))
    if at is None:
        return Ask(scope, gang, explanation_get(gang=gang), at, now)
    record = explanation_at(gang=gang, moment=at)
    return Ask(scope, gang_as_of(scope=scope, gang=gang, at=at), record, at, now)


def gang_context(request: HttpRequest, ask: Ask) -> dict[str, Any]:
    gang, record = ask.gang, ask.record
    timeline = list(timeline_list(gang=gang))
    figure = reason_figure(gang_page.reason_rows(timeline), now=gang.gone_at or ask.now, pinned=ask.at)
    context: dict[str, Any] = {
        "gang": gang,
        "record": record,
        "now": ask.now,
        "veil": veil_for(scope=ask.scope),
        "is_stale": ask.is_stale,
        "pinned_at": ask.at,
        "live_url": gang_url(gang),
        "etag_gang": ask.etag,
        "fragment_url": gang_url(gang, name="gang-fragment"),
        # Pods of past moments are not kept.
        "members": gang_page.member_groups(pod_list(gang=gang)) if ask.at is None else None,
        "timeline": timeline[::-1],
        "held": gang_page.held_at(timeline, ask.at),
        "timeline_figure": figure_json(figure),
        "alerts": alerts_of_gangs(gangs=[gang]).get(gang.pk, []) if ask.at is None else [],
        "may_mute": ask.scope.sees_all and ask.at is None,
        **attempts_context(ask),
    }
    if record is not None:
        context.update(document_context(request, ask, record))
    return context


def attempts_context(ask: Ask) -> dict[str, Any]:
    """Return the attempts at what the gang is one of, newest first, and whether they go round in a loop."""
    attempts = list(attempt_diagnosed_list(scope=ask.scope, gang=ask.gang))
    if ask.at is not None:
        attempts = [attempt for attempt in attempts if attempt.seen_at <= ask.at]
    own = next((attempt for attempt in attempts if attempt.gang_id == ask.gang.pk), None)
    return {
        "attempts": attempts[::-1][: attempts_page.SHOWN],
        "attempts_total": len(attempts),
        "attempt": own,
        "attempt_steps": attempts_page.steps(own, at=ask.at) if own else (),
        "loop": loop_get(gang=ask.gang, now=ask.now) if own and ask.at is None else None,
    }


def document_context(request: HttpRequest, ask: Ask, record: ExplanationRecord) -> dict[str, Any]:
    gang, document = ask.gang, json.loads(document_text(record=record, scope=ask.scope))
    need = gang_page.needed_gpus(document, gang)
    places = domains_of(ask, document)
    return {
        "document": document,
        "panels": gang_page.panels(document, cluster=gang.cluster.name, scope=ask.scope),
        "reason": reason_of(document["code"]),
        "certainty": STALE if ask.is_stale else document["certainty"],
        "ladder": stages.ladder(document),
        "since": numbers.parse_time(document["waiting_since"]),
        "scheduler_at": numbers.parse_time(document["scheduler"]["at"]),
        "as_of": numbers.parse_time(document["as_of"]),
        "member_marks": gang_page.member_marks(document["members"]),
        "command": gang_page.command(gang, dump_name(snapshot=record.snapshot)),
        "snapshot_url": with_moment(gang_url(gang, name="gang-snapshot"), ask.at) if ask.scope.sees_all else "",
        "explanation_url": with_moment(gang_url(gang, name="gang-explanation"), ask.at),
        "curl": explanation_curl(request, ask),
        "need": need,
        "places": places,
        "is_barred": any(row.barred for row in places.rows),
        "domains": sorted(places.rows, key=lambda row: (-row.free, -row.gpus, row.name)),
        "domain_figure": figure_json(domain_figure(places.rows, need=need)) if places.rows and need else None,
    }


def domains_of(ask: Ask, document: dict[str, Any]) -> Places:
    """Return the domains that the gang is held against: those of its required level, else of the broadest."""
    gang, cluster = ask.gang, ask.gang.cluster.name
    topologies = list(topology_list(scope=ask.scope, cluster=cluster))
    topology = next((row for row in topologies if row.name == gang.topology), topologies[0] if topologies else None)
    if topology is None or not topology.levels:
        return Places("", [], None, knows_nodes=False)
    labels = [str(level["label"]) for level in topology.levels]
    words = [str(level.get("alias") or level_word(str(level["label"]))) for level in topology.levels]
    named = [at for at in range(len(labels)) if gang.required_level in {labels[at], words[at]}]
    at = named[0] if named else 0
    domains, as_of = domain_rows(ask, topology.name, at, labels[at])
    # The nodes of a past moment are not kept.
    knows = ask.at is None and gang.node_filter is not None
    barred = barred_gpus(cluster=gang.cluster, key=gang.node_filter or "", labels=labels[: at + 1]) if knows else None
    return Places(words[at], gang_page.domain_rows(domains, document, barred), as_of, knows_nodes=knows)


def domain_rows(ask: Ask, topology: str, level: int, label: str) -> tuple[Iterable[Domain], datetime | None]:
    """Return the domains of one level, now or at the pinned moment, and the moment they are of; None where not kept."""
    cluster = ask.gang.cluster
    if ask.at is None:
        return domain_list(scope=ask.scope, cluster=cluster.name, topology=topology, label=label), cluster.read_as_of
    sample = capacity_at(scope=ask.scope, cluster=cluster.name, at=ask.at)
    if sample is None:
        return (), None
    return domains_then(sample=sample, topology=topology, level=level), sample.at


def explanation_curl(request: HttpRequest, ask: Ask) -> str:
    moment = f"?{urlencode({'at': numbers.iso(ask.at)})}" if ask.at else ""
    address = absolute(request, f"/api/v1/gangs/{ask.gang.public_id}/explanation{moment}")
    return f"curl -H \"Authorization: Bearer $GANGDASH_TOKEN\" '{address}'"


@require_safe
def gang_detail(request: HttpRequest, cluster: str, namespace: str, name: str) -> HttpResponse:
    """Draw the page of one gang, now or at a moment in the past."""
    ask = ask_of(request, cluster, namespace, name)
    context = gang_context(request, ask)
    return page(request, "dashboard/gang.html", context, scope=ask.scope, name="gang", cluster=cluster)


@require_safe
def gang_fragment(request: HttpRequest, cluster: str, namespace: str, name: str) -> HttpResponse:
    """Answer with all parts of the page; the script puts in those that changed."""
    ask = ask_of(request, cluster, namespace, name)
    return fragment(request, "dashboard/_gang.html", lambda: gang_context(request, ask), etag=ask.etag)


@require_safe
def gang_explanation(request: HttpRequest, cluster: str, namespace: str, name: str) -> HttpResponse:
    """Hand out the explanation document as it was stored."""
    ask = ask_of(request, cluster, namespace, name)
    if ask.record is None:
        raise Http404("This gang has no explanation of that moment")
    return HttpResponse(document_text(record=ask.record, scope=ask.scope), content_type="application/json")


@require_safe
def gang_snapshot(request: HttpRequest, cluster: str, namespace: str, name: str) -> HttpResponse:
    """Hand out the dump of the moment that the answer is about; it holds the whole cluster, so not for everyone."""
    ask = ask_of(request, cluster, namespace, name)
    if not ask.scope.sees_all:
        raise PermissionDenied("A snapshot holds every namespace; your role shows you some of them")
    if ask.record is None:
        raise Http404("This gang has no explanation of that moment")
    try:
        content = snapshot_dump(snapshot=ask.record.snapshot)
    except ApplicationError as error:
        raise Http404(error.detail) from error
    response = HttpResponse(content, content_type="application/gzip")
    file_name = dump_name(snapshot=ask.record.snapshot)
    response["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=file_name) or ""
    return response
