"""Turns many alerts of one channel into one message. Nothing is lost: each row names the digest that carries it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from apps.delivery.choices import DeliveryKind, DeliveryState
from apps.delivery.messages import Severity, decode, digest_of, encode, headline
from apps.delivery.models import Channel, Delivery
from apps.delivery.texts import clip, one_line

DIGEST_MAX = 200
"""More alerts than this become several digests."""


class _OvertakenError(Exception):
    """Another sender took one of the rows; nothing was changed."""


def alerts_to_fold(channel: Channel, alerts: Sequence[Delivery], *, now: datetime) -> tuple[list[Delivery], bool]:
    """Return the alerts that go by themselves no more, and whether it is time for their digest.

    A second digest waits until the first is as old as the window, and a single alert for company, but neither longer
    than the window, and a page never.
    """
    fresh = [alert for alert in alerts if not alert.may_repeat][:DIGEST_MAX]
    if channel.digest_after is None or not fresh:
        return [], False
    window = timedelta(minutes=channel.digest_minutes)
    lately = Delivery.objects.filter(channel=channel, sent_at__gt=now - window, sent_at__lte=now)
    if lately.filter(kind=DeliveryKind.ALERT).count() + len(fresh) <= channel.digest_after:
        return [], False
    is_urgent = any(alert.severity == Severity.PAGE for alert in fresh)
    is_overdue = any(now >= alert.created_at + window for alert in fresh)
    if len(fresh) == 1:
        return ([], False) if is_urgent or is_overdue else (fresh, False)
    is_first = not lately.filter(kind=DeliveryKind.DIGEST).exists()
    return fresh, is_urgent or is_overdue or is_first


def fold(channel: Channel, alerts: Sequence[Delivery], *, now: datetime) -> Delivery | None:
    """Make the digest of some alerts, None where another sender was faster with one of them."""
    try:
        with transaction.atomic():
            return _fold(channel, [alert.pk for alert in alerts], now)
    except _OvertakenError:
        return None


def _fold(channel: Channel, keys: Sequence[int], now: datetime) -> Delivery:
    Channel.objects.select_for_update().get(pk=channel.pk)
    free = Delivery.objects.filter(pk__in=keys, state=DeliveryState.DUE, claim="")
    rows = list(free.order_by("pk"))
    if len(rows) != len(keys):
        raise _OvertakenError
    message = digest_of([decode(row.message) for row in rows], minutes=channel.digest_minutes)
    digest = Delivery.objects.create(
        channel=channel,
        kind=DeliveryKind.DIGEST,
        key=f"digest:{rows[0].pk}-{rows[-1].pk}:{len(rows)}",
        severity=message.severity,
        title=clip(one_line(headline(message)), 255),
        message=encode(message),
        created_at=now,
    )
    if free.update(state=DeliveryState.CARRIED, carried_by=digest) != len(keys):
        raise _OvertakenError
    return digest
