"""Tasks of the outbox. Thin: which channels have something due, one service call each.

Each may be lost, repeated or killed between any two steps; the next tick finds what is left to do in the rows.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import structlog
from celery import shared_task
from django.conf import settings

from apps.delivery.claims import LIFE_SECONDS

logger = structlog.get_logger(__name__)

SOFT_LIMIT_SECONDS = LIFE_SECONDS - 10
"""A run ends by itself well before; this is for a far side whose headers never end."""


@shared_task(name="delivery.send_due")
def send_due() -> None:
    """Ask for each channel that has something due, so that a slow one holds up no other."""
    from apps.delivery.sending import channels_due

    for channel_id in channels_due():
        send_channel.apply_async(
            args=(channel_id,), expires=30, soft_time_limit=SOFT_LIMIT_SECONDS, time_limit=LIFE_SECONDS
        )


@shared_task(name="delivery.send_channel")
def send_channel(channel_id: int) -> None:
    """Send what is due on one channel."""
    from apps.delivery.sending import channel_send

    try:
        channel_send(channel_id=channel_id, now=datetime.now(UTC))
    except Exception:  # the task boundary: the row stays due, its claim ends, and the next sender goes on
        logger.exception("sending_broken", channel=channel_id)


@shared_task(name="delivery.prune")
def prune() -> None:
    """Delete what was delivered or given up long ago; what is due stays."""
    from apps.delivery.services import deliveries_prune

    deleted = deliveries_prune(before=datetime.now(UTC) - timedelta(days=settings.GANGDASH_KEEP_HISTORY_DAYS))
    if deleted:
        logger.info("old_deliveries_pruned", rows=deleted)
