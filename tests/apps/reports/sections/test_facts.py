"""The sums behind sections, one at a time: steps of a span, windows of changes, first few of many, outages, forks."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.clusters.models import Cluster
from apps.errors import ApplicationError
from apps.reports.build import build_content
from apps.reports.facts.hardware import Change, outage_of
from apps.reports.facts.period import Period
from apps.reports.facts.waiting import KEPT, First, WaitingGang
from apps.reports.facts.waits import GangFacts, WaitTally, most_within
from apps.reports.sections.why import FORKS, fork_of
from apps.reports.words import number, signed
from gangdash.engine.verdict import ReasonCode
from tests.apps.reports.sections.build import END, period

HOUR = timedelta(hours=1)


@given(st.integers(1, 92 * 24 * 60))
def test_steps_cover_a_span_of_any_length_once(minutes: int) -> None:
    span = Period("c", 1, END - timedelta(minutes=minutes), END, END)
    assert span.steps <= 200
    assert sum(span.step_seconds(number) for number in range(span.steps)) == pytest.approx(minutes * 60)
    assert len(span.step_starts) == span.steps


@given(st.lists(st.integers(0, 200), max_size=30).map(sorted), st.integers(1, 50))
def test_the_most_within_a_window_is_what_counting_finds(moments: list[int], window: int) -> None:
    most, at = most_within([float(moment) for moment in moments], window)
    right = [sum(moment <= other <= moment + window for other in moments) for moment in moments]
    assert most == max(right, default=0)
    if moments:
        assert sum(at <= moment <= at + window for moment in moments) == most


@given(st.lists(st.integers(0, 1000), max_size=5 * KEPT))
def test_the_first_few_of_many_are_the_first_few_of_all(costs: list[int]) -> None:
    first = First(lambda gang: (-gang.gpus, gang.gang.pk))
    gangs = [_waiting(number, cost) for number, cost in enumerate(costs)]
    for gang in gangs:
        first.add(gang)
    assert first.total == len(costs)
    assert list(first.result()) == sorted(gangs, key=lambda gang: (-gang.gpus, gang.gang.pk))[:KEPT]


def _waiting(number: int, gpus: float) -> WaitingGang:
    gang = GangFacts(number, str(number), "a", str(number), "q", gpus)
    return WaitingGang(gang, "NO_FIT", "GPUS_BUSY", "wait", "-", gpus, END, None)


def _change(hours: float, state: str, was: str = "") -> Change:
    return Change("node-1", END - hours * HOUR, state, was, "")


@pytest.mark.parametrize(
    "before, changes, away, times",
    [
        (_change(30, "ready"), [], 0, 0),
        (_change(30, "cordoned"), [], 24, 0),
        (_change(30, "ready"), [_change(6, "not_ready", "ready")], 6, 1),
        (_change(30, "ready"), [_change(6, "not_ready", "ready"), _change(4, "cordoned", "not_ready")], 6, 1),
        (_change(30, "cordoned"), [_change(20, "ready", "cordoned"), _change(1, "gone", "ready")], 5, 1),
        (None, [_change(10, "ready"), _change(4, "tainted", "ready"), _change(3, "ready", "tainted")], 1, 1),
        (None, [_change(10, "ready", "cordoned")], 14, 0),
        (None, [_change(10, "cordoned")], 10, 1),
    ],
)
def test_what_was_away_is_counted_from_what_is_known(
    before: Change | None, changes: list[Change], away: float, times: int
) -> None:
    found = outage_of(period(), before, changes, "ready")
    assert (found.away_seconds / 3600, found.times) == (away, times)


def test_waiting_is_cut_at_both_ends_of_the_span_and_fills_the_steps_between() -> None:
    tally = WaitTally(period(hours=3))
    gang = GangFacts(1, "1", "a", "g", "q", 4)
    opened, closed = END - timedelta(hours=8), END - timedelta(minutes=30)
    tally.add(gang, [(1, "NO_FIT", "GPUS_BUSY", "waits", 4.0, opened, closed)])
    found = tally.result()
    assert [(code.gpu_seconds / 3600, code.before / 3600, code.gangs) for code in found.codes] == [(10, 12, 1)]
    assert found.levels == {"NO_FIT": (4, 4, 2)}
    assert found.demand == {"q": frozenset({0, 1, 2})}
    assert not found.opened


def test_a_gang_that_is_not_handed_over_yet_asks_its_queue_for_nothing() -> None:
    tally = WaitTally(period(hours=3))
    gang = GangFacts(1, "1", "a", "g", "q", 4)
    moments = [END - timedelta(hours=hours) for hours in (3, 2, 1)]
    rows = [("GATED", "SCHEDULING_GATE"), ("CONFIG", "QUEUE_MISSING"), ("NO_FIT", "GPUS_BUSY")]
    ends = [*moments[1:], None]
    tally.add(gang, [(1, *words, "waits", 4.0, opened, closed)
                     for words, opened, closed in zip(rows, moments, ends, strict=True)])  # fmt: skip
    assert tally.result().demand == {"q": frozenset({2})}


def test_every_code_has_a_fork() -> None:
    assert {fork_of(code) for code in ReasonCode} == set(FORKS)


@pytest.mark.parametrize(
    "value, text",
    [(0, "0"), (-0.001, "0"), (0.254, "0.25"), (9.996, "10"), (12.5, "12"), (1204, "1,204"), (-3, "\u22123")],
)
def test_numbers_are_written_short(value: float, text: str) -> None:
    assert number(value) == text
    assert signed(value).lstrip("+") == text


@pytest.mark.django_db
def test_a_span_that_has_not_begun_is_refused() -> None:
    cluster = Cluster.objects.create(name="fjord-1", source="folder")
    with pytest.raises(ApplicationError, match="has not begun"):
        build_content(cluster, start=END, end=END + HOUR, now=END)
