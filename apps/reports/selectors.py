"""Reads of reports and schedules. A report names gangs of every namespace, so it takes the right to see all of them."""

from __future__ import annotations

import msgspec
from django.db.models import F, Q, QuerySet

from apps.accounts.scope import Scope
from apps.errors import ApplicationError
from apps.reports.choices import ReportState
from apps.reports.content import Content
from apps.reports.models import Report, ReportSchedule


def report_list(*, scope: Scope, cluster: str = "", schedule: str = "", state: str = "") -> QuerySet[Report]:
    """Return reports without their content, newest end first; ``schedule`` is a name, or ``-`` for asked-for ones."""
    rows = Report.objects.select_related("cluster", "schedule", "requested_by").defer("content")
    if not scope.sees_all:
        return rows.none()
    wanted = Q()
    if cluster:
        wanted &= Q(cluster__name=cluster)
    if schedule:
        wanted &= Q(due_at=None) if schedule == "-" else Q(schedule__name=schedule)
    if state:
        wanted &= Q(state=state)
    return rows.filter(wanted)


def report_get(*, scope: Scope, report_id: int) -> Report:
    """Return one report with its content; ``Report.DoesNotExist`` where it is not there or not visible."""
    rows = Report.objects.select_related("cluster", "schedule", "requested_by", "previous").defer("previous__content")
    return (rows if scope.sees_all else rows.none()).get(pk=report_id)


def report_content(report: Report) -> Content:
    """Return what a report says; ``ApplicationError`` where it is not made, or made by a version too far away."""
    if report.state != ReportState.DONE:
        raise ApplicationError("report_not_made", "This report is not made")
    try:
        return report.data()
    except msgspec.ValidationError as error:
        raise ApplicationError("report_not_readable", "This report was written by another version") from error


def report_before(report: Report) -> Report | None:
    """Return what a report is compared with by itself: the one before of its schedule, else of its length.

    One that somebody asked for is compared with a range that ended when its own began, or earlier.
    """
    made = Report.objects.filter(cluster=report.cluster_id, state=ReportState.DONE).exclude(pk=report.pk)
    if report.schedule_id is not None and report.due_at is not None:
        earlier = made.filter(schedule=report.schedule_id, due_at__lt=report.due_at).order_by("-due_at").first()
        if earlier is not None:
            return earlier
    return _of_length(made, report).filter(end__lte=report.start).first()


def report_choices(report: Report, *, most: int = 20) -> list[Report]:
    """Return other reports of the same cluster and length, newest first, that this one can be compared with."""
    made = Report.objects.filter(cluster=report.cluster_id, state=ReportState.DONE).exclude(pk=report.pk)
    return list(_of_length(made, report).defer("content")[:most])


def schedule_list(*, scope: Scope) -> QuerySet[ReportSchedule]:
    """Return the schedules by name, with their clusters and channels."""
    rows = ReportSchedule.objects.prefetch_related("clusters", "channels")
    return rows if scope.sees_all else rows.none()


def schedule_get(*, scope: Scope, schedule_id: int) -> ReportSchedule:
    """Return one schedule; ``ReportSchedule.DoesNotExist`` where it is not there or not visible."""
    return schedule_list(scope=scope).get(pk=schedule_id)


def _of_length(rows: QuerySet[Report], report: Report) -> QuerySet[Report]:
    return rows.annotate(covers=F("end") - F("start")).filter(covers=report.end - report.start)
