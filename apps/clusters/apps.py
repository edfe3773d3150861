"""Clusters, polls and freshness."""

from __future__ import annotations

from django.apps import AppConfig


class ClustersConfig(AppConfig):
    name = "apps.clusters"
