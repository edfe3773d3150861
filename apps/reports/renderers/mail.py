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
    table = _waiting(ready)
    context = {
        "report": view_of(ready),
        "table": table,
        "rows": table.rows[:ROWS_MAX] if table else (),
        "more": max(table.total - ROWS_MAX, 0) if table else 0,
        "link": link,
    }
    return render_to_string("reports/mail.html", context) + ""  # plain text: the mark of safe HTML cannot be stored


def _waiting(content: Content) -> Table | None:
    section = content.section("waiting")
    return section.tables[0] if section and section.tables else None
