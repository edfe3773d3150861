"""The pages: HTML over the store, drawn on the server, refreshed in fragments. Holds no data of its own."""

from __future__ import annotations

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "apps.dashboard"
    label = "dashboard"
