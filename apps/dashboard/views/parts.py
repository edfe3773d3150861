"""Small answers that every page uses: the freshness strip and what the palette finds."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from apps.accounts.scope import Scope
from apps.clusters.selectors import freshness_list
from apps.dashboard import marks, numbers
from apps.dashboard.freshness import strip_of
from apps.dashboard.links import gang_url, in_cluster
from apps.dashboard.selectors import pod_search
from apps.dashboard.shell import fragment, person, scope_for, sections, strip_etag
from apps.inventory.selectors import node_list, queue_list
from apps.workloads.models import Gang
from apps.workloads.selectors import GangFilter, gang_list

GANGS_FOUND = 8
OTHERS_FOUND = 4
QUERY_MAX = 200


@dataclass(frozen=True, slots=True)
class Found:
    """One entry of the palette."""

    title: str
    detail: str
    icon: str
    url: str


@require_safe
def freshness_fragment(request: HttpRequest) -> HttpResponse:
    cluster = request.GET.get("cluster", "")
    rows = freshness_list(scope=scope_for(request), cluster=cluster)
    context = {"strip": strip_of(rows), "strip_etag": strip_etag(rows), "strip_cluster": cluster}
    return fragment(request, "dashboard/_freshness.html", lambda: context, etag=strip_etag(rows))


@require_safe
def palette(request: HttpRequest) -> JsonResponse:
    """Answer with gangs, pods, queues, nodes and pages that match, best first; without words the pages."""
    words = request.GET.get("q", "").replace("\x00", "").strip()[:QUERY_MAX]
    cluster = request.GET.get("cluster", "")
    found = _objects(scope_for(request), words, cluster) if words else []
    found += _places(words, cluster, is_admin=person(request).is_admin)
    response = JsonResponse({"items": [_plain(item) for item in found]})
    response["Cache-Control"] = "private, no-store"
    return response


def _objects(scope: Scope, words: str, cluster: str) -> list[Found]:
    view = GangFilter(text=words, cluster=(cluster,) if cluster else ())
    gangs = list(gang_list(scope=scope, view=view)[: GANGS_FOUND * 8])
    gangs.sort(key=lambda gang: (_rank(gang.name, words), gang.state != "waits", gang.name))
    found = [_gang(gang) for gang in gangs[:GANGS_FOUND]]
    pods = pod_search(scope=scope, text=words, cluster=cluster)[:OTHERS_FOUND]
    found += [Found(pod.name, "pod, opens its gang", "point", gang_url(pod.gang)) for pod in pods if pod.gang]
    for queue in queue_list(scope=scope, cluster=cluster).filter(name__icontains=words)[:OTHERS_FOUND]:
        url = f"{in_cluster('queues', queue.cluster.name)}#q-{queue.name}"
        found.append(Found(str(queue), f"queue of {queue.cluster.name}", "queue_admin", url))
    for node in node_list(scope=scope, cluster=cluster).filter(name__icontains=words)[:OTHERS_FOUND]:
        detail = f"node, {numbers.number(node.gpus_free)} of {numbers.counted(node.gpus, 'GPU')} free"
        found.append(Found(node.name, detail, "nodes", f"{in_cluster('nodes', node.cluster.name)}#n-{node.name}"))
    return found


def _gang(gang: Gang) -> Found:
    mark = marks.verdict_mark(gang.verdict)
    size = "GPUs not read" if gang.gpus is None else numbers.counted(gang.gpus, "GPU")
    detail = f"{gang.namespace}, {mark.word}, {size}"
    return Found(gang.name, detail, mark.icon, gang_url(gang))


def _places(words: str, cluster: str, *, is_admin: bool) -> list[Found]:
    places = [place for section in sections(cluster, is_admin=is_admin) for place in section.entries]
    found = [Found(place.title, "page", place.icon, place.url) for place in places]
    found.append(Found("Account", "page, tokens and password", "account", reverse("dashboard:account")))
    return [item for item in found if words.lower() in f"{item.title} {item.detail}".lower()]


def _rank(name: str, words: str) -> int:
    """Return 0 for the very name, 1 for its beginning, 2 for any other match."""
    name, words = name.lower(), words.lower()
    return 0 if name == words else 1 if name.startswith(words) else 2


def _plain(item: Found) -> dict[str, str]:
    return {"title": item.title, "detail": item.detail, "icon": item.icon, "url": item.url}
