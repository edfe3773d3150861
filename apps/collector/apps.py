"""Polling: from a cluster to rows."""

from __future__ import annotations

from django.apps import AppConfig


class CollectorConfig(AppConfig):
    name = "apps.collector"
