"""Section 3: the gangs that wait at the end of the span, the costliest first, each with its best way out."""

from __future__ import annotations

from apps.reports import links
from apps.reports.content import Cell, Section, Table
from apps.reports.facts.period import Period
from apps.reports.facts.waiting import WaitingFacts, WaitingGang
from apps.reports.sections.words import (
    ROWS,
    VERDICTS,
    amount,
    counted,
    figure,
    gang_cell,
    hours,
    lasting,
    numbers,
    said,
    table,
    whole_sentence,
    words,
)
from apps.reports.words import moment, number
from gangdash.documents.model import BindingEntry
from gangdash.engine.identifiers import Unit
from gangdash.reasons.wording import amount as amount_words
from gangdash.reasons.wording import clip

COLUMNS = (
    words("gang", "Gang"),
    numbers("gpus", "GPUs"),
    numbers("waits", "Waits"),
    numbers("gpu_hours", "GPU-hours"),
    words("verdict", "Verdict"),
    words("needs", "Needs and has"),
    words("fix", "Best option"),
    words("who", "Who acts"),
)


ASK_COLUMNS = (words("who", "Who acts"), words("ask", "Ask"), numbers("gangs", "Starts gangs"), numbers("gpus", "GPUs"))
_SAID_ONCE = frozenset({Unit.GPU, Unit.PODS, Unit.NODES, Unit.COUNT})
"""Units that are written once, after the need."""


def waiting_section(period: Period, *, waiting: WaitingFacts) -> Section:
    """Build the section."""
    rows = [_row(period, gang) for gang in waiting.gangs[:ROWS]]
    at = moment(period.end, period.zone)
    sentence = f"{counted(waiting.total, 'gang')} waited at {at}." if rows else f"No gang waited at {at}."
    lost = waiting.total - waiting.told
    note = f"What was said of {counted(lost, 'gang')} at that moment is no longer kept." if lost else ""
    return Section(
        "waiting",
        3,
        "Waiting now",
        sentences=(sentence,),
        figures=(
            figure("gangs", "Gangs", waiting.total, link=links.triage_at(period.cluster, period.end)),
            figure("gpus", "GPUs", waiting.gpus, unit="GPUs", link=links.triage_at(period.cluster, period.end)),
        ),
        tables=(
            table("gangs", "By GPU-hours waited", COLUMNS, rows, empty="No gang waits.", total=waiting.total),
            _asks(period, waiting),
        ),
        notes=(note,) if note else (),
    )


def _row(period: Period, gang: WaitingGang) -> tuple[Cell, ...]:
    waited = max(0.0, (period.end - gang.since).total_seconds())
    verdict = VERDICTS.get(gang.verdict, gang.verdict)
    return (
        gang_cell(period.cluster, gang.gang, period.end),
        amount(gang.gpus),
        lasting(waited),
        amount(hours(gang.gpu_seconds(period.end))),
        said(f"{verdict}: {gang.code}", links.reason(gang.code)),
        said(needs(gang)),
        said(best_option(gang)),
        said(gang.who.replace("_", " ")),
    )


def _asks(period: Period, waiting: WaitingFacts) -> Table:
    """List the best options of all who wait: what one change starts is asked for once, most GPUs first."""
    link = links.triage_at(period.cluster, period.end)
    rows = [
        (said(ask.who.replace("_", " "), link), said(whole_sentence(ask.sentence)), amount(ask.gangs), amount(ask.gpus))
        for ask in waiting.asks[:ROWS]
    ]
    none = "No change is known that would start a waiting gang."
    return table("asks", "Ask by who acts", ASK_COLUMNS, rows, empty=none, total=len(waiting.asks))


def needs(gang: WaitingGang) -> str:
    """Say what the first binding constraint needs and has; the sentence where it is no amount."""
    binding = gang.told.binding[0] if gang.told and gang.told.binding else None
    if binding is None or isinstance(binding.need, str):
        return whole_sentence(gang.sentence)
    return _shortfall(binding)


def _shortfall(binding: BindingEntry) -> str:
    have, need = binding.have, amount_words(binding.need, binding.unit)
    if have is None:
        held = "not read"
    elif binding.unit in _SAID_ONCE and not isinstance(have, str):
        held = number(have)
    else:
        held = amount_words(have, binding.unit)
    # A scope is a name or a description, so it stands beside the amounts and not in a sentence with them.
    return f"{held} of {need}{f' ({clip(binding.scope)})' if binding.scope else ''}"


def best_option(gang: WaitingGang) -> str:
    """Say the cheapest change that starts the gang; that none was found is something else than that none was kept."""
    if gang.told is None:
        return ""
    if gang.told.fixes:
        first = gang.told.fixes[0]
        return whole_sentence(first.sentence) if first.verified else f"{whole_sentence(first.sentence)} (not re-run)"
    refused = gang.told.fixes_refused
    return f"None of {counted(refused, 'change')} tried starts it" if refused else "No single change is known"
