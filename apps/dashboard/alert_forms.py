"""What people set about alerts: rules with their numbers, conditions of their own, routes, mutes, acknowledgements.

Times are typed in minutes; the services check what the forms let through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from apps.alerts.choices import AlertSeverity, MuteKind
from apps.alerts.models import AlertRule, Route
from apps.alerts.rules import RULES
from apps.alerts.rules.base import Param
from apps.alerts.services.routes import RouteInput
from apps.alerts.services.rules import RuleInput
from apps.dashboard import marks
from apps.delivery.models import Channel
from gangdash.engine.verdict import ReasonCode

MUTE_TIMES = (("1", "1 hour"), ("4", "4 hours"), ("24", "1 day"), ("168", "1 week"), ("720", "30 days"))
MINUTE = 60


class NamesField(forms.CharField):
    """Names with commas or spaces between them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, **options)

    def to_python(self, value: object) -> Any:
        text = str(super().to_python(value) or "")
        if "\x00" in text:
            raise ValidationError("A name has a character that no name has")
        return [name for name in text.replace(",", " ").split() if name]

    def prepare_value(self, value: object) -> object:
        return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


class TickBoxes(forms.MultipleChoiceField):
    """Any of a few; none means all."""

    def __init__(self, *, label: str, choices: Sequence[tuple[str, str]], help_text: str = "") -> None:
        super().__init__(
            label=label, choices=choices, required=False, widget=forms.CheckboxSelectMultiple, help_text=help_text
        )


class SettingForm(forms.Form):
    """What every rule has."""

    severity = forms.ChoiceField(label="Severity", choices=AlertSeverity.choices)
    for_minutes = forms.FloatField(label="Fires after, in minutes", min_value=0)
    keep_minutes = forms.FloatField(
        label="Goes on after calm for, in minutes", min_value=0, help_text="So that what comes and goes is told once."
    )
    clusters = NamesField(label="Clusters", help_text="None means all.")
    namespaces = NamesField(label="Namespaces", help_text="None means all. Rules about queues and clusters have none.")
    queues = NamesField(label="Queues", help_text="None means all.")
    is_enabled = forms.BooleanField(label="Switched on", required=False)

    def setting(self) -> dict[str, Any]:
        """Return what was typed, as services take it."""
        values = self.cleaned_data
        return {
            "severity": values["severity"],
            "for_seconds": round(values["for_minutes"] * MINUTE),
            "keep_seconds": round(values["keep_minutes"] * MINUTE),
            "is_enabled": values["is_enabled"],
            **{name: values[name] for name in ("clusters", "namespaces", "queues")},
        }


class BuiltInForm(SettingForm):
    """A rule of the list: its own numbers stand beside what every rule has."""

    def __init__(self, data: Mapping[str, Any] | None, *, rule: AlertRule) -> None:
        super().__init__(data, initial=setting_initial(rule))
        self.params = RULES[rule.key].params
        for param in self.params:
            self.fields[param.name] = forms.FloatField(
                label=_label(param),
                min_value=_shown(param, param.least),
                max_value=_shown(param, param.most),
                initial=_shown(param, rule.values.get(param.name, param.default)),
                help_text=f"{_shown(param, param.least):g} to {_shown(param, param.most):g}; "
                f"{_shown(param, param.default):g} unless set.",
            )
        self.order_fields([param.name for param in self.params])

    def rule_input(self) -> RuleInput:
        typed = {param.name: _stored(param, self.cleaned_data[param.name]) for param in self.params}
        return RuleInput(**self.setting(), values=typed)


def _is_time(param: Param) -> bool:
    return param.unit == "s"


def _label(param: Param) -> str:
    unit = "minutes" if _is_time(param) else param.unit
    return f"{param.title}, in {unit}" if unit else param.title


def _shown(param: Param, value: float) -> float:
    return _tidy(value / MINUTE if _is_time(param) else value)


def _tidy(value: float) -> float:
    """Return a whole number as one, so that it is written without a point."""
    return int(value) if float(value).is_integer() else value


def _stored(param: Param, value: float) -> float:
    return value * MINUTE if _is_time(param) else value


def setting_initial(rule: AlertRule) -> dict[str, Any]:
    """Return a rule as its form shows it."""
    return {
        "severity": rule.severity,
        "for_minutes": _tidy(rule.for_seconds / MINUTE),
        "keep_minutes": _tidy(rule.keep_seconds / MINUTE),
        "clusters": rule.clusters,
        "namespaces": rule.namespaces,
        "queues": rule.queues,
        "is_enabled": rule.is_enabled,
    }


