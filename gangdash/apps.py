"""Makes the project package an app of its own, so that its system checks and the Celery app load with Django."""

from __future__ import annotations

from importlib import import_module

from django.apps import AppConfig


class GangdashConfig(AppConfig):
    """Has no models; it only loads what registers itself when imported."""

    name = "gangdash"

    def ready(self) -> None:
        """Register the checks and make the Celery app the current one, for web processes that queue tasks too."""
        import_module("gangdash.checks")
        import_module("gangdash.celery")
