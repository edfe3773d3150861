"""Section 10: the scheduler: cycle time, searches that ran out of budget, bind failures, disagreement with us."""

from __future__ import annotations

from collections.abc import Iterator

from apps.reports import links
from apps.reports.content import Cell, Figure, Section, Table
from apps.reports.facts.hardware import HardwareFacts
from apps.reports.facts.period import Period
from apps.reports.facts.waiting import WaitingFacts
from apps.reports.facts.waits import WaitFacts
from apps.reports.prometheus import MetricFacts, Reading
from apps.reports.sections.hardware import metric
from apps.reports.sections.words import (
    ROWS,
    amount,
    counted,
    figure,
    figure_not_read,
    lasting,
    numbers,
    percent,
    said,
    table,
    words,
)
from apps.reports.words import moment, number
from gangdash.engine.verdict import Match, ReasonCode

BINDS = (ReasonCode.BIND_FAILING, ReasonCode.BIND_LOOP)
MATCHES = {
    Match.AGREE: "agrees",
    Match.LESS_SPECIFIC: "says less",
    Match.DISAGREE: "disagrees",
    Match.SILENT: "says nothing",
    Match.STALE: "is older than what made it untrue",
}
MATCH_COLUMNS = (words("match", "The scheduler's own text"), numbers("gangs", "Waiting gangs"))
PART_COLUMNS = (
    words("part", "Part"),
    words("state", "State now"),
    words("reason", "Reason"),
    words("since", "Since"),
    numbers("away", "Not ready for"),
)


def scheduler_section(
    period: Period, *, waits: WaitFacts, waiting: WaitingFacts, hardware: HardwareFacts, metrics: MetricFacts
) -> Section:
    """Build the section."""
    return Section(
        "scheduler",
        10,
        "Scheduler",
        sentences=(_sentence(waiting),),
        figures=tuple(_figures(waits, waiting, metrics)),
        tables=(_matches(waiting), _parts(period, hardware)),
        notes=tuple(_notes(metrics)),
    )


def _sentence(waiting: WaitingFacts) -> str:
    if not waiting.told:
        return "No verdict of a waiting gang could be compared with the scheduler's text."
    disagree = waiting.matches.get(Match.DISAGREE, 0)
    return f"Our verdict contradicts the scheduler's text for {number(disagree)} of {counted(waiting.told, 'gang')}."


def _figures(waits: WaitFacts, waiting: WaitingFacts, metrics: MetricFacts) -> Iterator[Figure]:
    yield _seconds("cycle_median", "Cycle time, median", metrics.cycle_median)
    yield _seconds("cycle_95th", "Cycle time, 95th percentile", metrics.cycle_95th)
    yield metric("exhausted", "Search budget ran out, by its own count", metrics.exhausted, "times")
    yield figure("search_budget", "Gangs it could not find a place for in time", waits.opened.get("SEARCH_BUDGET", 0))
    yield figure("bind_failures", "Bind failures", sum(waits.opened.get(code, 0) for code in BINDS))
    rate = waiting.matches.get(Match.DISAGREE, 0) / waiting.told if waiting.told else None
    yield figure("disagreement", "Disagreement", rate, text=percent(rate) if rate is not None else "")


def _seconds(key: str, label: str, reading: Reading) -> Figure:
    """Build a figure in seconds from a metric in milliseconds."""
    if reading.value is None:
        return figure_not_read(key, label, "s")
    return figure(key, label, reading.value / 1000, unit="s")


def _matches(waiting: WaitingFacts) -> Table:
    rows = [(said(word), amount(waiting.matches.get(match, 0))) for match, word in MATCHES.items()]
    rows = rows if waiting.told else []
    return table("matches", "Our verdicts against its text", MATCH_COLUMNS, rows, empty="Nothing to compare.")


def _parts(period: Period, hardware: HardwareFacts) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            said(part.subject, links.health(period.cluster)),
            said(part.state),
            said(part.reason),
            said(moment(part.last_at, period.zone)),
            lasting(part.away_seconds),
        )
        for part in hardware.parts[:ROWS]
    ]
    none = "No part of the platform that was seen was down."
    title = "Parts of the platform that were not ready"
    return table("parts", title, PART_COLUMNS, rows, empty=none, total=len(hardware.parts))


def _notes(metrics: MetricFacts) -> Iterator[str]:
    for what, reading in (("Cycle time", metrics.cycle_median), ("Its own count of searches", metrics.exhausted)):
        if not reading.is_read:
            yield f"{what}: not read ({reading.reason}). {reading.remedy}."
