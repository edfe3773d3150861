"""Reports by schedule and on demand: each due moment once, however often anyone looks or dies on the way."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import IntegrityError, transaction

from apps.accounts.models import AuditEntry, User
from apps.clusters.models import Cluster
from apps.delivery.messages import decode
from apps.delivery.models import Channel, Delivery
from apps.delivery.services import enqueue
from apps.errors import ApplicationError
from apps.reports import services, tasks
from apps.reports.choices import Coverage, Frequency, ReportForm, ReportState
from apps.reports.models import Report, ReportSchedule
from apps.reports.ranges import parse_range
from apps.reports.scheduling import ScheduleValues, schedule_delete, schedule_save
from apps.reports.services import (
    ATTEMPTS_MAX,
    HOLD,
    report_claim,
    report_fail,
    report_request,
    report_run,
    report_send,
    reports_due,
    reports_prune,
    reports_waiting,
)
from tests.apps.reports.conftest import Maker

DAY = timedelta(days=1)
NOW = datetime(2026, 11, 30, 7, 0, tzinfo=UTC)
EIGHT = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


def daily(admin: User, **changes: Any) -> ReportSchedule:
    values = ScheduleValues(name=changes.pop("name", "Daily"), **{"at": time(8), **changes})
    return schedule_save(values=values, actor=admin, now=NOW)


def make(report: Report, *, now: datetime = EIGHT) -> Report:
    claimed = report_claim(report_id=report.pk, now=now)
    assert claimed is not None
    report_run(report=claimed, now=now)
    report.refresh_from_db()
    return report


# --- due, and caught up ------------------------------------------------------------------------------------------


def test_nothing_is_due_before_its_moment_and_one_report_after(cluster: Cluster, admin: User) -> None:
    daily(admin)
    assert reports_due(now=EIGHT - timedelta(seconds=1)) == []
    (report,) = reports_due(now=EIGHT + timedelta(seconds=5))
    assert (report.due_at, report.end, report.start, report.missed) == (EIGHT, EIGHT, EIGHT - DAY, 0)
    assert (report.title, report.cluster.name, report.state) == ("Daily", "fjord-1", ReportState.WAITING)


def test_looking_again_makes_no_second_one(cluster: Cluster, admin: User) -> None:
    daily(admin)
    for seconds in (0, 1, 30, 3600):
        reports_due(now=EIGHT + timedelta(seconds=seconds))
    assert Report.objects.count() == 1


def test_missed_moments_are_caught_up_once_and_counted(cluster: Cluster, admin: User) -> None:
    daily(admin)
    (report,) = reports_due(now=EIGHT + 4 * DAY + timedelta(hours=3))
    assert (report.due_at, report.missed) == (EIGHT + 4 * DAY, 4)
    assert reports_due(now=EIGHT + 4 * DAY + timedelta(hours=4)) == []
    (following,) = reports_due(now=EIGHT + 5 * DAY)
    assert (following.due_at, following.missed) == (EIGHT + 5 * DAY, 0)


def test_two_workers_that_saw_the_same_schedule_make_one_report(cluster: Cluster, admin: User) -> None:
    seen_by_both = daily(admin)
    first = services._schedule_follow(ReportSchedule.objects.get(pk=seen_by_both.pk), now=EIGHT)
    second = services._schedule_follow(seen_by_both, now=EIGHT)
    assert (len(first), len(second)) == (1, 0)
    assert Report.objects.count() == 1


def test_the_database_refuses_a_second_row_of_a_moment(cluster: Cluster, admin: User) -> None:
    schedule = daily(admin)
    values = {"cluster": cluster, "schedule": schedule, "due_at": EIGHT, "start": NOW, "end": EIGHT}
    Report.objects.create(**values)
    with pytest.raises(IntegrityError), transaction.atomic():
        Report.objects.create(**values)


def test_death_before_the_commit_leaves_the_moment_due(
    cluster: Cluster, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = daily(admin)
    west = Cluster.objects.create(name="west", source="folder")
    real = ReportSchedule.covered_from
    monkeypatch.setattr(ReportSchedule, "covered_from", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        reports_due(now=EIGHT)
    assert not Report.objects.exists()
    monkeypatch.setattr(ReportSchedule, "covered_from", real)
    assert {report.cluster for report in reports_due(now=EIGHT)} == {cluster, west}
    schedule.refresh_from_db()
    assert schedule.due_after == EIGHT


def test_a_clock_that_goes_back_repeats_nothing_and_one_that_was_far_ahead_loses_nothing(
    cluster: Cluster, admin: User
) -> None:
    daily(admin)
    reports_due(now=EIGHT + timedelta(minutes=1))
    assert reports_due(now=EIGHT - timedelta(minutes=5)) == []
    assert reports_due(now=EIGHT + timedelta(minutes=2)) == []
    reports_due(now=EIGHT + 400 * DAY)
    assert reports_due(now=EIGHT + timedelta(minutes=3)) == []
    (report,) = reports_due(now=EIGHT + DAY)
    assert report.due_at == EIGHT + DAY


def test_a_change_of_clocks_is_covered_once_and_whole(cluster: Cluster, admin: User) -> None:
    schedule = daily(admin, zone="Europe/Berlin")
    ReportSchedule.objects.update(due_after=datetime(2026, 10, 24, 12, tzinfo=UTC))
    schedule.refresh_from_db()
    (long,) = services._schedule_follow(schedule, now=datetime(2026, 10, 25, 12, tzinfo=UTC))
    assert long.end - long.start == timedelta(hours=25)
    schedule.refresh_from_db()
    (next_one,) = services._schedule_follow(schedule, now=datetime(2026, 10, 26, 12, tzinfo=UTC))
    assert next_one.start == long.end


@pytest.mark.parametrize(
    "hours, covered", [(Coverage.DAY, DAY), (Coverage.WEEK, 7 * DAY), (Coverage.SINCE_LAST, 7 * DAY)]
)
def test_a_weekly_report_covers_what_it_is_told(
    cluster: Cluster, admin: User, hours: Coverage, covered: timedelta
) -> None:
    daily(admin, frequency=Frequency.WEEKLY, coverage_hours=hours)
    (report,) = reports_due(now=EIGHT)
    assert report.end - report.start == covered


def test_a_schedule_makes_its_own_clusters_that_are_read_and_a_switched_off_one_none(
    cluster: Cluster, admin: User
) -> None:
    west = Cluster.objects.create(name="west", source="folder")
    Cluster.objects.create(name="gone", source="folder", is_read=False)
    daily(admin, name="All")
    daily(admin, name="West", clusters=(west,))
    daily(admin, name="Off", is_enabled=False)
    made = {(report.title, report.cluster.name) for report in reports_due(now=EIGHT)}
    assert made == {("All", "fjord-1"), ("All", "west"), ("West", "west")}


def test_a_new_plan_counts_from_now_and_a_new_name_changes_nothing(cluster: Cluster, admin: User) -> None:
    schedule = daily(admin)
    values = ScheduleValues(name="Renamed", at=time(8))
    schedule_save(values=values, actor=admin, now=EIGHT + timedelta(minutes=1), schedule=schedule)
    assert schedule.due_after == NOW
    values = ScheduleValues(name="Renamed", at=time(7, 30))
    schedule_save(values=values, actor=admin, now=EIGHT + timedelta(minutes=1), schedule=schedule)
    assert reports_due(now=EIGHT + timedelta(minutes=2)) == []


# --- what may be saved -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes, code",
    [
        ({"name": ""}, "schedule_not_valid"),
        ({"name": "a\x00b"}, "schedule_not_valid"),
        ({"name": "x" * 101}, "schedule_not_valid"),
        ({"zone": "Nowhere/Else"}, "schedule_not_valid"),
        ({"zone": "../../etc/passwd"}, "schedule_not_valid"),
        ({"zone": "localtime"}, "schedule_not_valid"),
    ],
)
def test_what_cannot_be_followed_is_not_saved(admin: User, changes: dict[str, Any], code: str) -> None:
    with pytest.raises(ApplicationError) as refused:
        daily(admin, **changes)
    assert refused.value.code == code
    assert not ReportSchedule.objects.exists()


def test_a_name_is_taken_once(admin: User) -> None:
    daily(admin)
    with pytest.raises(ApplicationError, match="a schedule named 'Daily' already"):
        daily(admin)


def test_a_channel_that_may_not_hear_all_namespaces_gets_no_reports(
    cluster: Cluster, admin: User, channel: Channel
) -> None:
    Channel.objects.update(namespaces=["team-a"])
    channel.refresh_from_db()
    with pytest.raises(ApplicationError, match="gpu-admins may not hear"):
        daily(admin, channels=(channel,))
    Channel.objects.update(namespaces=[], clusters=["fjord-1"])
    channel.refresh_from_db()
    with pytest.raises(ApplicationError):
        daily(admin, channels=(channel,))
    daily(admin, channels=(channel,), clusters=(cluster,))
    assert ReportSchedule.objects.get().channels.get() == channel


def test_changes_of_schedules_are_on_the_record(admin: User, channel: Channel) -> None:
    schedule = daily(admin, channels=(channel,))
    schedule_save(values=ScheduleValues(name="Other"), actor=admin, now=NOW, schedule=schedule)
    schedule_delete(schedule=schedule, actor=admin)
    actions = list(AuditEntry.objects.order_by("pk").values_list("action", "target"))
    assert actions == [
        ("report_schedule.create", "Daily"),
        ("report_schedule.change", "Other"),
        ("report_schedule.delete", "Other"),
    ]


def test_reports_outlive_their_schedule(cluster: Cluster, admin: User, maker: Maker) -> None:
    schedule = daily(admin)
    report = make(reports_due(now=EIGHT)[0])
    schedule_delete(schedule=schedule, actor=admin)
    report.refresh_from_db()
    assert (report.schedule, report.title, report.state) == (None, "Daily", ReportState.DONE)


# --- making one --------------------------------------------------------------------------------------------------


def test_a_made_report_is_kept_as_its_content(cluster: Cluster, admin: User, maker: Maker) -> None:
    daily(admin, zone="UTC")
    report = make(reports_due(now=EIGHT)[0])
    assert (report.state, report.attempts, report.started_at) == (ReportState.DONE, 1, EIGHT)
    assert report.ended_at is not None
    assert EIGHT < report.ended_at < EIGHT + timedelta(minutes=1)
    assert report.data().cluster == "fjord-1"
    assert report.headline.startswith("8 gangs wait for 102 GPUs")


def test_one_worker_makes_a_report_at_a_time(cluster: Cluster, admin: User, maker: Maker) -> None:
    daily(admin)
    (report,) = reports_due(now=EIGHT)
    assert report_claim(report_id=report.pk, now=EIGHT) is not None
    assert report_claim(report_id=report.pk, now=EIGHT + timedelta(minutes=1)) is None
    assert reports_waiting(now=EIGHT + timedelta(minutes=1)) == []
    assert reports_waiting(now=EIGHT + HOLD + timedelta(seconds=1)) == [report.pk]


def test_a_claim_from_before_the_clock_went_back_does_not_hold_for_as_long_as_it_went_back(
    cluster: Cluster, admin: User
) -> None:
    daily(admin)
    (report,) = reports_due(now=EIGHT)
    assert report_claim(report_id=report.pk, now=EIGHT + 30 * DAY) is not None
    assert reports_waiting(now=EIGHT) == [report.pk]
    assert report_claim(report_id=report.pk, now=EIGHT) is not None


def test_a_worker_that_lost_its_claim_changes_nothing(
    cluster: Cluster, admin: User, channel: Channel, maker: Maker
) -> None:
    daily(admin, channels=(channel,))
    (report,) = reports_due(now=EIGHT)
    slow = report_claim(report_id=report.pk, now=EIGHT)
    quick = report_claim(report_id=report.pk, now=EIGHT + HOLD + timedelta(seconds=1))
    assert slow is not None
    assert quick is not None
    report_run(report=quick, now=EIGHT + HOLD)
    report_run(report=slow, now=EIGHT + HOLD)
    report_fail(report=slow, detail="late", now=EIGHT + HOLD)
    report.refresh_from_db()
    assert (report.state, report.detail) == (ReportState.DONE, "")
    assert report.data().engine == "made 1"
    assert Delivery.objects.count() == 1


def test_death_between_content_and_delivery_leaves_both_undone(
    cluster: Cluster, admin: User, channel: Channel, maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    daily(admin, channels=(channel,))
    (report,) = reports_due(now=EIGHT)
    monkeypatch.setattr(services, "enqueue", lambda **_: (_ for _ in ()).throw(KeyboardInterrupt))
    claimed = report_claim(report_id=report.pk, now=EIGHT)
    assert claimed is not None
    with pytest.raises(KeyboardInterrupt):
        report_run(report=claimed, now=EIGHT)
    report.refresh_from_db()
    assert (report.state, report.content) == (ReportState.WAITING, "")
    monkeypatch.setattr(services, "enqueue", enqueue)
    make(report, now=EIGHT + HOLD + timedelta(seconds=1))
    assert Delivery.objects.count() == 1


def test_a_report_that_kills_its_workers_ends_after_some_attempts(cluster: Cluster, admin: User) -> None:
    daily(admin)
    (report,) = reports_due(now=EIGHT)
    now = EIGHT
    for _ in range(ATTEMPTS_MAX):
        assert report_claim(report_id=report.pk, now=now) is not None
        now += HOLD + timedelta(seconds=1)
    assert report_claim(report_id=report.pk, now=now) is None
    report.refresh_from_db()
    assert (report.state, report.detail) == (ReportState.FAILED, "Each attempt to make it ended without an answer.")


def test_a_scheduled_one_that_broke_is_tried_again_and_one_on_demand_is_not(
    cluster: Cluster, admin: User, maker: Maker, django_capture_on_commit_callbacks: Any
) -> None:
    daily(admin)
    (due,) = reports_due(now=datetime.now(UTC) + DAY)
    asked = report_request(user=admin, cluster=cluster, covered=parse_range("24h", now=EIGHT))
    maker.error = OSError("database is locked")
    tasks.make_report(due.pk)
    tasks.make_report(asked.pk)
    due.refresh_from_db()
    asked.refresh_from_db()
    assert (due.state, due.detail) == (ReportState.WAITING, "OSError: database is locked")
    assert (asked.state, asked.detail) == (ReportState.FAILED, "OSError: database is locked")
    maker.error = None
    Report.objects.filter(pk=due.pk).update(started_at=datetime.now(UTC) - HOLD - timedelta(seconds=1))
    tasks.make_report(due.pk)
    due.refresh_from_db()
    assert (due.state, due.detail, due.attempts) == (ReportState.DONE, "", 2)


def test_one_that_takes_too_long_says_so(cluster: Cluster, admin: User, maker: Maker) -> None:
    asked = report_request(user=admin, cluster=cluster, covered=parse_range("24h", now=EIGHT))
    maker.error = SoftTimeLimitExceeded()
    tasks.make_report(asked.pk)
    asked.refresh_from_db()
    assert (asked.state, asked.detail) == (ReportState.FAILED, "It took longer than 600 s to make.")


def test_the_tick_takes_on_and_asks_for_what_waits(
    cluster: Cluster, admin: User, maker: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    daily(admin)
    ReportSchedule.objects.update(due_after=datetime.now(UTC) - 2 * DAY)
    asked: list[int] = []
    monkeypatch.setattr(services, "report_ask", lambda *, report_id: asked.append(report_id))
    tasks.run_due()
    tasks.run_due()
    (report,) = Report.objects.all()
    assert asked == [report.pk, report.pk]
    for _ in range(2):
        tasks.make_report(report.pk)
    report.refresh_from_db()
    assert (report.state, report.attempts) == (ReportState.DONE, 1)
    tasks.run_due()
    assert len(asked) == 2


# --- compared with the one before --------------------------------------------------------------------------------


def test_a_report_is_compared_with_the_one_before_of_its_schedule(cluster: Cluster, admin: User, maker: Maker) -> None:
    daily(admin)
    first = make(reports_due(now=EIGHT)[0])
    second = make(reports_due(now=EIGHT + DAY)[0], now=EIGHT + DAY)
    assert maker.asked[0]["previous"] is None
    assert maker.asked[1]["previous"] == first.data()
    assert second.previous == first


def test_one_on_demand_is_compared_with_an_earlier_range_of_its_length(
    cluster: Cluster, admin: User, maker: Maker
) -> None:
    daily(admin)
    scheduled = make(reports_due(now=EIGHT)[0])
    later = EIGHT + DAY + timedelta(hours=6)
    asked = report_request(user=admin, cluster=cluster, covered=parse_range("24h", now=later))
    assert make(asked, now=later).previous == scheduled
    week = report_request(user=admin, cluster=cluster, covered=parse_range("7d", now=later))
    assert make(week, now=later).previous is None
    overlapping = report_request(
        user=admin, cluster=cluster, covered=parse_range("24h", now=EIGHT + timedelta(hours=1))
    )
    assert make(overlapping, now=later).previous is None


def test_a_kept_report_of_another_version_is_no_reason_to_fail(cluster: Cluster, admin: User, maker: Maker) -> None:
    daily(admin)
    make(reports_due(now=EIGHT)[0])
    Report.objects.update(content='{"version": 99}')
    make(reports_due(now=EIGHT + DAY)[0], now=EIGHT + DAY)
    assert maker.asked[1]["previous"] is None


# --- telling channels --------------------------------------------------------------------------------------------


def test_channels_are_told_with_files_links_and_the_whole_text(
    cluster: Cluster, admin: User, channel: Channel, maker: Maker, settings: Any
) -> None:
    settings.GANGDASH_BASE_URL = "https://gangdash.example"
    daily(admin, channels=(channel,), attached=(ReportForm.CSV, ReportForm.MARKDOWN))
    report = make(reports_due(now=EIGHT + 2 * DAY)[0])
    (delivery,) = Delivery.objects.all()
    message = decode(delivery.message)
    assert (delivery.kind, delivery.key, delivery.channel) == ("report", f"report:{report.pk}", channel)
    assert message.links[0].url == f"/reports/{report.pk}/"
    assert [file.name.rpartition(".")[2] for file in message.attachments] == ["csv", "md"]
    assert b"https://gangdash.example/clusters/fjord-1/gangs/" in message.attachments[1].content
    assert "Open the full report" in message.html
    assert message.title.startswith("8 gangs wait for 102 GPUs")
    assert message.lines[0].name == "whisper-large-ft-1"
    assert "2 earlier moments of this schedule passed without a report" in message.context
    assert "not read: device utilisation" in message.context


def test_a_channel_that_was_limited_since_is_passed_over(
    cluster: Cluster, admin: User, channel: Channel, maker: Maker
) -> None:
    daily(admin, channels=(channel,))
    Channel.objects.update(namespaces=["team-a"])
    assert make(reports_due(now=EIGHT)[0]).state == ReportState.DONE
    assert not Delivery.objects.exists()


def test_sending_by_hand_tells_a_channel_once(cluster: Cluster, admin: User, channel: Channel, maker: Maker) -> None:
    report = make(report_request(user=admin, cluster=cluster, covered=parse_range("24h", now=EIGHT)))
    for _ in range(2):
        report_send(report=report, channel=channel, actor=admin, now=EIGHT)
    (delivery,) = Delivery.objects.all()
    assert [file.name.rpartition(".")[2] for file in decode(delivery.message).attachments] == ["md", "csv"]
    waiting = report_request(user=admin, cluster=cluster, covered=parse_range("24h", now=EIGHT))
    with pytest.raises(ApplicationError, match="not made"):
        report_send(report=waiting, channel=channel, actor=admin, now=EIGHT)
    Channel.objects.update(clusters=["elsewhere"])
    channel.refresh_from_db()
    with pytest.raises(ApplicationError, match="may not hear of every namespace"):
        report_send(report=report, channel=channel, actor=admin, now=EIGHT)


# --- on demand ---------------------------------------------------------------------------------------------------


def test_one_person_waits_for_a_few_at_a_time(cluster: Cluster, admin: User) -> None:
    covered = parse_range("24h", now=EIGHT)
    for _ in range(3):
        report_request(user=admin, cluster=cluster, covered=covered)
    with pytest.raises(ApplicationError) as refused:
        report_request(user=admin, cluster=cluster, covered=covered)
    assert refused.value.code == "too_many_reports"
    assert AuditEntry.objects.filter(action="report.create").count() == 3


@pytest.mark.parametrize(
    "text, hours",
    [
        ("24h", 24),
        (" 7d ", 168),
        ("2026-11-29T08:00:00Z/2026-11-29T09:00:00+00:00", 1),
        ("2026-11-29T08:00+02:00/2026-11-29T08:00Z", 2),
    ],
)
def test_ranges_that_people_type(text: str, hours: int) -> None:
    found = parse_range(text, now=EIGHT)
    assert found.end - found.start == timedelta(hours=hours)
    assert found.end.tzinfo == UTC


@pytest.mark.parametrize(
    "text",
    [
        "", "h", "0h", "93d", "9999d", "24", "-1d", "24h/7d", "2026-11-29/2026-11-30",
        "2026-11-29T08:00/2026-11-30T08:00",
        "2026-11-30T08:00Z/2026-11-29T08:00Z", "2026-11-30T08:00Z/2026-12-30T08:00Z",
        "0001-01-01T00:00Z/9999-12-31T00:00Z",
        "\x00/\x00", "٣h", "1.5d",
    ],
)  # fmt: skip
def test_ranges_that_say_nothing_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(ApplicationError) as refused:
        parse_range(text, now=EIGHT)
    assert refused.value.code == "range_not_valid"
    assert "\n" not in refused.value.detail


# --- forgetting --------------------------------------------------------------------------------------------------


def _kept(cluster: Cluster, schedule: ReportSchedule | None, days: int) -> Report:
    end = EIGHT - days * DAY
    return Report.objects.create(
        cluster=cluster, schedule=schedule, due_at=end if schedule else None, start=end - DAY, end=end,
        state=ReportState.DONE,
    )  # fmt: skip


def test_old_reports_go_and_the_newest_of_a_schedule_stays(cluster: Cluster, admin: User, settings: Any) -> None:
    settings.GANGDASH_KEEP_REPORT_DAYS = 30
    schedule = daily(admin)
    kept = [_kept(cluster, schedule, 40), _kept(cluster, None, 10)]
    _kept(cluster, schedule, 41)
    _kept(cluster, None, 31)
    assert reports_prune(now=EIGHT) == 2
    assert set(Report.objects.all()) == set(kept)
    assert reports_prune(now=EIGHT) == 0


def test_each_cluster_keeps_so_many(cluster: Cluster, settings: Any) -> None:
    settings.GANGDASH_KEEP_REPORTS = 2
    west = Cluster.objects.create(name="west", source="folder")
    reports = [_kept(where, None, days) for where in (cluster, west) for days in (1, 2, 3)]
    tasks.prune()
    assert set(Report.objects.all()) == {reports[0], reports[1], reports[3], reports[4]}
