"""Routes: which alerts go to which channel, and where they go when nobody takes care. Every change is written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import audit_record
from apps.alerts.models import AlertRule, Route
from apps.alerts.services.rules import names_checked
from apps.delivery.messages import Severity
from apps.delivery.models import Channel
from apps.errors import ApplicationError

MINUTES_MOST = 7 * 24 * 60


@dataclass(frozen=True, slots=True)
class RouteInput:
    """What may be set of a route. Empty lists mean all."""

    name: str
    channel: Channel
    rules: Sequence[str] = ()
    severities: Sequence[str] = ()
    clusters: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    queues: Sequence[str] = ()
    escalate_to: Channel | None = None
    escalate_after_minutes: int | None = None
    is_enabled: bool = True


def route_save(*, route: Route | None, values: RouteInput, actor: User, address: str | None = None) -> Route:
    """Make a route, or set one that is there."""
    row = route or Route()
    _apply(row, values)
    try:
        with transaction.atomic():
            row.save()
            action = "alert_route.change" if route else "alert_route.create"
            audit_record(action=action, actor=actor, target=row.name, details=_told(row), address=address)
    except IntegrityError as error:
        raise ApplicationError(
            "route_name_taken", f"There is a route named {row.name!r} already", field="name"
        ) from error
    return row


def route_delete(*, route: Route, actor: User, address: str | None = None) -> None:
    """Delete a route; what was told stays where it is."""
    with transaction.atomic():
        audit_record(action="alert_route.delete", actor=actor, target=route.name, details=_told(route), address=address)
        route.delete()


def _apply(row: Route, values: RouteInput) -> None:
    name = values.name.strip()
    if not name or len(name) > 64 or "\x00" in name:
        raise ApplicationError("route_not_valid", "Name the route with 1 to 64 characters", field="name")
    row.name, row.channel, row.is_enabled = name, values.channel, values.is_enabled
    row.rules = _known(values.rules, set(AlertRule.objects.values_list("key", flat=True)), "rules")
    row.severities = _known(values.severities, set(Severity), "severities")
    for field in ("clusters", "namespaces", "queues"):
        setattr(row, field, names_checked(getattr(values, field), field))
    row.escalate_to, row.escalate_after_minutes = _escalation(values)


def _known(values: Sequence[str], known: set[str], field: str) -> list[str]:
    unknown = sorted(set(values) - known)
    if unknown:
        raise ApplicationError("route_not_valid", f"There is no {unknown[0]!r}", field=field)
    return sorted({str(value) for value in values})


def _escalation(values: RouteInput) -> tuple[Channel | None, int | None]:
    """Return both or neither: a second channel needs a time, and a time a channel."""
    channel, minutes = values.escalate_to, values.escalate_after_minutes
    if (channel is None) != (minutes is None):
        raise ApplicationError("route_not_valid", "An escalation needs a channel and a time", field="escalate_to")
    if channel is None or minutes is None:
        return None, None
    if channel.pk == values.channel.pk:
        raise ApplicationError("route_not_valid", "The second channel must be another one", field="escalate_to")
    if not 1 <= minutes <= MINUTES_MOST:
        raise ApplicationError(
            "route_not_valid", f"Escalate after 1 to {MINUTES_MOST} minutes", field="escalate_after_minutes"
        )
    return channel, minutes


def _told(row: Route) -> dict[str, object]:
    told: dict[str, object] = {
        name: getattr(row, name) for name in ("rules", "severities", "clusters", "namespaces", "queues", "is_enabled")
    }
    second = row.escalate_to.name if row.escalate_to else ""
    return {**told, "channel": row.channel.name, "escalate_to": second, "after_minutes": row.escalate_after_minutes}
