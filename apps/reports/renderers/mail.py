"""The body of an e-mail: headline, what changed, what waits, and a way to the whole report.

Mail programs draw no SVG and know few styles, so it is plain tables with their style on each element, on light paper.
"""

from __future__ import annotations

from django.template.loader import render_to_string

from apps.reports.content import Content, Table
from apps.reports.renderers.page import view_of
from apps.reports.renderers.prepare import prepared

ROWS_MAX = 5


def render(content: Content, *, link: str, base_url: str) -> str:
    """Return the body; ``link`` leads to the report and is empty where nobody knows the address of the pages."""
    ready = prepared(content, base_url=base_url)
    table, asks = table_of(ready, "waiting", "gangs"), table_of(ready, "waiting", "asks")
    context = {
        "report": view_of(ready),
        "table": table,
        "rows": table.rows[:ROWS_MAX] if table else (),
        "more": max(table.total - ROWS_MAX, 0) if table else 0,
        "asks": asks.rows[:ROWS_MAX] if asks else (),
        "link": link,
    }
    return render_to_string("reports/mail.html", context) + ""  # plain text: the mark of safe HTML cannot be stored


def table_of(content: Content, section: str, key: str) -> Table | None:
    """Return a table of a section, None where the report has none of that name."""
    found = content.section(section)
    return next((table for table in found.tables if table.key == key), None) if found else None
