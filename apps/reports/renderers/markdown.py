"""A report as Markdown: readable as it is, safe to paste into any renderer.

Every mark that could make a name into a link, a tag, a heading or a table border is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from apps.reports import words
from apps.reports.content import Cell, Chart, Content, Figure, Section, Table

_MARKS = re.compile(r"([\\`*_\[\]<>|~&#@$])")
_SCHEMES = re.compile(r"(?i)://|\bwww\.|\bmailto:|\bxmpp:")
_BLOCK_START = re.compile(r"^(?:(\d+)(?=[.)](?:\s|$))|(?=[-+=]))")
_UNSAFE_IN_ADDRESS = re.compile(r"[()<>\s\\]")


def render(content: Content) -> str:
    """Return the report, one blank line between its blocks."""
    blocks = [*_head(content), *(block for section in content.sections for block in _section(section, content.zone))]
    return "\n\n".join([*blocks, *_foot(content)]) + "\n"


def escape(text: str) -> str:
    """Return a text that is only text wherever it stands in a line."""
    marked = _MARKS.sub(r"\\\1", text)
    marked = _SCHEMES.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", marked)
    return _BLOCK_START.sub(r"\1\\", marked)


def _head(content: Content) -> Iterator[str]:
    yield f"# {escape(content.cluster)}: health report"
    yield f"Covers {escape(words.span(content))}. Made {escape(words.moment(content.made_at, content.zone))}."


def _section(section: Section, zone: str) -> Iterator[str]:
    yield f"## {section.number}. {escape(section.title)}"
    yield from map(escape, section.sentences)
    if section.figures:
        yield _lines(_figure(figure) for figure in section.figures)
    for table in section.tables:
        yield from _table(table)
    for chart in section.charts:
        yield from _chart(chart, zone)
    if section.notes:
        yield _lines(f"- {escape(note)}" for note in section.notes)


def _figure(figure: Figure) -> str:
    change = words.change(figure)
    told = f" ({change} against the report before)" if change else ""
    return f"- {escape(figure.label)}: **{_linked(figure.text, figure.link)}**{told}"


def _table(table: Table) -> Iterator[str]:
    yield f"### {escape(table.title)}"
    if not table.rows:
        yield escape(table.empty or "None.")
        return
    head = [escape(f"{column.label} ({column.unit})" if column.unit else column.label) for column in table.columns]
    rule = ["---:" if column.is_number else "---" for column in table.columns]
    yield _grid([head, rule, *([_cell(cell) for cell in row] for row in table.rows)])
    if table.total > len(table.rows):
        yield f"The first {len(table.rows)} of {words.number(table.total)}."


def _chart(chart: Chart, zone: str) -> Iterator[str]:
    yield f"### {escape(chart.title)}{escape(f' ({chart.unit})') if chart.unit else ''}"
    yield escape(chart.description)
    head = ["", *(escape(series.label) for series in chart.series)]
    rows = [
        [escape(words.label(label, zone)), *(_value(series.values[at]) for series in chart.series)]
        for at, label in enumerate(chart.labels)
    ]
    if rows:
        yield _grid([head, ["---", *("---:" for _ in chart.series)], *rows])


def _value(value: float | None) -> str:
    return "not read" if value is None else words.number(value)


def _cell(cell: Cell) -> str:
    return _linked(cell.text, cell.link)


def _linked(text: str, link: str) -> str:
    if not link:
        return escape(text)
    address = _UNSAFE_IN_ADDRESS.sub(lambda found: f"%{ord(found[0]):02X}", link)
    return f"[{escape(text)}]({address})"


def _grid(rows: Sequence[Sequence[str]]) -> str:
    return _lines(f"| {' | '.join(row)} |" for row in rows)


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def _foot(content: Content) -> Iterator[str]:
    if content.not_read:
        yield "## Not read"
        yield _lines(
            f"- {escape(gap.what)}: {escape(gap.reason)}. {escape(gap.remedy)}".rstrip() for gap in content.not_read
        )
    as_of = words.moment(content.as_of, content.zone) if content.as_of else "no moment: nothing was analysed"
    yield f"As of {escape(as_of)}{escape(f', engine {content.engine}') if content.engine else ''}."
