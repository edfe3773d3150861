"""What stands around every page: places to go, which cluster, how fresh, light or dark. One way to draw a page.

Also the door: a person with a one-time password gets no page before it is changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import patch_cache_control

from apps.accounts.models import User
from apps.accounts.scope import Scope, scope_of
from apps.clusters.selectors import ClusterFreshness, freshness_list
from apps.dashboard.freshness import WORDS, Strip, strip_of
from gangdash import __version__

THEME_COOKIE = "gangdash_theme"
THEMES = frozenset({"light", "dark"})
CLUSTER_PAGES = frozenset(
    {"triage", "gangs", "deployments", "queues", "topology", "nodes", "alerts", "objectives", "checks"}
)
"""Pages that show one cluster or all of them, as the address says."""

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


@dataclass(frozen=True, slots=True)
class Place:
    """One entry of the navigation; ``keys`` is what follows ``g`` on the keyboard."""

    key: str
    title: str
    icon: str
    url: str
    keys: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    entries: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class ClusterLink:
    name: str
    url: str
    state: str


@dataclass(frozen=True, slots=True)
class Shell:
    """``cluster`` is the one picked by the page or the address, empty for all."""

    page: str
    cluster: str
    theme: str
    nav: tuple[Section, ...]
    clusters: tuple[ClusterFreshness, ...]
    links: tuple[ClusterLink, ...]
    all_url: str
    etag: str


def sections(cluster: str = "", *, is_admin: bool = False, first: str = "") -> tuple[Section, ...]:
    """Return the places; those that show one cluster keep the picked one.

    What-if asks about one cluster always: the picked one, else the ``first`` that there is.
    """
    query = f"?{urlencode({'cluster': cluster})}" if cluster else ""

    def place(key: str, title: str, icon: str, keys: str = "", *, keep: bool = True) -> Place:
        return Place(key, title, icon, reverse(f"dashboard:{key}") + (query if keep else ""), keys)

    asked = cluster or first
    questions = (Place("whatif", "What if", "right", reverse("dashboard:whatif", args=[asked]), "w"),) if asked else ()
    channels = (place("channels", "Channels", "plug", "m", keep=False),) if is_admin else ()
    return (
        Section(
            "Now",
            (
                place("triage", "Triage", "triage", "h"),
                place("gangs", "Gangs", "gangs", "a"),
                place("deployments", "Deployments", "platform", "d"),
                place("queues", "Queues", "queue_admin", "q"),
                place("topology", "Topology", "topology", "t"),
                place("nodes", "Nodes", "nodes", "n"),
            ),
        ),
        Section(
            "Tell",
            (
                place("alerts", "Alerts", "bell", "l"),
                place("reports", "Reports", "report", "e", keep=False),
                place("objectives", "Objectives", "clock", "o"),
                *channels,
            ),
        ),
        Section(
            "Know",
            (
                place("clusters", "Clusters", "health", "c", keep=False),
                place("checks", "Checks", "check", "k"),
                *questions,
                place("upload", "Diagnose a file", "upload", "u", keep=False),
                place("reasons", "Reasons", "book", "r", keep=False),
            ),
        ),
    )


def shell_of(request: HttpRequest, *, scope: Scope, page: str, cluster: str = "") -> tuple[Shell, Strip | None]:
    """Return what stands around this page and its strip; two queries."""
    rows = freshness_list(scope=scope)
    picked = [row for row in rows if row.cluster.name == cluster] if cluster else rows
    theme = request.COOKIES.get(THEME_COOKIE, "")
    shell = Shell(
        page=page,
        cluster=cluster,
        theme=theme if theme in THEMES else "",
        nav=sections(cluster, is_admin=person(request).is_admin, first=rows[0].cluster.name if rows else ""),
        clusters=tuple(rows),
        links=tuple(_cluster_link(request, page, row.cluster.name, WORDS[row.state]) for row in rows),
        all_url=_cluster_link(request, page, "", "").url,
        etag=strip_etag(picked),
    )
    return shell, strip_of(picked)


def strip_etag(rows: list[ClusterFreshness]) -> str:
    """Return a tag that changes with anything the strip says, apart from seconds, which the script counts on."""
    return etag_of(
        *(
            (row.cluster.name, row.state, row.cluster.read_as_of, row.cluster.diagnosed_digest, len(row.not_read))
            for row in rows
        ),
        *((row.cluster.failures, row.cluster.fault, row.cluster.diagnosed_as_of) for row in rows),
    )


def etag_of(*parts: object) -> str:
    """Return a quoted entity tag of some values and the program's version."""
    text = repr((__version__, *parts))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:24]}"'


def page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    scope: Scope,
    name: str,
    cluster: str = "",
    status: int = 200,
) -> HttpResponse:
    """Draw a whole page with its shell. Pages are private: no proxy keeps them."""
    shell, strip = shell_of(request, scope=scope, page=name, cluster=cluster)
    values = {
        "shell": shell,
        "strip": strip,
        "strip_etag": shell.etag,
        "strip_cluster": cluster,
        "now": timezone.now(),
        "scope": scope,
        **context,
    }
    response = render(request, template, values, status=status)
    patch_cache_control(response, private=True, no_cache=True)
    return response


def fragment(
    request: HttpRequest, template: str, context: Callable[[], Mapping[str, Any]], *, etag: str
) -> HttpResponse:
    """Draw a part of a page, or answer 304 without making its context where the browser has this version."""
    if request.headers.get("If-None-Match") == etag:
        response = HttpResponse(status=304)
    else:
        response = render(request, template, {"now": timezone.now(), **context()})
    response["ETag"] = etag
    patch_cache_control(response, private=True, no_cache=True)
    return response


def person(request: HttpRequest) -> User:
    """Return who asks. Every page asks for a login, so nobody unknown comes this far."""
    if isinstance(request.user, AnonymousUser):
        raise TypeError("a page was drawn without a login")
    return request.user


def guarded(view: View[P]) -> View[P]:
    """Send a person whose password is still the one-time one to the page that changes it."""

    @wraps(view)
    def door(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if isinstance(request.user, User) and request.user.must_change_password:
            return redirect("dashboard:password")
        return view(request, *args, **kwargs)

    return door


def scope_for(request: HttpRequest) -> Scope:
    return scope_of(request.user)


def _cluster_link(request: HttpRequest, page: str, cluster: str, state: str) -> ClusterLink:
    """Keep the page and its filters where it can show another cluster, else go to what waits there."""
    if page == "whatif" and cluster:
        return ClusterLink(cluster, reverse("dashboard:whatif", args=[cluster]), state)
    keeps = page in CLUSTER_PAGES
    query = request.GET.copy() if keeps else QueryDict(mutable=True)
    for name in ("cluster", "queue", "namespace"):
        query.pop(name, None)
    if cluster:
        query["cluster"] = cluster
    path = request.path if keeps else reverse("dashboard:triage")
    return ClusterLink(cluster, f"{path}?{query.urlencode()}" if query else path, state)
