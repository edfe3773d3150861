"""Workloads from the top: graphs and sets with their layers, and the way from any object to its gang."""

from __future__ import annotations

from django.apps import AppConfig


class ChainsConfig(AppConfig):
    name = "apps.chains"

    def ready(self) -> None:
        from apps.chains.services import chains_record
        from apps.collector.signals import reading_done

        reading_done.connect(chains_record, dispatch_uid="chains_record")
