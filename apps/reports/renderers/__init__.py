"""The four forms of a report, each written from the same content by a pure function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC

from apps.reports.choices import ReportForm
from apps.reports.content import Content
from apps.reports.renderers.document import render as render_document
from apps.reports.renderers.markdown import render as render_markdown
from apps.reports.renderers.page import render as render_page
from apps.reports.renderers.prepare import prepared
from apps.reports.renderers.table import render as render_table

CONTENT_TYPES: Mapping[ReportForm, str] = {
    ReportForm.HTML: "text/html; charset=utf-8",
    ReportForm.MARKDOWN: "text/markdown; charset=utf-8",
    ReportForm.JSON: "application/json",
    ReportForm.CSV: "text/csv; charset=utf-8",
}
_WRITERS: Mapping[ReportForm, Callable[[Content], str]] = {
    ReportForm.HTML: render_page,
    ReportForm.MARKDOWN: render_markdown,
    ReportForm.JSON: render_document,
    ReportForm.CSV: render_table,
}
_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9.-]+")


def render(content: Content, form: ReportForm, *, base_url: str | None) -> str:
    """Write a report; its links lead to pages under ``base_url``, and are left out where that is empty."""
    return _WRITERS[form](prepared(content, base_url=base_url))


def file_name(content: Content, form: ReportForm) -> str:
    """Return a name that says which cluster and when, safe in any header and on any disk."""
    cluster = _UNSAFE_IN_NAMES.sub("-", content.cluster).strip("-.")[:80] or "cluster"
    return f"gangdash-report-{cluster}-{content.end.astimezone(UTC):%Y%m%dT%H%MZ}.{form}"
