"""Where messages go and how they get there: channels and the outbox."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.checks import register


class DeliveryConfig(AppConfig):
    name = "apps.delivery"

    def ready(self) -> None:
        """Have the settings of messages checked with the others."""
        from apps.delivery.checks import check_messages

        register(check_messages, "gangdash")