class CustomForm(SettingForm):
    """A rule of one's own: which gangs it is about."""

    title = forms.CharField(label="Name", max_length=120)
    verdicts = TickBoxes(label="Verdict", choices=[(str(value), mark.word) for value, mark in marks.VERDICTS.items()],
                         help_text="None: any gang that waits.")  # fmt: skip
    codes = NamesField(label="Codes", help_text="Like DOMAIN_BUSY, QUEUE_LIMIT; none means any.")
    who = TickBoxes(label="Who acts", choices=[(str(value), mark.word) for value, mark in marks.WHO.items()])
    gpus_least = forms.FloatField(label="GPUs that wait, at least", min_value=0, required=False)
    gpus_most = forms.FloatField(label="GPUs that wait, at most", min_value=0, required=False)
    age_minutes = forms.FloatField(label="Waits for at least, in minutes", min_value=0, required=False)
    field_order = ("title", "verdicts", "codes", "who", "gpus_least", "gpus_most", "age_minutes")

    def __init__(self, data: Mapping[str, Any] | None, *, rule: AlertRule | None = None) -> None:
        super().__init__(data, initial=custom_initial(rule) if rule else NEW_RULE)

    def clean_codes(self) -> list[str]:
        codes = [code.upper() for code in self.cleaned_data["codes"]]
        known = set(ReasonCode)
        for code in codes:
            if code not in known:
                raise ValidationError(f"There is no code {code}")
        return codes

    def rule_input(self) -> RuleInput:
        values = self.cleaned_data
        condition = {
            **{name: values[name] for name in ("verdicts", "codes", "who")},
            "gpus_least": values["gpus_least"] or 0,
            "gpus_most": values["gpus_most"],
            "age_seconds": (values["age_minutes"] or 0) * MINUTE,
        }
        return RuleInput(**self.setting(), title=values["title"], condition=condition)


NEW_RULE: dict[str, Any] = {"severity": "ticket", "for_minutes": 10, "keep_minutes": 5, "is_enabled": True}


def custom_initial(rule: AlertRule) -> dict[str, Any]:
    """Return a custom rule as its form shows it."""
    condition = rule.condition or {}
    return {
        **setting_initial(rule),
        **{name: condition.get(name) for name in ("verdicts", "codes", "who", "gpus_most")},
        "title": rule.title,
        "gpus_least": condition.get("gpus_least") or None,
        "age_minutes": _tidy((condition.get("age_seconds") or 0) / MINUTE) or None,
    }


class RouteForm(forms.Form):
    """Which alerts go to a channel."""

    name = forms.CharField(label="Name", max_length=64)
    channel = forms.ModelChoiceField(label="Channel", queryset=Channel.objects.none())
    severities = TickBoxes(label="Severity", choices=AlertSeverity.choices, help_text="None means all.")
    rules = TickBoxes(label="Rules", choices=(), help_text="None means all.")
    clusters = NamesField(label="Clusters", help_text="None means all.")
    namespaces = NamesField(label="Namespaces", help_text="None means all; one gang inside is enough.")
    queues = NamesField(label="Queues", help_text="None means all.")
    escalate_to = forms.ModelChoiceField(
        label="Second channel", queryset=Channel.objects.none(), required=False, empty_label="None",
        help_text="Is told of what nobody has acknowledged in time.",
    )  # fmt: skip
    escalate_after_minutes = forms.IntegerField(label="Tell it after, in minutes", min_value=1, required=False)
    is_enabled = forms.BooleanField(label="Switched on", required=False, initial=True)

    def __init__(self, data: Mapping[str, Any] | None, *, rules: Sequence[AlertRule], route: Route | None) -> None:
        super().__init__(data, initial=_route_initial(route) if route else None)
        for name in ("channel", "escalate_to"):
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)
            field.queryset = Channel.objects.order_by("name")
        ticks = self.fields["rules"]
        assert isinstance(ticks, TickBoxes)
        ticks.choices = [(rule.key, rule.title) for rule in rules]

    def route_input(self) -> RouteInput:
        return RouteInput(**self.cleaned_data)


def _route_initial(route: Route) -> dict[str, Any]:
    names = ("name", "severities", "rules", "clusters", "namespaces", "queues", "escalate_after_minutes", "is_enabled")
    return {
        **{name: getattr(route, name) for name in names},
        "channel": route.channel_id,
        "escalate_to": route.escalate_to_id,
    }


class MuteForm(forms.Form):
    """What to mute, for how long, and why."""

    kind = forms.ChoiceField(label="Mute", choices=MuteKind.choices, widget=forms.RadioSelect)
    hours = forms.ChoiceField(label="For", choices=MUTE_TIMES)
    reason = forms.CharField(label="Why", max_length=500, widget=forms.TextInput(attrs={"autocomplete": "off"}))

    def __init__(self, data: Mapping[str, Any] | None, *, kinds: Sequence[tuple[str, str]], hours: str) -> None:
        known = {value for value, _ in MUTE_TIMES}
        super().__init__(data, initial={"kind": kinds[0][0], "hours": hours if hours in known else "1"})
        choice = self.fields["kind"]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = list(kinds)


class AcknowledgeForm(forms.Form):
    note = forms.CharField(
        label="Note", max_length=500, required=False, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
