"""Writes a message as JSON for a program, and signs it so that the program can tell who sent it.

The signature covers a timestamp and the exact body: a receiver refuses what is older than it likes to accept, and
drops what it has seen by the idempotency key. What a receiver does is written in docs/channels.md.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from apps.delivery.messages import Envelope, Message, headline, summary_of
from apps.delivery.texts import absolute
from gangdash import __version__

VERSION = 1
BODY_MAX = 1024**2
"""A larger body goes without its documents; REST has them."""


def render(message: Message, envelope: Envelope) -> bytes:
    """Return the body; where the documents make it too large they are left out, which ``documents_omitted`` says."""
    body = msgspec.json.encode(_content(message, envelope, with_documents=True))
    if len(body) <= BODY_MAX:
        return body
    return msgspec.json.encode(_content(message, envelope, with_documents=False))


def headers(envelope: Envelope, body: bytes, *, key: str, at: datetime) -> dict[str, str]:
    """Return the headers of one attempt: all but the idempotency key may differ from attempt to attempt."""
    found = {
        "Content-Type": "application/json",
        "User-Agent": f"gangdash/{__version__}",
        "Idempotency-Key": envelope.id,
        "X-Gangdash-Event": envelope.kind,
        "X-Gangdash-Attempt": str(envelope.attempt),
        "X-Gangdash-May-Repeat": "true" if envelope.may_repeat else "false",
    }
    if key:
        found["X-Gangdash-Signature"] = signature(body, key=key, at=at)
    return found


def signature(body: bytes, *, key: str, at: datetime) -> str:
    """Return ``t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">``."""
    stamp = str(int(at.timestamp()))
    return f"t={stamp},v1={_digest(stamp, body, key)}"


def _digest(stamp: str, body: bytes, key: str) -> str:
    return hmac.new(key.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def _content(message: Message, envelope: Envelope, *, with_documents: bool) -> dict[str, Any]:
    content: dict[str, Any] = {
        "version": VERSION,
        "id": envelope.id,
        "kind": envelope.kind,
        "key": envelope.key,
        "thread": envelope.thread or None,
        "channel": envelope.channel,
        "created_at": envelope.created_at,
        "sent_at": envelope.now,
        "attempt": envelope.attempt,
        "may_be_repeated": envelope.may_repeat,
        "documents_omitted": not with_documents,
        **_message(message, envelope.base_url, with_documents=with_documents),
    }
    if envelope.parts:
        content["parts"] = [
            {
                "id": part.id,
                "key": part.key,
                "created_at": part.created_at,
                **_message(part.message, envelope.base_url, with_documents=with_documents),
            }
            for part in envelope.parts
        ]
    return content


def _message(message: Message, base_url: str, *, with_documents: bool) -> Mapping[str, Any]:
    return {
        "severity": message.severity,
        "headline": headline(message),
        "summary": summary_of(message),
        "title": message.title,
        "text": message.text,
        "label": message.label,
        "code": message.code,
        "cluster": message.cluster,
        "lines": [
            {"name": line.name, "text": line.text, "url": absolute(line.url, base_url) or None}
            for line in message.lines
        ],
        "facts": [{"name": fact.name, "value": fact.value} for fact in message.facts],
        "fixes": message.fixes,
        "links": [{"text": link.text, "url": absolute(link.url, base_url) or None} for link in message.links],
        "context": message.context,
        "document": message.document if with_documents else None,
    }
