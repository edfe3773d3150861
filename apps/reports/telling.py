"""A report as a message: the mail with the whole report in it, and the few lines that a chat shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
from django.urls import reverse

from apps.delivery.choices import ChannelKind
from apps.delivery.messages import Attachment, Fact, Line, Link, Message
from apps.delivery.models import Channel
from apps.reports import words
from apps.reports.choices import ReportForm
from apps.reports.content import Content, Known
from apps.reports.models import Report
from apps.reports.renderers import CONTENT_TYPES, file_name, mail, render
from apps.reports.renderers.mail import table_of
from apps.reports.renderers.prepare import IN_SITE, prepared

UNTITLED = "Health report"
ASKS_TITLE = "Ask"
FACTS_MAX = 8
LINES_MAX = 5


def report_message(
    report: Report, content: Content, *, kind: str, attached: Iterable[str] = (), base_url: str = ""
) -> Message:
    """Return what a channel of a kind is told: all get the headline, a mail its files, a webhook the content."""
    is_mail = kind == ChannelKind.EMAIL
    forms = [ReportForm(form) for form in attached] if is_mail else []
    link = f"{base_url}{report_path(report.pk)}" if base_url else ""
    return Message(
        label=report.title,
        title=(content.headline or (UNTITLED,))[0].rstrip("."),
        cluster=content.cluster,
        text=" ".join(content.headline[1:]),
        lines=tuple(_waiting(content)),
        facts=tuple(_facts(content)),
        fixes=tuple(_asks(content)),
        fixes_title=ASKS_TITLE,
        links=(Link("Open the report", report_path(report.pk), "open_report"),),
        context=_context(report, content),
        html=mail.render(content, link=link, base_url=base_url) if is_mail else "",
        document=_document(content, base_url) if kind == ChannelKind.WEBHOOK else None,
        attachments=tuple(_attachment(content, form, base_url) for form in forms),
    )


def channel_may_have(channel: Channel, *, clusters: Collection[str]) -> bool:
    """Tell whether a channel may hear of whole clusters, as a report names gangs of every namespace.

    No cluster named stands for every one.
    """
    if channel.namespaces:
        return False
    return not channel.clusters or (bool(clusters) and set(clusters) <= set(channel.clusters))


def report_path(report_id: int) -> str:
    return reverse("dashboard:report", args=[report_id])


def _document(content: Content, base_url: str) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(prepared(content, base_url=base_url or IN_SITE))
    return document


def _facts(content: Content) -> Iterable[Fact]:
    section = content.section("headline")
    for figure in (section.figures if section else ())[:FACTS_MAX]:
        told = words.change(figure)
        yield Fact(figure.label, f"{figure.text} ({told})" if told else figure.text)


def _waiting(content: Content) -> Iterable[Line]:
    """Tell of what waits for longest: the first column names it, numbers come with the name of their column."""
    table = table_of(content, "waiting", "gangs")
    for row in (table.rows if table else ())[:LINES_MAX]:
        cells = list(zip(table.columns, row, strict=True))[1:] if table else []
        numbers = [f"{column.label} {cell.text}" for column, cell in cells if column.is_number]
        words_said = [cell.text for column, cell in cells if not column.is_number and cell.known == Known.VALUE]
        yield Line(row[0].text, "; ".join([", ".join(numbers), *words_said]), row[0].link)


def _asks(content: Content) -> Iterable[str]:
    """Tell who could start what waits: the first column is who, the second what to ask."""
    table = table_of(content, "waiting", "asks")
    for row in (table.rows if table else ())[:LINES_MAX]:
        yield f"{row[0].text}: {row[1].text}"


def _context(report: Report, content: Content) -> str:
    parts = [f"{words.length(report.start, report.end)}: {words.span(content)}"]
    if report.missed:
        times = "moment" if report.missed == 1 else "moments"
        parts.append(f"{report.missed} earlier {times} of this schedule passed without a report")
    if content.not_read:
        parts.append(f"not read: {', '.join(gap.what for gap in content.not_read)}")
    return ". ".join(parts) + "."


def _attachment(content: Content, form: ReportForm, base_url: str) -> Attachment:
    text = render(content, form, base_url=base_url)
    return Attachment(file_name(content, form), CONTENT_TYPES[form], text.encode())
