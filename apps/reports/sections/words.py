"""How a report writes amounts, shares and spans, and the small builders that every section uses.

A number is written once, here, so that page, mail, Markdown and chat say the same; unset and not read have their own
words and are never a zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from apps.reports import links
from apps.reports.content import NOT_READ_TEXT, UNSET_TEXT, Cell, Column, Figure, Known, Table
from apps.reports.facts.waits import GangFacts
from apps.reports.words import number
from gangdash.engine.verdict import Verdict
from gangdash.reasons.labels import VERDICT_LABELS
from gangdash.reasons.wording import MAX_SENTENCE, clean, clip, duration

ROWS = 10
"""Rows of a table in a report that is to fit on paper; the total is always said."""
HOUR = 3600.0
NB = "\u00a0"

VERDICTS: Mapping[str, str] = {
    verdict: VERDICT_LABELS[verdict].word
    for verdict in (
        Verdict.NO_FIT,
        Verdict.NODE,
        Verdict.POLICY,
        Verdict.CONFIG,
        Verdict.GATED,
        Verdict.STUCK,
        Verdict.EVICTED,
        Verdict.PARTIAL,
        Verdict.VIOLATED,
        Verdict.STARTING,
        Verdict.WILL_START,
        Verdict.NO_VERDICT,
        Verdict.HEALTHY,
    )
}
"""In the order of charts."""


def counted(value: float, singular: str, plural: str = "") -> str:
    text = number(value)
    return f"{text}{NB}{singular if text == '1' else plural or singular + 's'}"


def percent(share: float) -> str:
    return f"{number(round(share * 100))}{NB}%"


def span(seconds: float) -> str:
    return duration(seconds).replace(" ", NB)


def hours(seconds: float) -> float:
    return seconds / HOUR


def name_of(gang: GangFacts) -> str:
    return clean(f"{gang.namespace}/{gang.name}")


def figure(key: str, label: str, value: float | None, *, unit: str = "", text: str = "", link: str = "") -> Figure:
    """Build a figure; without a value it is unset."""
    if value is None:
        return Figure(key, label, None, unit, text or UNSET_TEXT, link, known=Known.UNSET)
    return Figure(key, label, value, unit, text or f"{number(value)}{NB}{unit}".strip(), link)


def figure_not_read(key: str, label: str, unit: str = "") -> Figure:
    return Figure(key, label, None, unit, NOT_READ_TEXT, known=Known.NOT_READ)


def gpu_hours(key: str, label: str, seconds: float, *, link: str = "") -> Figure:
    return figure(key, label, hours(seconds), unit="GPU-hours", link=link)


def said(text: str, link: str = "") -> Cell:
    return Cell(clean(text) or UNSET_TEXT, link=link, known=Known.VALUE if clean(text) else Known.UNSET)


def amount(value: float | None, text: str = "", link: str = "") -> Cell:
    """Write a number, or that there is none."""
    if value is None:
        return Cell(text or UNSET_TEXT, known=Known.UNSET)
    return Cell(text or number(value), value, link)


def lasting(seconds: float | None) -> Cell:
    """Write a span; its bare number is in seconds."""
    return Cell(UNSET_TEXT, known=Known.UNSET) if seconds is None else Cell(span(seconds), seconds)


def not_read() -> Cell:
    return Cell(NOT_READ_TEXT, known=Known.NOT_READ)


def gang_cell(cluster: str, gang: GangFacts, at: datetime) -> Cell:
    return Cell(name_of(gang), link=links.gang_at(cluster, gang.namespace, gang.name, gang.uid, at))


def words(key: str, label: str) -> Column:
    return Column(key, label)


def numbers(key: str, label: str, unit: str = "") -> Column:
    return Column(key, label, unit, is_number=True)


def table(
    key: str, title: str, columns: Sequence[Column], rows: Iterable[tuple[Cell, ...]], *, empty: str,
    total: int | None = None,
) -> Table:  # fmt: skip
    """Build a table of the first rows; without a total, the rows that are given are all there are."""
    found = tuple(rows)
    return Table(key, title, tuple(columns), found[:ROWS], len(found) if total is None else total, empty)


def whole_sentence(text: str) -> str:
    """Return a sentence of the store whole: its end often says what to do."""
    return clip(text, MAX_SENTENCE)


def sentence_part(text: str) -> str:
    """Return a sentence of the store as the end of another one."""
    return whole_sentence(text).rstrip(".")
