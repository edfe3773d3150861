"""Duties to deliver: taking them on. Whoever changes something and tells about it does both in one transaction."""

from __future__ import annotations

import hashlib
from datetime import datetime

from celery import current_app
from django.db import transaction

from apps.delivery.choices import DeliveryKind
from apps.delivery.messages import Message, encode, headline
from apps.delivery.models import Channel, Delivery

SEND_TASK = "delivery.send_due"
KEY_LENGTH = 200


def enqueue(
    *, channel: Channel, kind: DeliveryKind, key: str, message: Message, thread: str = "", now: datetime
) -> Delivery:
    """Take on the duty to deliver a message; with a key that the channel knows already, return that duty unchanged.

    ``thread`` is the key of the message that this one follows.
    """
    delivery, is_new = Delivery.objects.get_or_create(
        channel=channel,
        key=stored_key(key),
        defaults={
            "kind": kind,
            "thread": stored_key(thread),
            "severity": message.severity,
            "title": headline(message)[:255],
            "message": encode(message),
            "created_at": now,
        },
    )
    if is_new:
        transaction.on_commit(send_ask, robust=True)
    return delivery


def send_ask() -> None:
    """Ask for what is due to be sent now; the next tick asks again should this be lost."""
    current_app.send_task(SEND_TASK, expires=60)


def stored_key(key: str) -> str:
    """Return a key as it is stored: a long one ends in its hash, so that it stays as telling as it was."""
    if len(key) <= KEY_LENGTH:
        return key
    return f"{key[: KEY_LENGTH - 65]}-{hashlib.sha256(key.encode()).hexdigest()}"
