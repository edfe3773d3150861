"""What a message says, whatever channel it goes to: plain frozen data that goes to JSON and back unchanged.

Texts are raw: names of a cluster stay as they are, and each renderer makes them safe for its own kind of channel.
Links that begin with "/" are pages of this site; the renderers put the site's address before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

FIXES_TITLE = "Cheapest fixes, each re-run on this snapshot"


class Severity(StrEnum):
    """How urgent: a page passes quiet hours where the channel lets it."""

    PAGE = "page"
    TICKET = "ticket"
    INFO = "info"


class Fact(msgspec.Struct, frozen=True):
    """A name and its value, like "Who acts": "Cluster admin"."""

    name: str
    value: str


class Link(msgspec.Struct, frozen=True):
    """A button; ``key`` tells buttons of one message apart."""

    text: str
    url: str
    key: str


class Line(msgspec.Struct, frozen=True):
    """One affected object: its name, which may be a link, and what is said of it."""

    name: str
    text: str = ""
    url: str = ""


class Attachment(msgspec.Struct, frozen=True):
    """A file of an e-mail; other channels leave it out."""

    name: str
    content_type: str
    content: bytes


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message. Only the title is needed; what is empty is left out.

    ``label`` is the verdict in words and stands first, then ``code``, then ``cluster``, then the title. ``short`` is
    its line in a digest, ``summary`` the line that a phone shows, ``context`` the small print. ``document`` is for
    programs: the explanation as REST gives it. ``html`` replaces the body that an e-mail would be given.
    """

    title: str
    text: str = ""
    label: str = ""
    code: str = ""
    cluster: str = ""
    lines: tuple[Line, ...] = ()
    facts: tuple[Fact, ...] = ()
    fixes: tuple[str, ...] = ()
    fixes_title: str = FIXES_TITLE
    links: tuple[Link, ...] = ()
    context: str = ""
    summary: str = ""
    short: str = ""
    severity: Severity = Severity.INFO
    document: dict[str, Any] | None = None
    html: str = ""
    attachments: tuple[Attachment, ...] = ()


class Part(msgspec.Struct, frozen=True):
    """One message that a digest carries, under the key that later messages follow."""

    id: str
    key: str
    created_at: datetime
    message: Message


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What a renderer knows of the delivery beside the message.

    ``id`` stays the same over all attempts. ``first`` is the message that this one follows; ``first_id`` and
    ``first_at`` are those of what brought it, which may be a digest. ``is_threaded`` says that the channel shows this
    one under it anyway.
    """

    id: str
    key: str
    kind: str
    channel: str
    created_at: datetime
    now: datetime
    base_url: str = ""
    thread: str = ""
    attempt: int = 1
    may_repeat: bool = False
    first: Message | None = None
    first_id: str = ""
    first_at: datetime | None = None
    is_threaded: bool = False
    parts: tuple[Part, ...] = ()


def encode(message: Message) -> str:
    """Return the message as the JSON text that is stored; half a character, which no text may hold, becomes ?."""
    try:
        return msgspec.json.encode(message).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(_whole(msgspec.to_builtins(message))).decode()


def _whole(value: Any) -> Any:
    """Return plain data without lone surrogates."""
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def decode(text: str) -> Message:
    """Return the message that was stored."""
    return msgspec.json.decode(text, type=Message)


def headline(message: Message) -> str:
    """Return label, code, cluster and title as one plain line."""
    return _joined(" ".join(part for part in (message.label, message.code) if part), message.cluster, message.title)


def summary_of(message: Message) -> str:
    """Return the line for notifications and screen readers."""
    return message.summary or " ".join(part for part in (headline(message), message.text) if part)


def digest_of(messages: Sequence[Message], *, minutes: int) -> Message:
    """Return one message that carries several alerts, a line each, as severe as the most severe of them."""
    clusters = sorted({message.cluster for message in messages if message.cluster})
    place = clusters[0] if len(clusters) == 1 else f"{len(clusters)} clusters" if clusters else ""
    title = f"{len(messages)} new causes in {minutes} minutes"
    order = list(Severity)
    return Message(
        title=title,
        cluster=place,
        lines=tuple(_digest_line(message, with_cluster=len(clusters) > 1) for message in messages),
        links=(Link("Open alerts", "/alerts/", "open_alerts"),),
        summary=f"{place}: {title}." if place else f"{title}.",
        severity=min((message.severity for message in messages), key=order.index, default=Severity.INFO),
    )


def _digest_line(message: Message, *, with_cluster: bool) -> Line:
    """Write one alert in a line; its first link leads to it."""
    where = f"{message.cluster}: " if with_cluster and message.cluster else ""
    url = message.links[0].url if message.links else ""
    return Line(
        message.label or message.title, where + (message.short or (message.title if message.label else "")), url
    )


def _joined(label: str, cluster: str, title: str) -> str:
    place = f"{label} on {cluster}" if label and cluster else label or cluster
    return f"{place}: {title}" if place else title
