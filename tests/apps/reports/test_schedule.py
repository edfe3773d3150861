"""When schedules are due: every zone and year, days that clocks make longer or shorter, and no moment twice."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.reports.schedule import Every, Plan, due_moments, instant, next_due
from apps.reports.scheduling import zone_names

DAY = timedelta(days=1)
zones = st.sampled_from(zone_names())
seconds = st.integers(min_value=int(datetime(1990, 1, 1, tzinfo=UTC).timestamp()), max_value=2_840_000_000)
starts = seconds.map(lambda second: datetime.fromtimestamp(second, UTC))
walls = starts.map(lambda moment: moment.replace(tzinfo=None, second=0))
clocks = st.times().map(lambda at: at.replace(second=0, microsecond=0))
plans = st.builds(
    Plan, every=st.sampled_from(list(Every)), weekday=st.integers(min_value=0, max_value=6), at=clocks, zone=zones
)


def daily(at: time, zone: str) -> Plan:
    return Plan(Every.DAY, 0, at, zone)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def test_a_daily_report_keeps_its_wall_clock_over_the_change_of_clocks() -> None:
    found = list(due_moments(daily(time(8), "Europe/Berlin"), after=utc(2026, 3, 27, 12), until=utc(2026, 3, 30, 12)))
    assert found == [utc(2026, 3, 28, 7), utc(2026, 3, 29, 6), utc(2026, 3, 30, 6)]


def test_a_time_that_the_zone_skips_is_the_first_instant_after_the_gap() -> None:
    found = list(due_moments(daily(time(2, 30), "Europe/Berlin"), after=utc(2026, 3, 28, 12), until=utc(2026, 3, 30)))
    assert found == [utc(2026, 3, 29, 1)]
    assert found[0].astimezone(ZoneInfo("Europe/Berlin")).time() == time(3)


def test_a_time_that_the_zone_shows_twice_counts_once_the_first_time() -> None:
    found = list(due_moments(daily(time(2, 30), "Europe/Berlin"), after=utc(2026, 10, 24, 12), until=utc(2026, 10, 26)))
    assert found == [utc(2026, 10, 25, 0, 30)]


def test_a_change_of_half_an_hour_and_one_at_midnight_are_met_to_the_second() -> None:
    half = daily(time(2, 10), "Australia/Lord_Howe")
    assert list(due_moments(half, after=utc(2026, 10, 3), until=utc(2026, 10, 4))) == [utc(2026, 10, 3, 15, 30)]
    midnight = daily(time(0), "Africa/Cairo")
    assert list(due_moments(midnight, after=utc(2026, 4, 23), until=utc(2026, 4, 24))) == [utc(2026, 4, 23, 22)]


def test_a_day_that_a_zone_leaves_out_gives_one_report_not_two_at_the_same_instant() -> None:
    found = list(due_moments(daily(time(0), "Pacific/Apia"), after=utc(2011, 12, 28), until=utc(2012, 1, 1)))
    assert found == sorted(set(found))
    assert utc(2011, 12, 30, 10) in found


def test_a_weekly_report_is_due_on_its_day_there_not_here() -> None:
    plan = Plan(Every.WEEK, 0, time(8), "Pacific/Auckland")
    found = list(due_moments(plan, after=utc(2026, 11, 1), until=utc(2026, 11, 30)))
    assert found == [utc(2026, 11, day, 19) for day in (1, 8, 15, 22, 29)]
    assert next_due(plan, after=found[-1]) == utc(2026, 12, 6, 19)


def test_the_bounds_are_open_below_and_closed_above() -> None:
    plan = daily(time(8), "UTC")
    assert list(due_moments(plan, after=utc(2026, 1, 1, 8), until=utc(2026, 1, 2, 8))) == [utc(2026, 1, 2, 8)]
    assert not list(due_moments(plan, after=utc(2026, 1, 1, 8), until=utc(2026, 1, 2, 7, 59, 59)))
    assert not list(due_moments(plan, after=utc(2026, 1, 2), until=utc(2026, 1, 1)))


@given(plan=plans, start=starts, days=st.integers(min_value=1, max_value=40))
@settings(max_examples=150)
def test_each_local_day_has_its_moment_and_none_comes_twice(plan: Plan, start: datetime, days: int) -> None:
    zone = ZoneInfo(plan.zone)
    found = list(due_moments(plan, after=start, until=start + days * DAY))
    assert all(a < b for a, b in pairwise(found))
    assert all(start < moment <= start + days * DAY for moment in found)
    shown = [moment.astimezone(zone) for moment in found]
    # A moment shows its own wall time; where the clocks skip that, the second before shows an earlier one.
    for local, moment in zip(shown, found, strict=True):
        wall = local.replace(tzinfo=None, fold=0)
        if wall.time() != plan.at:
            earlier = (moment - timedelta(seconds=1)).astimezone(zone).replace(tzinfo=None, fold=0)
            assert wall - earlier > timedelta(seconds=1)
        assert local.fold == 0
    if plan.every == Every.DAY:
        assert abs(len(found) - days) <= 1


@given(plan=plans, start=starts, cuts=st.lists(st.integers(min_value=0, max_value=40 * 24), max_size=6))
@settings(max_examples=100)
def test_looking_often_finds_the_same_as_looking_once(plan: Plan, start: datetime, cuts: list[int]) -> None:
    end = start + 40 * DAY
    edges = [start, *(start + timedelta(hours=cut) for cut in sorted(cuts)), end]
    pieces = [moment for a, b in pairwise(edges) for moment in due_moments(plan, after=a, until=b)]
    assert pieces == list(due_moments(plan, after=start, until=end))


@given(zone=zones, wall=walls)
@settings(max_examples=200)
def test_an_instant_is_the_first_at_which_the_clock_has_come_that_far(zone: str, wall: datetime) -> None:
    found = instant(wall, ZoneInfo(zone))
    shown = found.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    before = (found - timedelta(seconds=1)).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    assert shown >= wall
    assert before < wall


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Tehran"])
def test_a_year_has_one_report_for_each_of_its_days(zone: str) -> None:
    for at in (time(0), time(2, 30), time(23, 59)):
        found = list(due_moments(daily(at, zone), after=utc(2021, 12, 30), until=utc(2023, 1, 3)))
        days = [moment.astimezone(ZoneInfo(zone)).date() for moment in found]
        assert {date(2022, 1, 1) + n * DAY for n in range(365)} <= set(days)
        assert len(days) == len(set(days))
