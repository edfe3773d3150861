"""Routes: REST under /api/v1/, a health answer for probes, everything else is the pages."""

from __future__ import annotations

from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path

from gangdash.health import healthz

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
]
for prefix, module in (("api/v1/", "apps.api.urls"), ("", "apps.dashboard.urls")):
    if (settings.BASE_DIR / module.replace(".", "/")).with_suffix(".py").exists():
        urlpatterns.append(path(prefix, include(module)))
