"""Reads of clusters and their freshness."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.scope import Scope
from apps.clusters.choices import Freshness
from apps.clusters.models import Cluster, KindFreshness, PollRun

STALE_POLLS = 3
BLIND_POLLS = 5


@dataclass(frozen=True, slots=True)
class ClusterFreshness:
    """What a freshness strip says about one cluster. ``age`` is None before the first reading."""

    cluster: Cluster
    state: Freshness
    age: timedelta | None
    not_read: tuple[KindFreshness, ...]
    kinds_total: int
    poll_seconds: int


def cluster_list(*, scope: Scope) -> QuerySet[Cluster]:
    """Return the clusters in which something is visible, removed ones too, by name."""
    return Cluster.objects.filter(scope.cluster_filter())


def cluster_get(*, scope: Scope, name: str) -> Cluster:
    """Return one cluster; ``Cluster.DoesNotExist`` where it is not there or not visible."""
    if "\x00" in name:  # no name has it, and PostgreSQL refuses to look for it
        raise Cluster.DoesNotExist
    return cluster_list(scope=scope).get(name=name)


def poll_run_list(*, cluster: Cluster) -> QuerySet[PollRun]:
    """Return the polls of one cluster, newest first."""
    return PollRun.objects.filter(cluster=cluster)


def kind_list(*, cluster: Cluster) -> QuerySet[KindFreshness]:
    """Return what is known of each kind in one cluster, by name."""
    return KindFreshness.objects.filter(cluster=cluster)


def freshness_state(*, cluster: Cluster, now: datetime) -> Freshness:
    """Return the state by missed polls: 3 make it stale, 5 blind."""
    if not cluster.is_read:
        return Freshness.REMOVED
    if cluster.read_as_of is None:
        return Freshness.BLIND if cluster.failures >= BLIND_POLLS else Freshness.FIRST_READ
    missed = (now - cluster.read_as_of).total_seconds() / settings.GANGDASH_POLL_SECONDS
    if missed > BLIND_POLLS:
        return Freshness.BLIND
    return Freshness.STALE if missed > STALE_POLLS else Freshness.LIVE


def freshness_list(*, scope: Scope, cluster: str = "") -> list[ClusterFreshness]:
    """Return the freshness of each visible cluster, or of the named one; two queries."""
    now = timezone.now()
    clusters = cluster_list(scope=scope).prefetch_related("kinds")
    if cluster:
        clusters = clusters.filter(name=cluster)
    return [_freshness(row, now) for row in clusters]


def _freshness(cluster: Cluster, now: datetime) -> ClusterFreshness:
    kinds = list(cluster.kinds.all())
    return ClusterFreshness(
        cluster=cluster,
        state=freshness_state(cluster=cluster, now=now),
        age=now - cluster.read_as_of if cluster.read_as_of else None,
        not_read=tuple(kind for kind in kinds if not kind.is_read),
        kinds_total=len(kinds),
        poll_seconds=settings.GANGDASH_POLL_SECONDS,
    )
