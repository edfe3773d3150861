"""A report as one tidy CSV table: one row per sentence, number, cell and point, each saying where it stands.

Only text is guarded against being taken for a formula, so that numbers stay numbers.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from apps.reports.content import Chart, Content, Figure, Known, Section, Table

COLUMNS = (
    "cluster", "start", "end", "section", "kind", "name", "row", "row_label", "column", "value", "unit", "text",
    "known", "before", "link",
)  # fmt: skip
FORMULA_STARTS = ("=", "+", "-", "@", "|", "%", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The last four are the full-width forms, which some spreadsheets take for the same."""
Row = dict[str, str | float | int | None]


def render(content: Content) -> str:
    """Return the table with its header; lines end as RFC 4180 says."""
    whole: Row = {"cluster": content.cluster, "start": content.start.isoformat(), "end": content.end.isoformat()}
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for row in _rows(content):
        writer.writerow([safe(({**whole, **row}).get(column)) for column in COLUMNS])
    return out.getvalue()


def safe(value: str | float | None) -> str | float:
    """Return a value as a cell: text that a spreadsheet would run gets a quote in front."""
    if value is None:
        return ""
    if isinstance(value, str) and value.lstrip().startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def _rows(content: Content) -> Iterator[Row]:
    for section in content.sections:
        for row in _section(section):
            yield {"section": section.key, **row}
    for at, gap in enumerate(content.not_read, start=1):
        text = f"{gap.reason}. {gap.remedy}"
        yield {"section": "not_read", "kind": "gap", "row": at, "row_label": gap.what, "text": text}


def _section(section: Section) -> Iterator[Row]:
    for at, sentence in enumerate(section.sentences, start=1):
        yield {"kind": "sentence", "row": at, "text": sentence}
    yield from map(_figure, section.figures)
    for table in section.tables:
        yield from _table(table)
    for chart in section.charts:
        yield from _chart(chart)
    for at, note in enumerate(section.notes, start=1):
        yield {"kind": "note", "row": at, "text": note}


def _figure(figure: Figure) -> Row:
    return {
        "kind": "figure",
        "name": figure.key,
        "row_label": figure.label,
        "value": figure.value,
        "unit": figure.unit,
        "text": figure.text,
        "known": figure.known,
        "before": figure.before,
        "link": figure.link,
    }


def _table(table: Table) -> Iterator[Row]:
    for at, row in enumerate(table.rows, start=1):
        label = row[0].text if row else ""
        for column, cell in zip(table.columns, row, strict=True):
            yield {
                "kind": "cell",
                "name": table.key,
                "row": at,
                "row_label": label,
                "column": column.key,
                "value": cell.value,
                "unit": column.unit,
                "text": cell.text,
                "known": cell.known,
                "link": cell.link,
            }


def _chart(chart: Chart) -> Iterator[Row]:
    for series in chart.series:
        for at, (label, value) in enumerate(zip(chart.labels, series.values, strict=True), start=1):
            known = Known.NOT_READ if value is None else Known.VALUE
            yield {
                "kind": "point",
                "name": chart.key,
                "row": at,
                "row_label": label,
                "column": series.key,
                "value": value,
                "unit": chart.unit,
                "known": known,
            }
