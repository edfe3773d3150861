"""What is worth telling someone: rules over the stored rows, alerts, mutes."""

from __future__ import annotations

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    name = "apps.alerts"
