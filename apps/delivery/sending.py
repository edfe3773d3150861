"""Sends what is due, one message of a channel at a time, and writes down what became of each.

May be killed between any two steps, run twice at once, or not run for hours: what is due stands in the rows. A row is
taken before anything is sent and let go with the result, so that a message comes twice only where the sender died in
between, or the far side fell silent; the second one says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from apps.delivery import backoff
from apps.delivery.carriers import carry
from apps.delivery.choices import ChannelKind, DeliveryKind, DeliveryState, StopScope
from apps.delivery.claims import claim, free_if_dead
from apps.delivery.digests import alerts_to_fold, fold
from apps.delivery.messages import Envelope, Part, Severity, decode
from apps.delivery.models import Channel, Delivery
from apps.delivery.outcomes import Outcome, Verdict
from apps.delivery.quiet import quiet_until
from apps.delivery.selectors import quiet_hours_of

logger = structlog.get_logger(__name__)

RUN_SECONDS = 10.0
"""A run begins no further message after this; the next tick goes on."""
LOOKED_AT = 400
"""Due rows of one channel that one step looks at."""
SKEW = timedelta(minutes=1)
"""A moment in the row that lies further ahead than this means that the clock went back, and counts no more."""

Clock = Callable[[], datetime]


def channels_due() -> list[int]:
    """Return the channels that have something due and are neither paused nor stopped, or that somebody tests."""
    is_open = Q(channel__is_enabled=True, channel__stopped_at=None) | Q(kind=DeliveryKind.TEST)
    due = Delivery.objects.filter(is_open, state=DeliveryState.DUE)
    return list(due.order_by("channel_id").values_list("channel_id", flat=True).distinct())


def send_due(*, now: datetime) -> int:
    """Send what is due on every channel and return how many messages were delivered."""
    return sum(channel_send(channel_id=channel_id, now=now) for channel_id in channels_due())


def channel_send(*, channel_id: int, now: datetime) -> int:
    """Send what is due on one channel until nothing is, it fails, or the run has lasted long enough."""
    clock, started, sent = _steady_clock(now), time.monotonic(), 0
    while time.monotonic() - started < RUN_SECONDS:
        channel = Channel.objects.filter(pk=channel_id).first()
        delivery = _next(channel, clock()) if channel else None
        if channel is None or delivery is None:
            break
        outcome = _attempt(channel, delivery, clock)
        if outcome is None or outcome.verdict == Verdict.AGAIN:
            break
        sent += outcome.verdict == Verdict.SENT
    return sent


def _steady_clock(now: datetime) -> Clock:
    """Return a clock that begins at a moment and does not jump."""
    started = time.monotonic()
    return lambda: now + timedelta(seconds=time.monotonic() - started)


def _next(channel: Channel, now: datetime) -> Delivery | None:
    """Return the row to send next, None where there is none now or another sender is at work on this channel."""
    rows = list(_due_rows(channel, now))
    taken = [row for row in rows if row.claim]
    if any(not free_if_dead(row, now=now) for row in taken):
        return None
    if taken:
        rows = list(_due_rows(channel, now))
    waiting = _not_before_their_first(channel, [row for row in rows if not row.claim])
    alerts = [row for row in waiting if row.kind == DeliveryKind.ALERT]
    folded, is_time = alerts_to_fold(channel, alerts, now=now)
    if folded and is_time:
        return fold(channel, folded, now=now)
    held = {row.pk for row in folded}
    return next((row for row in waiting if row.pk not in held), None)


def _due_rows(channel: Channel, now: datetime) -> QuerySet[Delivery]:
    """Return due rows in the order they were taken on, without those that wait for their time.

    A test goes out whatever holds the rest: it is how an admin finds out.
    """
    due = Delivery.objects.filter(channel=channel, state=DeliveryState.DUE).order_by("pk").defer("message")
    is_time = Q(due_at=None) | Q(due_at__lte=now) | Q(attempted_at__gt=now + SKEW)
    may_go = Q() if is_open(channel, now) else Q(kind=DeliveryKind.TEST)
    if quiet_until(quiet_hours_of(channel), now) is not None:
        passes = Q(severity=Severity.PAGE) if channel.quiet_pages_pass else Q(pk__in=[])
        may_go &= passes | Q(kind=DeliveryKind.TEST)
    return due.filter(is_time, may_go)[:LOOKED_AT]


def is_open(channel: Channel, now: datetime) -> bool:
    """Return whether messages may go to a channel now: not paused, not stopped, not asked to wait."""
    if not channel.is_enabled or channel.stopped_at is not None:
        return False
    if channel.wait_since is None or channel.wait_until is None:
        return True
    return not channel.wait_since - SKEW <= now < channel.wait_until


def _not_before_their_first(channel: Channel, rows: Sequence[Delivery]) -> list[Delivery]:
    """Leave out what follows a message that is still due; a page does not wait for one that is held."""
    followed = {row.thread for row in rows if row.thread}
    due = Delivery.objects.filter(channel=channel, state=DeliveryState.DUE, key__in=followed)
    open_firsts = set(due.values_list("key", flat=True)) if followed else set()
    ready = {row.key for row in rows}
    return [
        row
        for row in rows
        if row.thread not in open_firsts or (row.severity == Severity.PAGE and row.thread not in ready)
    ]


def _attempt(channel: Channel, delivery: Delivery, clock: Clock) -> Outcome | None:
    """Take a row, send it, record the result; None where another sender took it."""
    envelope, reply_to = _envelope(channel, delivery, clock())
    token = claim(delivery, now=clock())
    if not token:
        return None
    outcome = carry(channel, decode(delivery.message), envelope, reply_to=reply_to)
    recorded = _record(channel, delivery, token, outcome, clock())
    logger.info(
        "delivery_attempted",
        channel=channel.name,
        host=channel.host,
        kind=delivery.kind,
        delivery=str(delivery.uuid),
        outcome=outcome.verdict.value,
        detail=outcome.detail,
        recorded=recorded,
    )
    return outcome


def _envelope(channel: Channel, delivery: Delivery, now: datetime) -> tuple[Envelope, str]:
    """Return what the renderers must know, and what the channel calls the message that this one follows."""
    first = _first(channel, delivery)
    brought = first.carried_by or first if first else None
    reply_to = brought.remote_id if brought and channel.kind == ChannelKind.SLACK_BOT else ""
    envelope = Envelope(
        id=str(delivery.uuid),
        key=delivery.key,
        kind=delivery.kind,
        channel=channel.name,
        created_at=delivery.created_at,
        now=now,
        base_url=settings.GANGDASH_BASE_URL,
        thread=delivery.thread,
        attempt=delivery.attempts + 1,
        may_repeat=delivery.may_repeat,
        first=decode(first.message) if first else None,
        first_id=str(brought.uuid) if brought else "",
        first_at=brought.sent_at or brought.created_at if brought else None,
        is_threaded=bool(reply_to),
        parts=_parts(delivery),
    )
    return envelope, reply_to


def _first(channel: Channel, delivery: Delivery) -> Delivery | None:
    """Return the message that this one follows."""
    if not delivery.thread:
        return None
    rows = Delivery.objects.filter(channel=channel, key=delivery.thread).select_related("carried_by")
    return rows.first()


def _parts(delivery: Delivery) -> tuple[Part, ...]:
    """Return the messages that a digest carries."""
    if delivery.kind != DeliveryKind.DIGEST:
        return ()
    rows = delivery.carries.order_by("pk")
    return tuple(Part(str(row.uuid), row.key, row.created_at, decode(row.message)) for row in rows)


@transaction.atomic
def _record(channel: Channel, delivery: Delivery, token: str, outcome: Outcome, now: datetime) -> bool:
    """Write down what became of an attempt, unless the row has meanwhile been taken by somebody else."""
    changes: dict[str, object] = {"claim": "", "detail": outcome.detail[:300]}
    if outcome.verdict == Verdict.SENT:
        changes |= {"state": DeliveryState.SENT, "sent_at": now, "remote_id": outcome.remote_id, "due_at": None}
    elif outcome.verdict == Verdict.NEVER:
        changes |= {"state": DeliveryState.STOPPED, "stop_scope": outcome.scope}
    else:
        changes |= {"due_at": now + _pause(delivery, outcome, now), "attempted_at": now}
        changes |= {"may_repeat": True} if outcome.may_have_arrived else {}
    # A sender that was slow enough to be taken for dead still settles its row, if nobody sends it again just now.
    mine = Q(claim=token) | Q(claim="") if outcome.verdict == Verdict.SENT else Q(claim=token)
    recorded = Delivery.objects.filter(mine, pk=delivery.pk, state=DeliveryState.DUE).update(**changes)
    _record_on_channel(channel, delivery, outcome, now)
    return bool(recorded)


def _pause(delivery: Delivery, outcome: Outcome, now: datetime) -> timedelta:
    """Return how long to wait before the next attempt."""
    asked = backoff.asked_delay(outcome.retry_after, date=outcome.date, now=now)
    return asked if asked is not None else backoff.delay(delivery.attempts + 1, seed=str(delivery.uuid))


def _record_on_channel(channel: Channel, delivery: Delivery, outcome: Outcome, now: datetime) -> None:
    rows = Channel.objects.filter(pk=channel.pk)
    if outcome.verdict == Verdict.SENT:
        rows.update(last_success_at=now, wait_since=None, wait_until=None)
        if delivery.kind == DeliveryKind.TEST:
            rows.update(stopped_at=None)
    if outcome.detail:
        rows.update(last_error=outcome.detail[:300], last_error_at=now)
    if outcome.verdict == Verdict.NEVER and outcome.scope == StopScope.CHANNEL:
        rows.filter(stopped_at=None).update(stopped_at=now)
    if outcome.verdict == Verdict.AGAIN and outcome.retry_after:
        rows.update(wait_since=now, wait_until=now + _pause(delivery, outcome, now))
