"""Reads that only pages make, always inside what the reader may see."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, QuerySet, Sum

from apps.accounts.scope import Scope
from apps.workloads.models import Pod
from apps.workloads.selectors import GangFilter, gang_waiting_list


@dataclass(frozen=True, slots=True)
class LargestCause:
    """The cause that most GPUs wait for; ``gpus`` is 0 where none waits or no amount could be read."""

    code: str = ""
    gangs: int = 0
    gpus: float = 0.0


def largest_cause(*, scope: Scope, view: GangFilter) -> LargestCause:
    """Return the cause with the most waiting GPUs, without reading a gang; one query."""
    causes = gang_waiting_list(scope=scope, view=view).order_by().values("verdict", "code", "subject")
    found = causes.annotate(gangs=Count("pk"), gpus=Sum("gpus_waiting")).order_by("-gpus", "code", "subject")
    row = found.exclude(gpus=None).first()
    return LargestCause(row["code"], row["gangs"], row["gpus"]) if row else LargestCause()


def pod_search(*, scope: Scope, text: str, cluster: str = "") -> QuerySet[Pod]:
    """Return pods of gangs that still exist, by a part of their name."""
    pods = Pod.objects.filter(scope.namespace_filter(), name__icontains=text, gang__gone_at=None)
    pods = pods.exclude(gang=None).select_related("gang__cluster")
    return pods.filter(cluster__name=cluster) if cluster else pods.filter(cluster__is_read=True)
