"""The task that keeps the past of workloads bounded; it may be lost or run twice."""

from __future__ import annotations

from datetime import UTC, datetime

import structlog
from celery import shared_task

logger = structlog.get_logger(__name__)


@shared_task(name="chains.prune")
def prune() -> None:
    """Delete how workloads stood too long ago to be asked for."""
    from apps.chains.moments import moments_prune

    deleted = moments_prune(now=datetime.now(UTC))
    if deleted:
        logger.info("old_workloads_pruned", rows=deleted)
