"""Section 9: gangs whose reason changes again and again, and gangs of which the scheduler says nothing."""

from __future__ import annotations

from apps.reports import links
from apps.reports.content import Section
from apps.reports.facts.period import Period
from apps.reports.facts.waiting import SILENT_AFTER, WaitingFacts
from apps.reports.facts.waits import FLAP_CHANGES, FLAP_WINDOW, WaitFacts
from apps.reports.sections.words import (
    ROWS,
    amount,
    counted,
    figure,
    gang_cell,
    lasting,
    numbers,
    said,
    span,
    table,
    words,
)
from apps.reports.words import moment, number
from gangdash.engine.verdict import ReasonCode

SILENCES = (ReasonCode.SCHEDULER_SILENT, ReasonCode.CONTROLLER_SILENT)
FLAPPER_COLUMNS = (words("gang", "Gang"), words("queue", "Queue"), numbers("changes", "Changes"), words("at", "From"))
SILENT_COLUMNS = (words("gang", "Gang"), words("queue", "Queue"), numbers("waits", "Waits"), words("code", "Our code"))


def flapping_section(period: Period, *, waits: WaitFacts, waiting: WaitingFacts) -> Section:
    """Build the section."""
    flappers = [
        (
            gang_cell(period.cluster, f.gang, f.at),
            said(f.gang.queue),
            amount(f.changes),
            said(moment(f.at, period.zone)),
        )
        for f in waits.flappers[:ROWS]
    ]
    quiet = [
        (
            gang_cell(period.cluster, g.gang, period.end), said(g.gang.queue),
            lasting((period.end - g.since).total_seconds()), said(g.code, links.reason(g.code)),
        )
        for g in waiting.silent[:ROWS]
    ]  # fmt: skip
    named = sum(waits.opened.get(code, 0) for code in SILENCES)
    return Section(
        "flapping",
        9,
        "Flapping and silent waits",
        sentences=(_sentence(waits, waiting.silent_total),),
        figures=(
            figure("flappers", "Flapping gangs", waits.flappers_total),
            figure("silent", "Silent waits at the end", waiting.silent_total),
            figure("silences", "Times a scheduler or controller was silent", named),
        ),
        tables=(
            table("flappers", "Most changes", FLAPPER_COLUMNS, flappers, empty="No reason flapped.",
                  total=waits.flappers_total),
            table("silent", "Silent waits", SILENT_COLUMNS, quiet, empty="No gang waits in silence.",
                  total=waiting.silent_total),
        ),
    )  # fmt: skip


def _sentence(waits: WaitFacts, silent: int) -> str:
    changed = f"{counted(waits.flappers_total, 'gang')} changed the reason {FLAP_CHANGES} times or more"
    within, after = span(FLAP_WINDOW.total_seconds()), span(SILENT_AFTER.total_seconds())
    return (
        f"{changed} within {within}; {number(silent)} waited at the end for over {after} without the scheduler's word."
    )
