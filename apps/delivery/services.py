"""Duties to deliver: taking them on, having one tried again, forgetting old ones.

Whoever changes something and tells about it does both in one transaction: the row is part of the change.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from celery import current_app
from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import audit_record
from apps.delivery.choices import DeliveryKind, DeliveryState, StopScope
from apps.delivery.messages import Message, encode, headline
from apps.delivery.models import Channel, Delivery
from apps.delivery.sending import send_due
from apps.delivery.texts import clip, one_line, visible
from apps.errors import ApplicationError

SEND_TASK = "delivery.send_due"
KEY_LENGTH = 200
FINISHED = (DeliveryState.SENT, DeliveryState.STOPPED, DeliveryState.CARRIED)

__all__ = ["deliveries_prune", "delivery_resend", "enqueue", "send_ask", "send_due", "stored_key"]


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
            "title": clip(one_line(headline(message)), 255),
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
    shown = visible(key)
    if shown == key and len(key) <= KEY_LENGTH:
        return key
    return f"{shown[: KEY_LENGTH - 65]}-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


@transaction.atomic
def delivery_resend(*, delivery: Delivery, actor: User, address: str | None = None) -> None:
    """Have a message sent now: one that gave up, one that waits for its next attempt, or again one that went out."""
    rows = Delivery.objects.filter(pk=delivery.pk, claim="").exclude(state=DeliveryState.CARRIED)
    was_sent = delivery.state == DeliveryState.SENT
    changes = {"state": DeliveryState.DUE, "due_at": None, "stop_scope": StopScope.NONE, "sent_at": None}
    if not rows.update(may_repeat=delivery.may_repeat or was_sent, **changes):
        raise ApplicationError("delivery_not_resendable", "It is being sent just now, or a digest carried it")
    audit_record(action="delivery.resend", actor=actor, target=str(delivery.uuid), address=address)
    transaction.on_commit(send_ask, robust=True)


def deliveries_prune(*, before: datetime) -> int:
    """Delete what was settled before a moment and return how many; what is due stays however old it is."""
    deleted, _by_model = Delivery.objects.filter(state__in=FINISHED, created_at__lt=before).delete()
    return deleted
