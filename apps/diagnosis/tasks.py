"""Tasks of the analyse queue. Thin: find what is due, take it, one service call, and a record however it ends.

Each may be lost, repeated or killed between any two steps; the next tick finds what is left to do in the rows.
"""

from __future__ import annotations

from datetime import UTC, datetime

import structlog
from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings

from apps.clusters.models import Cluster

logger = structlog.get_logger(__name__)


@shared_task(name="diagnosis.diagnose_due")
def diagnose_due() -> None:
    """Ask for the analysis of each cluster and upload that is due."""
    from apps.diagnosis.services.analysis import analyses_due
    from apps.diagnosis.services.uploads import upload_ask, uploads_due

    now = datetime.now(UTC)
    limit = settings.GANGDASH_ANALYSIS_SECONDS
    for due in analyses_due(now=now):
        diagnose_cluster.apply_async(
            args=(due.cluster.pk,),
            soft_time_limit=limit,
            time_limit=limit + 30,
            expires=settings.GANGDASH_POLL_SECONDS,
        )
    for upload_id in uploads_due(now=now):
        upload_ask(upload_id=upload_id)


@shared_task(name="diagnosis.diagnose_cluster")
def diagnose_cluster(cluster_id: int) -> None:
    """Analyse the newest reading of a cluster, if that is still to be done."""
    from apps.diagnosis.services.analysis import analysis_claim, analysis_due, analysis_fail, analysis_run

    now = datetime.now(UTC)
    cluster = Cluster.objects.filter(pk=cluster_id, is_read=True).first()
    due = analysis_due(cluster=cluster, now=now) if cluster else None
    snapshot = analysis_claim(due=due, now=now) if due else None
    if snapshot is None:
        return
    try:
        analysis_run(snapshot=snapshot)
    except SoftTimeLimitExceeded:
        logger.warning("analysis_timed_out", cluster=snapshot.cluster.name, snapshot=snapshot.pk)
        detail = f"The analysis took longer than {settings.GANGDASH_ANALYSIS_SECONDS} s."
        analysis_fail(snapshot=snapshot, detail=detail, now=datetime.now(UTC))
    except Exception as error:  # the task boundary: the record says what broke, the next attempt comes later
        logger.exception("analysis_failed", cluster=snapshot.cluster.name, snapshot=snapshot.pk)
        analysis_fail(snapshot=snapshot, detail=f"{type(error).__name__}: {error}", now=datetime.now(UTC))


@shared_task(name="diagnosis.diagnose_upload")
def diagnose_upload(upload_id: str) -> None:
    """Answer an upload, if that is still to be done."""
    from apps.diagnosis.services.uploads import upload_claim, upload_fail, upload_run

    upload = upload_claim(upload_id=upload_id, now=datetime.now(UTC))
    if upload is None:
        return
    try:
        upload_run(upload=upload)
    except SoftTimeLimitExceeded:
        detail = f"The analysis took longer than {settings.GANGDASH_ANALYSIS_SECONDS} s."
        upload_fail(upload=upload, detail=detail, now=datetime.now(UTC))
    except Exception as error:  # the task boundary: the person who waits is told
        logger.exception("upload_failed", upload=upload_id)
        upload_fail(upload=upload, detail=f"{type(error).__name__}: {error}", now=datetime.now(UTC))


@shared_task(name="diagnosis.prune")
def prune() -> None:
    """Delete what is older than the settings say."""
    from apps.diagnosis.services.retention import dumps_prune, history_prune, uploads_prune

    now = datetime.now(UTC)
    deleted = dumps_prune(now=now) + history_prune(now=now) + uploads_prune(now=now)
    if deleted:
        logger.info("old_answers_pruned", rows=deleted)
