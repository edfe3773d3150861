"""Addresses inside the project, so that no template puts one together from cluster text."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from apps.dashboard.numbers import iso
from apps.workloads.models import Gang


def gang_url(gang: Gang, *, name: str = "gang") -> str:
    """Return the page of a gang. The uid keeps the address true when another gang takes the name."""
    path = reverse(f"dashboard:{name}", args=[gang.cluster.name, gang.namespace, gang.name])
    return f"{path}?{urlencode({'uid': gang.uid})}"


def absolute(request: HttpRequest, path: str) -> str:
    """Return an address that works outside the page, under the base address where one is set."""
    return f"{settings.GANGDASH_BASE_URL}{path}" if settings.GANGDASH_BASE_URL else request.build_absolute_uri(path)


def in_cluster(name: str, cluster: str) -> str:
    """Return a page that shows one cluster, with that cluster picked."""
    return f"{reverse(f'dashboard:{name}')}?{urlencode({'cluster': cluster})}"


def with_moment(url: str, at: datetime | None) -> str:
    """Keep a pinned moment in an address that has a query already."""
    return f"{url}&{urlencode({'at': iso(at)})}" if at else url
