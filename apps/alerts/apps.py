"""What is worth telling someone: rules over the stored rows, alerts, mutes."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

EVALUATE_TASK = "alerts.evaluate_cluster"


class AlertsConfig(AppConfig):
    name = "apps.alerts"

    def ready(self) -> None:
        from apps.diagnosis.signals import diagnosis_done

        diagnosis_done.connect(_ask, dispatch_uid="alerts_evaluate")
        post_migrate.connect(_ensure, sender=self, dispatch_uid="alert_rules_ensure")


def _ask(*, cluster: Any, **_signal: Any) -> None:
    """Ask for a look after each analysis; the tick looks again should this be lost."""
    from celery import current_app

    current_app.send_task(EVALUATE_TASK, args=[cluster.pk], expires=60)


def _ensure(**_signal: Any) -> None:
    from apps.alerts.services.rules import rules_ensure

    rules_ensure()
