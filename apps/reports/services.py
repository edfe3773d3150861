"""Changes to reports: which are due, making one, sending one, forgetting old ones.

Any step may be lost or happen twice: a due moment makes one row per cluster, a row is made by one worker at a time,
and a channel is told of a report once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

import structlog
from celery import current_app
from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from apps.accounts.models import User
from apps.accounts.services import audit_record
from apps.clusters.models import Cluster
from apps.delivery.choices import DeliveryKind
from apps.delivery.messages import Message
from apps.delivery.models import Channel
from apps.delivery.services import enqueue
from apps.errors import ApplicationError
from apps.reports.build import build_content
from apps.reports.choices import USUALLY_ATTACHED, ReportState
from apps.reports.content import Content, content_encode
from apps.reports.models import Report, ReportSchedule
from apps.reports.ranges import Range
from apps.reports.renderers.prepare import tidy
from apps.reports.schedule import due_moments
from apps.reports.selectors import report_before, report_content
from apps.reports.telling import channel_may_have, report_message

logger = structlog.get_logger(__name__)

MAKE_TASK = "reports.make_report"
LIMIT_SECONDS = 600
"""A week with two million reasons takes a minute; ten say that something is wrong."""
HOLD = timedelta(seconds=LIMIT_SECONDS + 60)
ATTEMPTS_MAX = 3
WAITING_MAX = 3
"""Reports that one person may wait for at a time."""
TITLE_ASKED = "On demand"


# --- by schedule -------------------------------------------------------------------------------------------------


def reports_due(*, now: datetime) -> list[Report]:
    """Take on what the schedules owe by now and return the new rows."""
    made: list[Report] = []
    for schedule in ReportSchedule.objects.filter(is_enabled=True).order_by("pk"):
        made += _schedule_follow(schedule, now=now)
    return made


@transaction.atomic
def _schedule_follow(schedule: ReportSchedule, *, now: datetime) -> list[Report]:
    """Take on the newest moment that is due; the ones that passed unseen before it are counted, not made up for.

    A clock that went back finds ``due_after`` in the future and starts from now: the rows know what was made.
    """
    after = min(schedule.due_after, now)
    moments = list(due_moments(schedule.plan, after=after, until=now))
    made = _reports_take(schedule, due_at=moments[-1], missed=len(moments) - 1) if moments else []
    upto = moments[-1] if moments else after
    if upto != schedule.due_after:
        ReportSchedule.objects.filter(pk=schedule.pk, due_after=schedule.due_after).update(due_after=upto)
    return made


def _reports_take(schedule: ReportSchedule, *, due_at: datetime, missed: int) -> list[Report]:
    named = Cluster.objects.filter(pk__in=schedule.clusters.values("pk"))
    clusters = (named if named.exists() else Cluster.objects.all()).filter(is_read=True)
    start = schedule.covered_from(due_at)
    values = {"title": schedule.name, "start": start, "end": due_at, "zone": schedule.zone, "missed": missed}
    taken = (
        Report.objects.get_or_create(schedule=schedule, cluster=cluster, due_at=due_at, defaults=values)
        for cluster in clusters
    )
    return [report for report, is_new in taken if is_new]


# --- on demand ---------------------------------------------------------------------------------------------------


@transaction.atomic
def report_request(
    *, user: User, cluster: Cluster, covered: Range, zone: str = "UTC", address: str | None = None
) -> Report:
    """Take on a report that somebody asks for."""
    waiting = Report.objects.filter(requested_by=user, state=ReportState.WAITING).count()
    if waiting >= WAITING_MAX:
        raise ApplicationError("too_many_reports", f"{waiting} reports that you asked for are still being made")
    report = Report.objects.create(
        cluster=cluster, title=TITLE_ASKED, start=covered.start, end=covered.end, zone=zone, requested_by=user
    )
    audit_record(action="report.create", actor=user, target=str(report), address=address)
    transaction.on_commit(partial(report_ask, report_id=report.pk), robust=True)
    return report


# --- making one --------------------------------------------------------------------------------------------------


def report_ask(*, report_id: int) -> None:
    """Ask a worker to make a report; a lost request is repeated by the tick that looks for what waits."""
    current_app.send_task(
        MAKE_TASK,
        args=[report_id],
        queue="analyse",
        soft_time_limit=LIMIT_SECONDS,
        time_limit=LIMIT_SECONDS + 30,
        expires=LIMIT_SECONDS,
    )


def reports_waiting(*, now: datetime) -> list[int]:
    """Return reports that nobody makes yet, oldest first."""
    rows = Report.objects.filter(_is_free(now), state=ReportState.WAITING).order_by("created_at", "pk")
    return list(rows.values_list("pk", flat=True))


def report_claim(*, report_id: int, now: datetime) -> Report | None:
    """Take a report to make it; None where it is made, held or gone. Too many attempts end it."""
    waiting = Report.objects.filter(_is_free(now), pk=report_id, state=ReportState.WAITING)
    over = {"state": ReportState.FAILED, "ended_at": now, "detail": "Each attempt to make it ended without an answer."}
    if waiting.filter(attempts__gte=ATTEMPTS_MAX).update(**over):
        return None
    if not waiting.update(started_at=now, attempts=F("attempts") + 1):
        return None
    return Report.objects.select_related("cluster", "schedule").get(pk=report_id)


def report_run(*, report: Report, now: datetime) -> None:
    """Make a claimed report and tell its channels, both or neither; one whose claim has ended changes nothing."""
    began = time.monotonic()
    previous = report_before(report)
    content = _build(report, previous, now=now)
    packed, messages = content_encode(content).decode(), _messages(report, content)
    ended_at = now + timedelta(seconds=time.monotonic() - began)
    with transaction.atomic():
        claimed = Report.objects.filter(pk=report.pk, state=ReportState.WAITING, attempts=report.attempts)
        if claimed.update(
            state=ReportState.DONE,
            content=packed,
            headline=tidy(" ".join(content.headline[:1]))[:512],
            previous=previous,
            ended_at=ended_at,
            detail="",
        ):
            _channels_tell(report, messages, now=ended_at)


def content_of(*, cluster: Cluster, covered: Range, zone: str, now: datetime) -> Content:
    """Return what a report would say, kept nowhere."""
    report = Report(cluster=cluster, start=covered.start, end=covered.end, zone=zone)
    return _build(report, report_before(report), now=now)


def _build(report: Report, previous: Report | None, *, now: datetime) -> Content:
    return build_content(
        report.cluster,
        start=report.start,
        end=report.end,
        now=now,
        previous=_readable(previous) if previous else None,
        zone=report.zone,
    )


def report_fail(*, report: Report, detail: str, now: datetime) -> None:
    """Record that an attempt broke. One by schedule is tried again when its hold ends; a person may ask again."""
    claimed = Report.objects.filter(pk=report.pk, state=ReportState.WAITING, attempts=report.attempts)
    if report.due_at is not None and report.attempts < ATTEMPTS_MAX:
        claimed.update(detail=detail[:512])
    else:
        claimed.update(state=ReportState.FAILED, ended_at=now, detail=detail[:512])


def _readable(report: Report) -> Content | None:
    """Return what a kept report says; None where another version wrote it in a way that this one cannot read."""
    try:
        return report_content(report)
    except ApplicationError as error:
        logger.warning("kept_report_not_readable", report=report.pk, problem=error.detail)
        return None


def _is_free(now: datetime) -> Q:
    """Nobody makes it, or whoever does has had the time; a start in the future is from a clock that went back."""
    return Q(started_at=None) | Q(started_at__lt=now - HOLD) | Q(started_at__gt=now + HOLD)


# --- sending one -------------------------------------------------------------------------------------------------


def report_send(*, report: Report, channel: Channel, actor: User, now: datetime, address: str | None = None) -> None:
    """Tell one channel of a made report; a channel that was told already is not told again."""
    content = report_content(report)
    if not channel_may_have(channel, clusters=[report.cluster.name]):
        raise ApplicationError(
            "channel_is_limited", f"{channel.name} may not hear of every namespace of {report.cluster.name}"
        )
    message = _message(report, content, channel)
    with transaction.atomic():
        _channels_tell(report, [(channel, message)], now=now)
        audit_record(
            action="report.send", actor=actor, target=str(report), details={"channel": channel.name}, address=address
        )


def _messages(report: Report, content: Content) -> list[tuple[Channel, Message]]:
    """Return what the channels of a report's schedule are to be told; a channel that was limited since is passed over.

    Written before the transaction that sends it, which keeps others from writing.
    """
    found: list[tuple[Channel, Message]] = []
    for channel in report.schedule.channels.all() if report.schedule else ():
        if channel_may_have(channel, clusters=[report.cluster.name]):
            found.append((channel, _message(report, content, channel)))
        else:
            logger.warning("report_channel_is_limited", report=report.pk, channel=channel.name)
    return found


def _message(report: Report, content: Content, channel: Channel) -> Message:
    attached = report.schedule.attached if report.schedule else USUALLY_ATTACHED
    return report_message(report, content, kind=channel.kind, attached=attached, base_url=settings.GANGDASH_BASE_URL)


def _channels_tell(report: Report, messages: Iterable[tuple[Channel, Message]], *, now: datetime) -> None:
    for channel, message in messages:
        enqueue(channel=channel, kind=DeliveryKind.REPORT, key=f"report:{report.pk}", message=message, now=now)


# --- forgetting --------------------------------------------------------------------------------------------------


def reports_prune(*, now: datetime) -> int:
    """Delete reports that are older or more per cluster than the settings say, and return how many rows went.

    The newest made one of each schedule stays, so that the next has something to compare with.
    """
    before = now - timedelta(days=settings.GANGDASH_KEEP_REPORT_DAYS)
    old = set(Report.objects.filter(end__lt=before).values_list("pk", flat=True))
    for cluster in Cluster.objects.values_list("pk", flat=True):
        newest_first = Report.objects.filter(cluster=cluster).order_by("-end", "-pk").values_list("pk", flat=True)
        old.update(newest_first[settings.GANGDASH_KEEP_REPORTS :])
    deleted, _by_model = Report.objects.filter(pk__in=old - _newest_of_schedules()).delete()
    return deleted


def _newest_of_schedules() -> set[int]:
    made = Report.objects.filter(state=ReportState.DONE).exclude(schedule=None)
    newest: dict[tuple[int | None, int], int] = {}
    for pk, schedule, cluster in made.order_by("due_at", "pk").values_list("pk", "schedule", "cluster"):
        newest[schedule, cluster] = pk
    return set(newest.values())
