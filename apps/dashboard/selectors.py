"""Reads that only pages make, always inside what the reader may see."""

from __future__ import annotations

from django.db.models import QuerySet

from apps.accounts.scope import Scope
from apps.workloads.models import Pod


def pod_search(*, scope: Scope, text: str, cluster: str = "") -> QuerySet[Pod]:
    """Return pods of gangs that still exist, by a part of their name."""
    pods = Pod.objects.filter(scope.namespace_filter(), name__icontains=text, gang__gone_at=None)
    pods = pods.exclude(gang=None).select_related("gang__cluster")
    return pods.filter(cluster__name=cluster) if cluster else pods.filter(cluster__is_read=True)
