"""Section 7: which gangs lost their nodes, why, what that cost, and who was evicted again and again."""

from __future__ import annotations

from collections.abc import Iterator

from apps.reports import links
from apps.reports.content import Section
from apps.reports.facts.period import Period
from apps.reports.facts.waits import WaitFacts
from apps.reports.sections.words import (
    ROWS,
    amount,
    counted,
    figure,
    gang_cell,
    gpu_hours,
    hours,
    lasting,
    numbers,
    said,
    table,
    words,
)
from apps.reports.words import moment

EVICTION_COLUMNS = (
    words("gang", "Gang"),
    words("queue", "Queue"),
    words("code", "Why"),
    words("at", "When"),
    numbers("ran", "Had held nodes for"),
    numbers("lost", "Lost", "GPU-hours"),
)
CHURNER_COLUMNS = (words("gang", "Gang"), words("queue", "Queue"), numbers("times", "Times"))


def evictions_section(period: Period, *, waits: WaitFacts) -> Section:
    """Build the section."""
    evictions = [
        (
            gang_cell(period.cluster, eviction.gang, eviction.at),
            said(eviction.gang.queue),
            said(eviction.code, links.reason(eviction.code)),
            said(moment(eviction.at, period.zone)),
            lasting(eviction.run_seconds),
            amount(None if eviction.gpu_seconds is None else hours(eviction.gpu_seconds)),
        )
        for eviction in waits.evictions[:ROWS]
    ]
    churners = [
        (gang_cell(period.cluster, gang, period.end), said(gang.queue), amount(times))
        for gang, times in waits.churners[:ROWS]
    ]
    total = waits.evictions_total
    none = "No gang was evicted."
    return Section(
        "evictions",
        7,
        "Evictions",
        sentences=(_sentence(waits),),
        figures=(
            figure("evictions", "Evictions", total),
            figure("gangs", "Gangs", waits.evicted_gangs),
            gpu_hours("lost", "Run time ended", waits.evicted_gpu_seconds),
        ),
        tables=(
            table("evictions", "Newest first", EVICTION_COLUMNS, evictions, empty=none, total=total),
            table("churners", "Evicted more than once", CHURNER_COLUMNS, churners, empty="None.",
                  total=waits.churners_total),
        ),
        notes=tuple(_notes(waits)),
    )  # fmt: skip


def _sentence(waits: WaitFacts) -> str:
    if not waits.evictions_total:
        return "No gang was evicted."
    total, gangs = counted(waits.evictions_total, "eviction"), counted(waits.evicted_gangs, "gang")
    return f"{total} of {gangs}; {counted(hours(waits.evicted_gpu_seconds), 'GPU-hour')} of running ended by them."


def _notes(waits: WaitFacts) -> Iterator[str]:
    yield "What ended is GPUs times the time that the gang had held its nodes; what a checkpoint saved is not known."
    if waits.evictions_unmeasured:
        yield f"Of {counted(waits.evictions_unmeasured, 'eviction')} the time before was not seen; it counts as none."
    if waits.unseen_evictions:
        lost = counted(waits.unseen_evictions, "further gang")
        yield f"{lost} fell below the minimum and had nodes again before that was analysed."
