"""However ticks, jumping clocks and several workers mix: no due moment is reported twice, and none goes uncounted."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest
from django.db.models import Sum
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.accounts.models import User
from apps.clusters.models import Cluster
from apps.reports import services
from apps.reports.choices import Frequency, Weekday
from apps.reports.models import Report, ReportSchedule
from apps.reports.schedule import due_moments
from apps.reports.scheduling import ScheduleValues, schedule_save

START = datetime(2026, 3, 20, 12, 0, tzinfo=UTC)
"""A week before clocks change in Europe and two after they did in America."""
steps = st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(days=6))
jumps = st.timedeltas(min_value=timedelta(days=-5), max_value=timedelta(days=6))
values = st.builds(
    ScheduleValues,
    name=st.just("Plan"),
    frequency=st.sampled_from(list(Frequency)),
    weekday=st.sampled_from(list(Weekday)),
    at=st.times().map(lambda at: at.replace(second=0, microsecond=0)),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Kiritimati"]),
)
some = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def fresh(wanted: ScheduleValues, admin: User) -> ReportSchedule:
    Report.objects.all().delete()
    ReportSchedule.objects.all().delete()
    return schedule_save(values=wanted, actor=admin, now=START)


@pytest.mark.django_db
@given(wanted=values, waits=st.lists(steps, min_size=1, max_size=8))
@some
def test_each_due_moment_is_made_or_counted_as_missed(
    cluster: Cluster, admin: User, wanted: ScheduleValues, waits: list[timedelta]
) -> None:
    schedule, now = fresh(wanted, admin), START
    expected = set()
    for wait in waits:
        now += wait
        services.reports_due(now=now)
        expected |= set(list(due_moments(schedule.plan, after=START, until=now))[-1:])
    assert set(Report.objects.values_list("due_at", flat=True)) == expected
    missed = Report.objects.aggregate(missed=Sum("missed"))["missed"] or 0
    assert len(expected) + missed == len(list(due_moments(schedule.plan, after=START, until=now)))


@pytest.mark.django_db
@given(wanted=values, ticks=st.lists(st.tuples(jumps, st.booleans()), min_size=1, max_size=10))
@some
def test_no_jump_of_the_clock_and_no_stale_worker_makes_a_second_one(
    cluster: Cluster, admin: User, wanted: ScheduleValues, ticks: list[tuple[timedelta, bool]]
) -> None:
    stale, now = fresh(wanted, admin), START
    for jump, is_stale in ticks:
        now += jump
        if is_stale:
            services._schedule_follow(stale, now=now)
        services.reports_due(now=now)
    made = list(Report.objects.values_list("due_at", flat=True))
    assert len(made) == len(set(made))
    # Once the clock goes on as it should, the next moment is never skipped.
    after = max(now, START)
    (due,) = list(due_moments(stale.plan, after=after, until=after + timedelta(days=9)))[:1]
    services.reports_due(now=due)
    assert Report.objects.filter(due_at=due).count() == 1


def test_the_plan_of_a_schedule_is_what_it_says() -> None:
    schedule = ReportSchedule(frequency=Frequency.WEEKLY, weekday=Weekday.SUNDAY, at=time(23, 30), zone="Asia/Tokyo")
    (due,) = due_moments(schedule.plan, after=START, until=START + timedelta(days=7))
    assert due == datetime(2026, 3, 22, 14, 30, tzinfo=UTC)
