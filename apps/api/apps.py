"""REST under /api/v1: reads of the store, uploads, tokens."""

from __future__ import annotations

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "apps.api"
