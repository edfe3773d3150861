"""What charts and feeds are made of: timelines added up, gaps named, nothing of others' namespaces."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from apps.accounts.scope import EVERYTHING, Scope
from apps.clusters.models import Cluster, PollRun
from apps.diagnosis import selectors
from apps.diagnosis.models import ReasonTimeline
from apps.diagnosis.selectors import WaitingSeries, change_list, waiting_series
from apps.workloads.models import Gang
from tests.apps.diagnosis.conftest import NOW

BOB = Scope(namespaces=frozenset({("east", "team-a")}))


@pytest.fixture
def gang(east: Cluster) -> Gang:
    return Gang.objects.create(
        cluster=east, uid="u1", namespace="team-a", name="g1", first_seen_at=NOW, last_seen_at=NOW
    )


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def row(gang: Gang, opened: float, closed: float | None, **more: Any) -> None:
    fields = {"verdict": "NO_FIT", "code": "GPUS_BUSY", "state": "waits", "gpus": 8, "who": "owner"} | more
    ReasonTimeline.objects.create(
        gang=gang, opened_at=at(opened), closed_at=None if closed is None else at(closed), **fields
    )


def series(scope: Scope = EVERYTHING, cluster: str = "") -> WaitingSeries:
    return waiting_series(scope=scope, since=at(0), until=at(60), cluster=cluster)


def steps(found: WaitingSeries, verdict: str) -> dict[float, float]:
    """Return the level of one verdict by minute, where it changes."""
    levels = zip(found.times, found.verdicts[verdict], strict=True)
    return {(moment - NOW).total_seconds() / 60: gpus for moment, gpus in levels}


def test_levels_step_where_rows_open_and_close(gang: Gang) -> None:
    row(gang, -30, 10)
    row(gang, 10, 20, gpus=16)
    row(gang, 20, None, verdict="POLICY", code="QUEUE_LIMIT", gpus=4)
    found = series()
    assert steps(found, "NO_FIT") == {0: 8, 10: 16, 20: 0, 60: 0}
    assert steps(found, "POLICY") == {0: 0, 10: 0, 20: 4, 60: 4}
    assert list(found.verdicts) == ["NO_FIT", "POLICY"]


def test_rows_outside_the_span_and_rows_that_do_not_wait_do_not_count(gang: Gang) -> None:
    row(gang, -30, -10)
    row(gang, 5, 10, state="fine")
    row(gang, 70, None)
    assert series().verdicts == {}


def test_fractions_that_come_and_go_end_at_zero(gang: Gang) -> None:
    for minute in range(3):
        row(gang, minute, minute + 0.5, gpus=0.1)
    assert steps(series(), "NO_FIT")[60] == 0


def test_a_long_history_is_thinned_and_keeps_its_ends(gang: Gang, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selectors, "SERIES_POINTS_MAX", 20)
    for minute in range(50):
        row(gang, minute, minute + 0.5)
    found = series()
    assert 10 < len(found.times) <= 41
    assert (found.times[0], found.times[-1]) == (at(0), at(60))
    assert set(found.verdicts["NO_FIT"]) <= {0, 8}


def test_spans_without_a_reading_are_gaps(east: Cluster, settings: Settings) -> None:
    settings.GANGDASH_POLL_SECONDS = 15
    outcomes = [(0, "read"), (0.25, "read"), (0.5, "failed"), (5, "partial"), (5.25, "read")]
    for minute, outcome in outcomes:
        PollRun.objects.create(cluster=east, started_at=at(minute), ended_at=at(minute), outcome=outcome)
    assert series(cluster="east").gaps == ((at(0.25), at(5)),)
    assert series().gaps == ()


def test_changes_say_what_it_was_before_and_come_newest_first(gang: Gang) -> None:
    row(gang, 0, 10)
    row(gang, 10, None, verdict="POLICY", code="QUEUE_LIMIT")
    found = list(change_list(scope=EVERYTHING, since=at(0)))
    assert [(r.code, r.was_verdict, r.was_code) for r in found] == [  # type: ignore[attr-defined]
        ("QUEUE_LIMIT", "NO_FIT", "GPUS_BUSY"),
        ("GPUS_BUSY", None, None),
    ]
    assert [r.code for r in change_list(scope=EVERYTHING, since=at(5))] == ["QUEUE_LIMIT"]


def test_charts_and_feeds_hold_what_the_reader_may_see(gang: Gang, east: Cluster) -> None:
    other = Gang.objects.create(
        cluster=east, uid="u2", namespace="team-b", name="g2", first_seen_at=NOW, last_seen_at=NOW
    )
    row(gang, 0, None)
    row(other, 0, None, gpus=100)
    assert steps(series(BOB), "NO_FIT")[60] == 8
    assert steps(series(), "NO_FIT")[60] == 108
    assert change_list(scope=BOB, since=at(0)).count() == 1
    assert series(cluster="west").verdicts == {}
