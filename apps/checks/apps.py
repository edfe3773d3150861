"""What an admin would check by hand, checked on every poll."""

from __future__ import annotations

from django.apps import AppConfig


class ChecksConfig(AppConfig):
    name = "apps.checks"

    def ready(self) -> None:
        from apps.checks.services import checks_record
        from apps.collector.signals import reading_done

        reading_done.connect(checks_record, dispatch_uid="checks_record")
