"""Tasks of alerts. Thin: which cluster, one service call. Each may be lost or run twice: the next tick looks again."""

from __future__ import annotations

from datetime import UTC, datetime

import structlog
from celery import shared_task

from apps.clusters.models import Cluster

logger = structlog.get_logger(__name__)

EXPIRES = 60


@shared_task(name="alerts.evaluate_all")
def evaluate_all() -> None:
    """Ask for a look at each cluster, so that time passes for alerts also where nothing arrives."""
    for key in Cluster.objects.values_list("pk", flat=True):
        evaluate_cluster.apply_async(args=(key,), expires=EXPIRES)


@shared_task(name="alerts.evaluate_cluster")
def evaluate_cluster(cluster_id: int) -> None:
    """Look at one cluster; one that is no longer read has its alerts ended."""
    from apps.alerts.services.evaluation import alerts_evaluate, cluster_abandon

    cluster = Cluster.objects.filter(pk=cluster_id).first()
    if cluster is None:
        return
    now = datetime.now(UTC)
    if cluster.is_read:
        alerts_evaluate(cluster=cluster, now=now)
    else:
        cluster_abandon(cluster=cluster, now=now)


@shared_task(name="alerts.prune")
def prune() -> None:
    """Delete what is older than the settings say."""
    from apps.alerts.services.retention import alerts_prune

    deleted = alerts_prune(now=datetime.now(UTC))
    if deleted:
        logger.info("old_alerts_pruned", rows=deleted)
