"""Why gangs waited: time that nobody read is no time without waiting."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from apps.reports.facts.waits import WaitFacts
from apps.reports.sections.why import why_section
from gangdash.engine.verdict import Verdict
from tests.apps.reports.sections.build import END, period

HOURS = 24


def waits() -> WaitFacts:
    steps = period(hours=HOURS).steps
    return WaitFacts(gangs=1, levels={Verdict.NO_FIT: (0.0,) * (steps - 1) + (8.0,)})


def test_before_the_first_reading_the_chart_says_not_read() -> None:
    span = replace(period(hours=HOURS), known_from=END - timedelta(hours=6))
    (chart,) = why_section(span, waits=waits()).charts
    values = chart.series[0].values
    ends = [at + span.step for at in span.step_starts]
    assert [value is None for value in values] == [end < END - timedelta(hours=6) for end in ends]
    assert values[-1] == 8.0


def test_a_span_that_is_kept_whole_has_zeros() -> None:
    (chart,) = why_section(period(hours=HOURS), waits=waits()).charts
    assert None not in chart.series[0].values
    assert chart.series[0].values[0] == 0.0


def test_a_gap_is_said_beside_the_hours_that_were_counted_through_it() -> None:
    notes = why_section(period(hours=HOURS), waits=waits(), gap_seconds=7200.0).notes
    assert any("nothing was read" in note and "2\u00a0h" in note.replace(" ", "\u00a0") for note in notes)
    assert not any("nothing was read" in note for note in why_section(period(hours=HOURS), waits=waits()).notes)
