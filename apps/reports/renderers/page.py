"""A report as HTML: one article, on the pages of the project or as a file that needs nothing beside it.

Templates escape every text; pictures are drawn before. No script, no foreign address, light or dark as the reader
likes, and light on paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.template.loader import render_to_string

from apps.reports import words
from apps.reports.charts import Picture, picture
from apps.reports.content import Cell, Column, Content, Figure, Section, Table
from gangdash.reasons.labels import VERDICT_LABELS

NARROW_COLUMNS = 5
HEADLINE = "headline"
VERDICT = "verdict"
"""The key of columns that name a verdict; a colon may follow it."""
FAMILIES_BY_WORD = {label.word: label.family for label in VERDICT_LABELS.values()}
"""The colour of a verdict by the word that reports write for it."""


@dataclass(frozen=True, slots=True)
class FigureView:
    """``change`` is against the report before, empty where there is none."""

    figure: Figure
    change: str


@dataclass(frozen=True, slots=True)
class TableView:
    """Rows with each cell's column and, for a verdict, its colour; how many rows are left out.

    Wide tables take a line of their own.
    """

    table: Table
    rows: tuple[tuple[tuple[Column, Cell, str], ...], ...]
    left_out: int
    is_wide: bool


@dataclass(frozen=True, slots=True)
class PictureView:
    """A picture and the table of its values: a label and one text per series."""

    picture: Picture
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class SectionView:
    """``is_wide`` sections take the whole width, others stand in pairs where there is room."""

    section: Section
    figures: tuple[FigureView, ...]
    tables: tuple[TableView, ...]
    pictures: tuple[PictureView, ...]
    is_wide: bool


@dataclass(frozen=True, slots=True)
class ReportView:
    """What the templates draw."""

    content: Content
    day: str
    span: str
    length: str
    made: str
    as_of: str
    headline: Section | None
    headline_figures: tuple[FigureView, ...]
    sections: tuple[SectionView, ...]


def render(content: Content) -> str:
    """Return a whole document."""
    return render_to_string("reports/document.html", {"report": view_of(content)})


def view_of(content: Content) -> ReportView:
    """Return what the templates draw of a prepared content."""
    headline = content.section(HEADLINE)
    return ReportView(
        content=content,
        day=words.day(content.end, content.zone),
        span=words.span(content),
        length=words.length(content.start, content.end),
        made=words.moment(content.made_at, content.zone),
        as_of=words.moment(content.as_of, content.zone) if content.as_of else "",
        headline=headline,
        headline_figures=tuple(_figures(headline)) if headline else (),
        sections=tuple(_section(section, content.zone) for section in content.sections if section.key != HEADLINE),
    )


def _section(section: Section, zone: str) -> SectionView:
    tables = tuple(_table(table) for table in section.tables)
    return SectionView(
        section=section,
        figures=tuple(_figures(section)),
        tables=tables,
        pictures=tuple(_pictures(section, zone)),
        is_wide=bool(section.charts) or len(tables) > 1 or any(table.is_wide for table in tables),
    )


def _figures(section: Section) -> Iterator[FigureView]:
    for figure in section.figures:
        yield FigureView(figure, words.change(figure))


def _table(table: Table) -> TableView:
    rows = tuple(tuple(_cells(table.columns, row)) for row in table.rows)
    return TableView(table, rows, max(table.total - len(table.rows), 0), len(table.columns) > NARROW_COLUMNS)


def _cells(columns: Sequence[Column], row: Sequence[Cell]) -> Iterator[tuple[Column, Cell, str]]:
    for column, cell in zip(columns, row, strict=True):
        word = cell.text.partition(":")[0] if column.key == VERDICT else ""
        yield column, cell, FAMILIES_BY_WORD.get(word, "")


def _pictures(section: Section, zone: str) -> Iterator[PictureView]:
    for chart in section.charts:
        rows = tuple(
            (words.label(label, zone), tuple(_value(series.values[at]) for series in chart.series))
            for at, label in enumerate(chart.labels)
        )
        yield PictureView(picture(chart, ident=f"rp-{section.key}-{chart.key}", zone=zone), rows)


def _value(value: float | None) -> str:
    return "not read" if value is None else words.number(value)
