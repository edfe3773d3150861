"""Section 11: when those who wait for others could start, and how such estimates turned out."""

from __future__ import annotations

from collections.abc import Iterator

from apps.reports.content import Cell, Figure, Section
from apps.reports.facts.period import Period
from apps.reports.facts.predictions import CASES, TEAM_RUNS_LEAST, PredictionFacts
from apps.reports.facts.waiting import WaitingGang
from apps.reports.prediction import Calibration, Estimate, NoEstimate
from apps.reports.sections.words import (
    ROWS,
    amount,
    counted,
    figure,
    gang_cell,
    lasting,
    numbers,
    percent,
    said,
    span,
    table,
    words,
)
from apps.reports.words import number

COLUMNS = (
    words("gang", "Gang"),
    numbers("gpus", "GPUs"),
    numbers("p50", "As likely as not within"),
    numbers("p90", "Nine in ten within"),
    words("told", "Estimate"),
)


def prediction_section(period: Period, *, predictions: PredictionFacts) -> Section:
    """Build the section."""
    rows = [_row(period, gang, guess) for gang, guess in predictions.gangs[:ROWS]]
    return Section(
        "prediction",
        11,
        "Prediction",
        sentences=(_sentence(predictions.past),),
        figures=tuple(_figures(predictions.past)),
        tables=(
            table("estimates", "When enough GPUs could be free", COLUMNS, rows, total=predictions.total,
                  empty="No gang waits for holders that are known."),
        ),
        notes=tuple(_notes(predictions)),
    )  # fmt: skip


def _row(period: Period, gang: WaitingGang, guess: Estimate | NoEstimate) -> tuple[Cell, ...]:
    name = gang_cell(period.cluster, gang.gang, period.end)
    if isinstance(guess, NoEstimate):
        return name, amount(gang.gpus), lasting(None), lasting(None), said(no_estimate(guess))
    told = "" if guess.p90 is not None else "nine in ten is beyond what is known"
    return name, amount(gang.gpus), lasting(guess.p50), lasting(guess.p90), said(told or "from its holders' past runs")


def no_estimate(guess: NoEstimate) -> str:
    holders = counted(guess.without, "holder has", "holders have")
    return f"no estimate: {holders} no history" if guess.without else "no estimate: its holders do not hold enough"


def _sentence(past: Calibration) -> str:
    if past.within_p50 is None or past.within_p90 is None or past.median_error is None:
        return "No estimate of this time can be compared with what came."
    return (
        f"Of {counted(past.estimated, 'estimate')}, {percent(past.within_p50)} started by the even moment and "
        f"{percent(past.within_p90)} by the late one; the middle error was {span(past.median_error)}."
    )


def _figures(past: Calibration) -> Iterator[Figure]:
    told = f"{number(past.estimated)} of {number(past.cases)}"
    yield figure("estimated", "Past starts with an estimate", past.estimated, text=told)
    for key, label, share in (
        ("within_p50", "Started by the even moment (should be 50\u00a0%)", past.within_p50),
        ("within_p90", "Started by the late moment (should be 90\u00a0%)", past.within_p90),
    ):
        yield figure(key, label, share, text=percent(share) if share is not None else "")
    error = past.median_error
    yield figure("error", "Middle error", error, unit="s", text=span(error) if error is not None else "")


def _notes(predictions: PredictionFacts) -> Iterator[str]:
    yield (
        "From how long earlier attempts of the same work ran, or at least "
        f"{TEAM_RUNS_LEAST} runs of its namespace in its queue; runs that an eviction ended are left out. Order and "
        "quotas are not looked at."
    )
    if predictions.others:
        yield f"{counted(predictions.others, 'gang')} more wait for something that no holder's end would change."
    if predictions.past.cases >= CASES:
        yield f"The error is of the last {number(CASES)} starts."
