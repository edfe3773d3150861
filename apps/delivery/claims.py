"""Who may send a row: one sender at a time, and nobody waits for ever for one that was killed.

Taking a row is a counted update. Whether another sender is dead is not judged by the wall clock, which may jump: its
claim must have been seen unchanged for longer than any sender lives, on this process's own steady clock.
"""

from __future__ import annotations

import time
import uuid
from datetime import datetime

from django.db.models import F

from apps.delivery.backoff import delay
from apps.delivery.choices import DeliveryState
from apps.delivery.models import Delivery

LIFE_SECONDS = 40
"""A sending task is killed after this."""
HOLD_SECONDS = LIFE_SECONDS + 20.0
FORGET_SECONDS = 3600.0

_seen: dict[int, tuple[str, float]] = {}
"""Which claim was first seen when, by row; of this process only."""


def claim(delivery: Delivery, *, now: datetime) -> str:
    """Take a row for one attempt and return the claim, empty where somebody else was faster.

    Its time is taken away with it, so that others look at the claim at once, whatever the clock says by then.
    """
    token = str(uuid.uuid4())
    taken = Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.DUE, claim="").update(
        claim=token, claimed_at=now, attempted_at=now, due_at=None, attempts=F("attempts") + 1
    )
    return token if taken else ""


def free_if_dead(delivery: Delivery, *, now: datetime) -> bool:
    """Free a row whose sender is dead and return whether it is free now; what it sent may come twice then.

    It waits its turn like any failed one, so that a message on which senders die does not keep the others back.
    """
    if not _is_dead(delivery.pk, delivery.claim):
        return False
    Delivery.objects.filter(pk=delivery.pk, state=DeliveryState.DUE, claim=delivery.claim).update(
        claim="",
        may_repeat=True,
        # Both from the same look at the clock: a moment that lies between them is one to wait in.
        attempted_at=now,
        due_at=now + delay(delivery.attempts, seed=str(delivery.uuid)),
        detail="The sender was stopped before it knew what became of it",
    )
    _seen.pop(delivery.pk, None)
    return True


def _is_dead(row: int, token: str) -> bool:
    now = time.monotonic()
    for other, (_token, since) in list(_seen.items()):
        if now - since > FORGET_SECONDS:
            del _seen[other]
    known, since = _seen.get(row, ("", now))
    if known != token:
        _seen[row] = (token, now)
        since = now
    return now - since >= HOLD_SECONDS
