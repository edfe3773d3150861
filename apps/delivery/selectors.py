"""Reads of channels and of the outbox: what is due and why it waits, what was delivered, what stopped."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Count, Q, QuerySet

from apps.delivery.choices import DeliveryState
from apps.delivery.models import Channel, Delivery
from apps.delivery.quiet import QuietHours, quiet_until


def channel_list() -> QuerySet[Channel]:
    """Return all channels with ``due`` and ``stopped``, how many of their messages wait and how many gave up."""
    due = Count("deliveries", filter=Q(deliveries__state=DeliveryState.DUE))
    stopped = Count("deliveries", filter=Q(deliveries__state=DeliveryState.STOPPED))
    return Channel.objects.annotate(due=due, stopped=stopped).order_by("name")


def channel_get(*, channel_id: int) -> Channel:
    return channel_list().get(pk=channel_id)


def delivery_list(*, channel: str = "", state: str = "", kind: str = "") -> QuerySet[Delivery]:
    """Return the log, newest first, without the messages' bodies."""
    wanted = {"channel__name": channel, "state": state, "kind": kind}
    rows = Delivery.objects.select_related("channel", "carried_by").defer("message", "carried_by__message")
    return rows.filter(**{field: value for field, value in wanted.items() if value})


def delivery_get(*, delivery_id: str) -> Delivery:
    return Delivery.objects.select_related("channel").get(uuid=delivery_id)


def quiet_hours_of(channel: Channel) -> QuietHours | None:
    """Return a channel's quiet hours, None where it has none."""
    if channel.quiet_from is None or channel.quiet_to is None or not channel.quiet_days:
        return None
    return QuietHours(channel.quiet_zone, channel.quiet_days, channel.quiet_from, channel.quiet_to)


def held_reason(delivery: Delivery, *, now: datetime) -> str:
    """Say why a due message has not gone out, empty where nothing holds it."""
    channel = delivery.channel
    if delivery.state != DeliveryState.DUE:
        return ""
    if channel.stopped_at is not None:
        return "the channel is stopped"
    if not channel.is_enabled:
        return "the channel is paused"
    end = quiet_until(quiet_hours_of(channel), now)
    is_page_let_through = channel.quiet_pages_pass and delivery.severity == "page"
    if end is not None and not is_page_let_through:
        return f"quiet hours until {end:%H:%M} UTC"
    if delivery.due_at is not None and delivery.due_at > now:
        return f"next attempt at {delivery.due_at:%H:%M:%S} UTC"
    return ""
