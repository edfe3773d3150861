"""What if: fill in changes, read what they would do to every gang. A question is an address; nothing is stored."""

from __future__ import annotations

from http import HTTPStatus

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe
from rest_framework.throttling import UserRateThrottle

from apps.accounts.scope import Scope
from apps.clusters.models import Cluster
from apps.clusters.selectors import cluster_get
from apps.dashboard import whatif
from apps.dashboard.links import absolute
from apps.dashboard.shell import page, scope_for
from apps.dashboard.whatif_links import whatif_url
from apps.diagnosis.services.downloads import dump_name
from apps.diagnosis.services.whatif import CHANGES_MAX, Told, whatif_run
from apps.errors import ApplicationError
from apps.inventory.selectors import node_list, queue_list
from apps.workloads.selectors import GangFilter, gang_waiting_list
from gangdash.engine.changes import ChangeError

SUGGESTED = 300
"""Names of queues, of nodes and of waiting gangs, each, that the form offers."""


class PageThrottle(UserRateThrottle):
    """Counts together with the same questions by REST."""

    scope = "whatif"


@require_safe
def whatif_page(request: HttpRequest, cluster: str) -> HttpResponse:
    """Show the form and, where the address names changes, the answer."""
    scope = scope_for(request)
    found = _cluster(scope, cluster)
    sent = whatif.texts_of_rows(request.GET)
    if sent is not None:
        return redirect(whatif_url(cluster, sent[: CHANGES_MAX + 1]))
    texts = request.GET.getlist("change")
    told, fault, status = _told(request, found, scope, texts) if texts else (None, "", HTTPStatus.OK)
    context = {
        "cluster": found,
        "rows": whatif.rows_of(texts),
        "kinds": whatif.KINDS,
        "fault": fault,
        "told": told,
        "answer": whatif.answer_of(told.document, cluster=cluster, scope=scope) if told else None,
        "link": absolute(request, whatif_url(cluster, texts, base=told.document["digest"])) if told else "",
        "command": whatif.command(dump_name(snapshot=told.snapshot), texts) if told and scope.sees_all else "",
        "queues": queue_list(scope=scope, cluster=cluster).values_list("name", flat=True)[:SUGGESTED],
        "nodes": node_list(scope=scope, cluster=cluster).values_list("name", flat=True)[:SUGGESTED],
        "gangs": gang_waiting_list(scope=scope, view=GangFilter(cluster=(cluster,)))[:SUGGESTED],
    }
    return page(request, "dashboard/whatif.html", context, scope=scope, name="whatif", cluster=cluster, status=status)


def _cluster(scope: Scope, name: str) -> Cluster:
    try:
        return cluster_get(scope=scope, name=name)
    except Cluster.DoesNotExist as error:
        raise Http404(f"No cluster {name} is visible to you") from error


def _told(
    request: HttpRequest, cluster: Cluster, scope: Scope, texts: list[str]
) -> tuple[Told | None, str, HTTPStatus]:
    """Return the answer, or why there is none."""
    try:
        changes = whatif.read(texts)
    except ChangeError as error:
        return None, str(error), HTTPStatus.UNPROCESSABLE_ENTITY
    throttle = PageThrottle()
    if not throttle.allow_request(request, None):  # type: ignore[arg-type]
        return None, f"Too many questions; come again in {throttle.wait() or 1:.0f} s.", HTTPStatus.TOO_MANY_REQUESTS
    try:
        told = whatif_run(cluster=cluster, scope=scope, changes=changes, base=request.GET.get("base", ""))
    except ApplicationError as error:
        return None, error.detail, HTTPStatus.UNPROCESSABLE_ENTITY
    return told, "", HTTPStatus.OK
