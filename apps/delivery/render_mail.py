"""Writes a message as an e-mail: a subject, plain text, HTML, and the files of a report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.template.loader import render_to_string

from apps.delivery.messages import Attachment, Envelope, Message, headline
from apps.delivery.texts import absolute, clip, notes, one_line, visible

SUBJECT_MAX = 180


@dataclass(frozen=True, slots=True)
class Mail:
    """``message_id`` stays the same over all attempts, so that mail programs show a repeated one once."""

    subject: str
    text: str
    html: str
    message_id: str
    follows_id: str
    attachments: tuple[Attachment, ...]


def render(message: Message, envelope: Envelope, *, domain: str) -> Mail:
    """Return the mail; ``domain`` is the part after the @ of its identifiers."""
    mark = "Re: [gangdash]" if envelope.first else "[gangdash]"
    return Mail(
        subject=clip(f"{mark} {one_line(headline(envelope.first or message))}", SUBJECT_MAX),
        text=_text(message, envelope),
        html=_html(message, envelope),
        message_id=f"<{envelope.id}@{domain}>",
        follows_id=f"<{envelope.first_id}@{domain}>" if envelope.first_id else "",
        attachments=message.attachments,
    )


def _text(message: Message, envelope: Envelope) -> str:
    return "\n\n".join(part for part in _paragraphs(message, envelope) if part) + "\n"


def _paragraphs(message: Message, envelope: Envelope) -> Iterator[str]:
    base = envelope.base_url
    yield one_line(headline(message))
    yield visible(message.text).strip()
    yield "\n".join(_line(f"- {line.name}  {line.text}", absolute(line.url, base)) for line in message.lines)
    yield "\n".join(one_line(f"{fact.name}: {fact.value}") for fact in message.facts)
    if message.fixes:
        fixes = [f"{place}. {one_line(fix)}" for place, fix in enumerate(message.fixes, start=1)]
        yield "\n".join([f"{one_line(message.fixes_title)}:", *fixes])
    shown = [(link.text, absolute(link.url, base)) for link in message.links]
    yield "\n".join(f"{one_line(text)}: {url}" for text, url in shown if url)
    yield "\n".join([visible(message.context), *notes(envelope)]).strip()


def _line(text: str, url: str) -> str:
    return f"{one_line(text)}\n  {url}" if url else one_line(text)


def _html(message: Message, envelope: Envelope) -> str:
    """Return the message's own HTML, or the general one; the template escapes every text."""
    if message.html:
        return message.html
    base = envelope.base_url
    context = {
        "headline": one_line(headline(message)),
        "text": visible(message.text),
        "lines": [(one_line(line.name), one_line(line.text), absolute(line.url, base)) for line in message.lines],
        "facts": [(one_line(fact.name), one_line(fact.value)) for fact in message.facts],
        "fixes_title": one_line(message.fixes_title),
        "fixes": [one_line(fix) for fix in message.fixes],
        "links": [(one_line(link.text), absolute(link.url, base)) for link in message.links],
        "notes": [note for note in (visible(message.context), *notes(envelope)) if note],
    }
    return render_to_string("delivery/mail.html", context)
