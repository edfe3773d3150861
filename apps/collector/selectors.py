"""Reads of stored readings."""

from __future__ import annotations

from apps.clusters.models import Cluster
from apps.collector.models import Reading


def reading_newest(*, cluster: Cluster) -> Reading | None:
    """Return the newest reading of a cluster, None before the first."""
    return Reading.objects.filter(cluster=cluster).order_by("-as_of", "-pk").first()
