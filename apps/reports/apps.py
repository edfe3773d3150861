"""Health reports of a range, by schedule and on demand."""

from __future__ import annotations

from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "apps.reports"
