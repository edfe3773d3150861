"""Someone takes care of an alert: who, when, with what note. It ends the escalation, and the threads are told."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.services import audit_record
from apps.alerts.choices import AlertState
from apps.alerts.models import Alert
from apps.alerts.services.telling import channels_of
from apps.alerts.services.wording import acknowledged_message
from apps.delivery.choices import DeliveryKind
from apps.delivery.services import enqueue
from apps.errors import ApplicationError

NOTE_LONGEST = 500


def alert_acknowledge(*, alert: Alert, actor: User, note: str, now: datetime, address: str | None = None) -> Alert:
    """Write down that someone takes care of an alert; the first one counts."""
    if len(note) > NOTE_LONGEST:
        raise ApplicationError("note_too_long", f"A note has up to {NOTE_LONGEST} characters", field="note")
    with transaction.atomic():
        mine = Alert.objects.filter(pk=alert.pk, state=AlertState.FIRING, acknowledged_at=None)
        who = {"acknowledged_at": now, "acknowledged_by": actor, "acknowledged_name": actor.username}
        if not mine.update(**who, acknowledged_note=note.strip()):
            raise ApplicationError("not_to_acknowledge", "It does not fire, or someone has acknowledged it already")
        alert.refresh_from_db()
        _tell(alert, now)
        audit_record(
            action="alert.acknowledge", actor=actor, target=alert.title, details={"note": note}, address=address
        )
    return alert


def _tell(alert: Alert, now: datetime) -> None:
    message = acknowledged_message(alert=alert)
    for channel in channels_of(alert.told_to):
        enqueue(
            channel=channel,
            kind=DeliveryKind.UPDATE,
            key=f"{alert.thread}:acknowledged:{alert.pk}",
            message=message,
            thread=alert.thread,
            now=now,
        )
