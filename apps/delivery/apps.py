"""Where messages go and how they get there: channels and the outbox."""

from __future__ import annotations

from django.apps import AppConfig


class DeliveryConfig(AppConfig):
    name = "apps.delivery"
