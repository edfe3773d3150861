"""Changes to schedules, by admins: what is saved can be followed, and each change is on the record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, time
from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.accounts.services import audit_record
from apps.clusters.models import Cluster
from apps.delivery.models import Channel
from apps.errors import ApplicationError
from apps.reports.choices import USUALLY_ATTACHED, Coverage, Frequency, ReportForm, Weekday
from apps.reports.models import ReportSchedule
from apps.reports.telling import channel_may_have


@dataclass(frozen=True, slots=True)
class ScheduleValues:
    """What a person decides about a schedule."""

    name: str
    frequency: Frequency = Frequency.DAILY
    weekday: Weekday = Weekday.MONDAY
    at: time = time(8)
    zone: str = "UTC"
    coverage_hours: Coverage = Coverage.SINCE_LAST
    attached: tuple[ReportForm, ...] = USUALLY_ATTACHED
    is_enabled: bool = True
    clusters: tuple[Cluster, ...] = field(default=())
    channels: tuple[Channel, ...] = field(default=())

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> ScheduleValues:
        """Return what a form or a request body decides that was found good; its lists may be left out."""
        return cls(
            name=data["name"],
            frequency=Frequency(data["frequency"]),
            weekday=Weekday(data["weekday"]),
            at=data["at"],
            zone=data["zone"],
            coverage_hours=Coverage(data["coverage_hours"]),
            attached=tuple(ReportForm(form) for form in data.get("attached", ())),
            is_enabled=data["is_enabled"],
            clusters=tuple(data.get("clusters", ())),
            channels=tuple(data.get("channels", ())),
        )


@cache
def zone_names() -> tuple[str, ...]:
    """Return the time zones that a schedule may follow; the machine's own has no name that means the same elsewhere."""
    return tuple(sorted(available_timezones() - {"localtime", "Factory"}))


@transaction.atomic
def schedule_save(
    *,
    values: ScheduleValues,
    actor: User,
    now: datetime,
    schedule: ReportSchedule | None = None,
    address: str | None = None,
) -> ReportSchedule:
    """Create or change a schedule. A new plan counts from now: nothing that was due before is made up for."""
    _check(values)
    row = schedule or ReportSchedule(due_after=now, is_enabled=False)
    was = (row.plan, row.is_enabled)
    row.name, row.frequency, row.weekday = values.name.strip(), values.frequency, values.weekday
    row.at, row.zone = values.at.replace(tzinfo=None, second=0, microsecond=0), values.zone
    row.coverage_hours, row.is_enabled = values.coverage_hours, values.is_enabled
    row.attached = sorted({form.value for form in values.attached})
    if was != (row.plan, row.is_enabled):
        row.due_after = now
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise ApplicationError("schedule_name_taken", f"There is a schedule named {row.name!r} already") from error
    row.clusters.set(values.clusters)
    row.channels.set(values.channels)
    audit_record(
        action="report_schedule.change" if schedule else "report_schedule.create",
        actor=actor,
        target=row.name,
        details=_told(values),
        address=address,
    )
    return row


@transaction.atomic
def schedule_delete(*, schedule: ReportSchedule, actor: User, address: str | None = None) -> None:
    """Remove a schedule; the reports that it made stay."""
    schedule.delete()
    audit_record(action="report_schedule.delete", actor=actor, target=schedule.name, address=address)


def _check(values: ScheduleValues) -> None:
    if not 1 <= len(values.name.strip()) <= 100 or not values.name.isprintable():
        raise ApplicationError("schedule_not_valid", "Name the schedule with 1 to 100 printable characters")
    if values.zone not in zone_names():
        raise ApplicationError("schedule_not_valid", f"{values.zone!r} is no time zone; write it like Europe/Berlin")
    clusters = [cluster.name for cluster in values.clusters]
    limited = [channel.name for channel in values.channels if not channel_may_have(channel, clusters=clusters)]
    if limited:
        raise ApplicationError(
            "channel_is_limited",
            f"{', '.join(limited)} may not hear of everything that these reports name",
        )


def _told(values: ScheduleValues) -> dict[str, object]:
    return {
        "frequency": values.frequency.value,
        "weekday": values.weekday.label if values.frequency == Frequency.WEEKLY else None,
        "at": f"{values.at:%H:%M}",
        "zone": values.zone,
        "coverage_hours": int(values.coverage_hours),
        "attached": _names(values.attached),
        "clusters": [cluster.name for cluster in values.clusters],
        "channels": [channel.name for channel in values.channels],
        "is_enabled": values.is_enabled,
    }


def _names(forms: Iterable[ReportForm]) -> list[str]:
    return sorted(form.value for form in forms)
