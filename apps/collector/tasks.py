"""Tasks of the collect queue. Thin: who is due, take it, one service call.

Each may be lost, repeated or killed between any two steps: locks end by time and the next tick reads again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import structlog
from celery import shared_task
from django.conf import settings

from apps.clusters.models import Cluster

logger = structlog.get_logger(__name__)

SOFT_LIMIT_SECONDS = 150
"""A reading is cut short after two minutes by itself; writing it takes seconds."""
HARD_LIMIT_SECONDS = 180
HOLD = timedelta(seconds=HARD_LIMIT_SECONDS + 20)


@shared_task(name="collector.poll_clusters")
def poll_clusters() -> None:
    """Follow the configured clusters and ask for a poll of each."""
    from apps.clusters.services import clusters_sync
    from apps.clusters.sources import configured_sources
    from apps.collector.services import poll_delay

    found = configured_sources()
    for fault in found.faults:
        logger.warning("cluster_source_fault", fault=fault)
    clusters = clusters_sync(found=found, now=datetime.now(UTC))
    for cluster in clusters:
        poll_cluster.apply_async(
            args=(cluster.pk,),
            countdown=poll_delay(clusters=len(clusters)),
            expires=settings.GANGDASH_POLL_SECONDS,
            soft_time_limit=SOFT_LIMIT_SECONDS,
            time_limit=HARD_LIMIT_SECONDS,
        )


@shared_task(name="collector.poll_cluster")
def poll_cluster(cluster_id: int) -> None:
    """Poll one cluster, if it is due and nobody else reads it."""
    from apps.clusters.services import poll_claim, poll_release
    from apps.clusters.sources import configured_sources
    from apps.collector.services import cluster_poll

    cluster = Cluster.objects.filter(pk=cluster_id, is_read=True).first()
    source = configured_sources().get(cluster.name) if cluster else None
    if cluster is None or source is None:
        return
    if not poll_claim(cluster=cluster, now=datetime.now(UTC), hold=HOLD):
        return
    try:
        cluster_poll(cluster=cluster, source=source)
    except Exception:  # the task boundary: the cluster is let go, the record says that the poll broke
        logger.exception("poll_broken", cluster=cluster.name)
        poll_release(cluster=cluster, now=datetime.now(UTC))


@shared_task(name="collector.prune")
def prune() -> None:
    """Delete the records of old polls and of failed logins, and thin the history of nodes, parts and capacity."""
    from apps.accounts.services import failed_logins_prune
    from apps.clusters.services import poll_runs_prune
    from apps.collector.thinning import capacity_thin, states_prune

    now = datetime.now(UTC)
    deleted = poll_runs_prune(before=now - timedelta(days=settings.GANGDASH_KEEP_POLL_DAYS))
    deleted += failed_logins_prune(before=now - timedelta(days=settings.GANGDASH_KEEP_HISTORY_DAYS))
    deleted += states_prune(now=now) + capacity_thin(now=now)
    if deleted:
        logger.info("old_records_pruned", rows=deleted)
