"""What every form of a report does first: texts on one line without control marks, links that lead somewhere.

Names come from clusters. After this step no text can move a cursor, reverse its direction or start a line; what a
form itself gives meaning to (tags, pipes, formulas) is guarded where that form is written.
"""

from __future__ import annotations

from dataclasses import replace

from apps.reports.content import Cell, Chart, Column, Content, Figure, NotRead, Section, Series, Table
from gangdash.reasons.wording import clean

NO_BREAK = "\u00a0"

IN_SITE = None
"""As a base: the reader is on the pages, so paths lead there as they are."""
NO_SITE = ""
"""As a base: nobody knows the address of the pages, so nothing is a link."""


def prepared(content: Content, *, base_url: str | None) -> Content:
    """Return the content ready to be written; links are put under ``base_url``."""
    return replace(
        content,
        cluster=tidy(content.cluster),
        zone=tidy(content.zone),
        sections=tuple(_section(section, base_url) for section in content.sections),
        not_read=tuple(NotRead(tidy(gap.what), tidy(gap.reason), tidy(gap.remedy)) for gap in content.not_read),
        engine=tidy(content.engine),
    )


def tidy(text: str) -> str:
    """Return the text on one line without control marks; spaces that keep an amount and its unit together stay."""
    return NO_BREAK.join(clean(part) for part in text.split(NO_BREAK)).strip()


def link_under(base_url: str | None, path: str) -> str:
    """Return an address for a path of the pages; empty for what is no such path, or where nobody can follow it."""
    if not path.startswith("/") or path.startswith(("//", "/\\")) or not path.isprintable():
        return ""
    if base_url is IN_SITE:
        return path
    return f"{base_url}{path}" if base_url else ""


def _section(section: Section, base_url: str | None) -> Section:
    return replace(
        section,
        title=tidy(section.title),
        sentences=_texts(section.sentences),
        figures=tuple(_figure(figure, base_url) for figure in section.figures),
        tables=tuple(_table(table, base_url) for table in section.tables),
        charts=tuple(_chart(chart) for chart in section.charts),
        notes=_texts(section.notes),
    )


def _texts(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text for text in map(tidy, texts) if text)


def _figure(figure: Figure, base_url: str | None) -> Figure:
    link = link_under(base_url, figure.link)
    return replace(figure, label=tidy(figure.label), unit=tidy(figure.unit), text=tidy(figure.text), link=link)


def _table(table: Table, base_url: str | None) -> Table:
    return replace(
        table,
        title=tidy(table.title),
        columns=tuple(_column(column) for column in table.columns),
        rows=tuple(tuple(_cell(cell, base_url) for cell in row) for row in table.rows),
        empty=tidy(table.empty),
    )


def _column(column: Column) -> Column:
    return replace(column, label=tidy(column.label), unit=tidy(column.unit))


def _cell(cell: Cell, base_url: str | None) -> Cell:
    return replace(cell, text=tidy(cell.text), link=link_under(base_url, cell.link))


def _chart(chart: Chart) -> Chart:
    return replace(
        chart,
        title=tidy(chart.title),
        labels=tuple(tidy(label) for label in chart.labels),
        series=tuple(_series(series) for series in chart.series),
        unit=tidy(chart.unit),
        description=tidy(chart.description),
    )


def _series(series: Series) -> Series:
    return replace(series, label=tidy(series.label))
