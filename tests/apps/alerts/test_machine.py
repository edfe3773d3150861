"""How findings become alerts: waiting, firing, calm, the end; flapping; and a clock that jumps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.alerts.machine import Timing, Track, step
from apps.alerts.rules.base import Finding
from tests.apps.alerts.pasts import at

TIMING = Timing(wait=timedelta(minutes=5), keep=timedelta(minutes=10))


def finding(name: str, minute: float) -> Finding:
    return Finding(name, at(minute), name, "")


def run(looks: Mapping[float, Sequence[Finding]], timing: Timing = TIMING) -> list[tuple[float, str, str]]:
    """Return what happened at which minute: fired, resolved or dropped."""
    tracks: Mapping[str, Track] = {}
    happened: list[tuple[float, str, str]] = []
    for minute, found in looks.items():
        done = step(tracks, found, timing, at(minute))
        tracks = done.tracks
        for word in ("fired", "resolved", "dropped"):
            happened += [(minute, word, track.signature) for track in getattr(done, word)]
    return happened


def test_a_finding_fires_once_it_has_lasted_and_ends_once_it_was_calm() -> None:
    looks: dict[float, list[Finding]] = {n: [finding("x", 2)] for n in range(2, 10)}
    looks |= {n: [] for n in range(10, 30)}
    assert run(looks) == [(7, "fired", "x"), (20, "resolved", "x")]


def test_the_time_counts_from_when_it_began_and_not_from_the_first_look() -> None:
    assert run({60: [finding("x", 0)]}) == [(60, "fired", "x")]


def test_a_finding_that_goes_before_its_time_is_dropped() -> None:
    assert run({0: [finding("x", 0)], 4: [], 5: [finding("x", 5)], 9: [finding("x", 5)]}) == [(4, "dropped", "x")]


def test_one_that_comes_back_while_it_is_kept_goes_on_without_a_word() -> None:
    looks: dict[float, list[Finding]] = {n: [finding("x", n)] if n % 9 == 0 else [] for n in range(100)}
    always = Timing(timedelta(), timedelta(minutes=10))
    assert run(looks, always) == [(0, "fired", "x")]


def test_without_waiting_and_keeping_it_fires_and_ends_at_once() -> None:
    never = Timing(timedelta(), timedelta())
    assert run({0: [finding("x", 0)], 1: []}, never) == [(0, "fired", "x"), (1, "resolved", "x")]


def test_signatures_live_apart() -> None:
    looks: dict[float, list[Finding]] = {
        0: [finding("x", 0)],
        5: [finding("x", 0), finding("y", 5)],
        10: [finding("y", 5)],
    }
    assert run(looks) == [(5, "fired", "x"), (10, "fired", "y")]


def test_two_findings_of_one_signature_are_one() -> None:
    done = step({}, [finding("x", 0), finding("x", 1)], TIMING, at(9))
    assert [track.signature for track in done.fired] == ["x"]


@pytest.mark.parametrize("field", ["since", "fired_at", "calm_since"])
def test_stamps_of_a_clock_that_went_back_count_as_now(field: str) -> None:
    moments = {"since": at(0), "fired_at": at(5), "calm_since": None, field: at(600)}
    track = Track("x", **moments)  # type: ignore[arg-type]
    kept = step({"x": track}, [finding("x", 600)], TIMING, at(60)).tracks["x"]
    assert (kept.since <= at(60), kept.fired_at is not None and kept.fired_at <= at(60)) == (True, True)
    calm = step({"x": track}, [], TIMING, at(60))
    assert calm.tracks["x"].calm_since is not None
    after = step(calm.tracks, [], TIMING, at(71))
    assert [track.signature for track in after.resolved] == ["x"]


def test_a_leap_forward_fires_what_waits_and_loses_nothing() -> None:
    looks: dict[float, list[Finding]] = {0: [finding("x", 0)], 10_000: [finding("x", 0)], 10_001: []}
    assert run(looks) == [(10_000, "fired", "x")]


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 20)), max_size=30))
def test_whatever_happens_firing_and_ending_take_turns(looks: list[tuple[bool, float]]) -> None:
    minute, timeline = 0.0, {}
    for is_there, pause in looks:
        minute += pause
        timeline[minute] = [finding("x", minute)] if is_there else []
    words = [word for _, word, _ in run(timeline) if word != "dropped"]
    assert words == [("fired", "resolved")[n % 2] for n in range(len(words))]
