"""Routes: REST under /api/v1/, a health answer for probes, everything else is the pages."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from gangdash.health import healthz

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("api/v1/", include("apps.api.urls")),
    path("", include("apps.dashboard.urls")),
]
