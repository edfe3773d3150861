"""What people type about reports: the range of one, the plan of a schedule, the channel to send one to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from apps.clusters.models import Cluster
from apps.delivery.models import Channel
from apps.errors import ApplicationError
from apps.reports.choices import USUALLY_ATTACHED, Coverage, Frequency, ReportForm, Weekday
from apps.reports.models import ReportSchedule
from apps.reports.ranges import Range, parse_range
from apps.reports.scheduling import ScheduleValues, zone_names


class ZoneField(forms.CharField):
    """An IANA name; what the machine does not know is refused."""

    def clean(self, value: Any) -> str:
        text = str(super().clean(value))
        if text not in zone_names():
            raise ValidationError("Write a time zone by its name, like UTC or Europe/Berlin")
        return text


class MakeForm(forms.Form):
    """One report now. ``covered`` holds what the range means after a good check."""

    cluster = forms.ChoiceField(label="Cluster")
    range = forms.CharField(
        label="Range",
        initial="24h",
        max_length=80,
        help_text="24h, 7d, or FROM/TO like 2026-11-29T08:00:00Z/2026-11-30T08:00:00Z.",
        widget=forms.TextInput(attrs={"list": "ranges", "autocomplete": "off"}),
    )
    zone = ZoneField(label="Time zone", initial="UTC", max_length=64)

    covered: Range

    def __init__(self, data: Mapping[str, Any] | None = None, *, clusters: Iterable[Cluster], now: datetime) -> None:
        super().__init__(data, prefix="make")
        self.now = now
        field = self.fields["cluster"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(cluster.name, cluster.name) for cluster in clusters]

    def clean_range(self) -> str:
        text: str = self.cleaned_data["range"]
        try:
            self.covered = parse_range(text, now=self.now)
        except ApplicationError as error:
            raise ValidationError(error.detail) from error
        return text


class ScheduleForm(forms.Form):
    """A schedule. What its fields say together is checked where it is saved."""

    name = forms.CharField(label="Name", max_length=100, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    clusters = forms.ModelMultipleChoiceField(
        label="Clusters",
        queryset=Cluster.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="None picked means every cluster that is read.",
    )
    frequency = forms.ChoiceField(label="How often", choices=Frequency.choices)
    weekday = forms.TypedChoiceField(label="Day, for a weekly one", choices=Weekday.choices, coerce=int)
    at = forms.TimeField(label="At", widget=forms.TimeInput(format="%H:%M", attrs={"type": "time"}))
    zone = ZoneField(
        label="Time zone",
        max_length=64,
        help_text="By its name, like Europe/Berlin.",
        widget=forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
    )
    coverage_hours = forms.TypedChoiceField(label="Covers", choices=Coverage.choices, coerce=int)
    channels = forms.ModelMultipleChoiceField(
        label="Send to", queryset=Channel.objects.none(), required=False, widget=forms.CheckboxSelectMultiple
    )
    attached = forms.MultipleChoiceField(
        label="Files of an e-mail", choices=ReportForm.choices, required=False, widget=forms.CheckboxSelectMultiple
    )
    is_enabled = forms.BooleanField(label="Follow this schedule", required=False)

    def __init__(self, data: Mapping[str, Any] | None = None, *, schedule: ReportSchedule | None = None) -> None:
        super().__init__(data, initial=_initial(schedule))
        for name, rows in (("clusters", Cluster.objects.all()), ("channels", Channel.objects.all())):
            field = self.fields[name]
            assert isinstance(field, forms.ModelMultipleChoiceField)
            field.queryset = rows

    def values(self) -> ScheduleValues:
        """Return what was decided, after a good check."""
        return ScheduleValues.of(self.cleaned_data)


def _initial(schedule: ReportSchedule | None) -> dict[str, Any]:
    """Return what the empty form shows: the schedule as it is, or the daily one that most want."""
    row = schedule or ReportSchedule(attached=list(USUALLY_ATTACHED))
    plain = {name: getattr(row, name) for name in ("name", "frequency", "weekday", "at", "zone", "coverage_hours")}
    many = {"clusters": row.clusters.all(), "channels": row.channels.all()} if schedule else {}
    return {**plain, **many, "attached": row.attached, "is_enabled": row.is_enabled}
