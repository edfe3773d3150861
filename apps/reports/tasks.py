"""Tasks of reports. Thin: find what is due, take it, one service call, and a record however it ends.

Each may be lost, repeated or killed between any two steps; the next tick finds what is left to do in the rows.
"""

from __future__ import annotations

from datetime import UTC, datetime

import structlog
from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded

logger = structlog.get_logger(__name__)


@shared_task(name="reports.run_due")
def run_due() -> None:
    """Take on what the schedules owe and ask for each report that waits."""
    from apps.reports.services import report_ask, reports_due, reports_waiting

    now = datetime.now(UTC)
    for report in reports_due(now=now):
        logger.info("report_due", report=report.pk, schedule=report.title, due_at=report.due_at, missed=report.missed)
    for report_id in reports_waiting(now=now):
        report_ask(report_id=report_id)


@shared_task(name="reports.make_report")
def make_report(report_id: int) -> None:
    """Make a report, if that is still to be done."""
    from apps.reports.services import LIMIT_SECONDS, report_claim, report_fail, report_run

    now = datetime.now(UTC)
    report = report_claim(report_id=report_id, now=now)
    if report is None:
        return
    try:
        report_run(report=report, now=now)
    except SoftTimeLimitExceeded:
        detail = f"It took longer than {LIMIT_SECONDS} s to make."
        report_fail(report=report, detail=detail, now=datetime.now(UTC))
    except Exception as error:  # the task boundary: the row says what broke
        logger.exception("report_failed", report=report_id)
        report_fail(report=report, detail=f"{type(error).__name__}: {error}", now=datetime.now(UTC))


@shared_task(name="reports.prune")
def prune() -> None:
    """Delete what is older or more than the settings say."""
    from apps.reports.services import reports_prune

    deleted = reports_prune(now=datetime.now(UTC))
    if deleted:
        logger.info("old_reports_pruned", rows=deleted)
