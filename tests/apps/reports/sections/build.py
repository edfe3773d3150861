"""Small builders of what sections are written from, for tests that change one thing at a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from apps.reports.content import Content, Section
from apps.reports.facts.period import Period

END = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)


def period(*, hours: int = 24, zone: str = "UTC") -> Period:
    return Period("fjord-1", 1, END - timedelta(hours=hours), END, END, zone)


def section(content: Content, key: str) -> Section:
    found = content.section(key)
    assert found is not None
    return found


def all_text(content: Content) -> str:
    """Return every word of a report, one piece a line."""
    lines: list[str] = []
    for part in content.sections:
        lines += [part.title, *part.sentences, *part.notes]
        lines += [f"{figure.label}: {figure.text}" for figure in part.figures]
        for table in part.tables:
            lines += [table.title, table.empty, *(cell.text for row in table.rows for cell in row)]
        lines += [text for chart in part.charts for text in (chart.title, chart.description)]
    return "\n".join(lines)
