"""What an admin types into a channel. Secrets are never written back into a form: empty ones stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from apps.delivery.channels import SECRETS, ZONES, ChannelValues, values_of
from apps.delivery.choices import ChannelKind
from apps.delivery.models import Channel

DAYS = tuple(enumerate(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")))
ONLY: Mapping[str, frozenset[str]] = {
    "slack_channel": frozenset({ChannelKind.SLACK_BOT}),
    "recipients": frozenset({ChannelKind.EMAIL}),
}
"""Fields that only some kinds have; of the secrets, `SECRETS` says it."""
WORDS: Mapping[tuple[str, str], tuple[str, str]] = {
    (ChannelKind.SLACK_WEBHOOK, "url"): ("Webhook address", "As Slack shows it: https://hooks.slack.com/services/..."),
    (ChannelKind.SLACK_BOT, "url"): ("API address", "Only where it is not https://slack.com/api."),
    (ChannelKind.WEBHOOK, "url"): ("Address", "Takes a POST over https."),
    (ChannelKind.SLACK_BOT, "token"): ("Bot token", "Begins with xoxb- and needs chat:write."),
    (ChannelKind.WEBHOOK, "signing_key"): ("Signing key", "Empty: one is made up and shown once."),
}
KEPT = "Kept as it is where you leave it empty."


def _secret() -> forms.CharField:
    attributes = {"autocomplete": "off", "spellcheck": "false"}
    return forms.CharField(required=False, widget=forms.PasswordInput(attrs=attributes), max_length=2000)


class ListField(forms.CharField):
    """Several values, separated by commas."""

    def clean(self, value: Any) -> tuple[str, ...]:
        text = super().clean(value) or ""
        return tuple(word.strip() for word in text.replace("\n", ",").split(",") if word.strip())

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list | tuple) else value


class ChannelForm(forms.Form):
    name = forms.CharField(label="Name", max_length=64, widget=forms.TextInput(attrs={"autocomplete": "off"}))
    url = _secret()
    token = _secret()
    signing_key = _secret()
    slack_channel = forms.CharField(
        label="Slack channel",
        required=False,
        max_length=80,
        help_text="Its ID, like C0123456789; invite the bot there.",
    )
    recipients = ListField(label="Recipients", required=False, help_text="Separated by commas.")
    clusters = ListField(
        label="Clusters that may be named", required=False, help_text="Separated by commas; empty means every cluster."
    )
    namespaces = ListField(
        label="Namespaces that may be named",
        required=False,
        help_text="Separated by commas; empty means every namespace.",
    )
    digest_after = forms.IntegerField(
        label="Alerts before they become a digest",
        required=False,
        min_value=1,
        max_value=1000,
        initial=5,
        help_text="Empty: each alert is a message of its own.",
    )
    digest_minutes = forms.IntegerField(label="Within minutes", min_value=1, max_value=1440, initial=10)
    quiet_from = forms.TimeField(
        label="Quiet from", required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    quiet_to = forms.TimeField(
        label="Quiet to", required=False, widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    quiet_zone = forms.CharField(
        label="Time zone",
        max_length=64,
        initial="UTC",
        help_text="By its name, like Europe/Berlin. Messages wait, none is dropped.",
        widget=forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
    )
    quiet_days = forms.TypedMultipleChoiceField(
        label="Quiet hours begin on", choices=DAYS, coerce=int, required=False, widget=forms.CheckboxSelectMultiple
    )
    quiet_pages_pass = forms.BooleanField(label="Pages go through quiet hours", required=False, initial=True)

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, kind: ChannelKind, channel: Channel | None = None
    ) -> None:
        values = values_of(channel) if channel else None
        names = self.base_fields
        super().__init__(data, initial={name: getattr(values, name) for name in names} if values else None)
        for name, kinds in ONLY.items():
            if kind not in kinds:
                del self.fields[name]
        for name in ("url", "token", "signing_key"):
            if name in SECRETS[kind]:
                label, help_text = WORDS[kind, name]
                self.fields[name].label = label
                self.fields[name].help_text = f"{help_text} {KEPT}" if channel else help_text
            else:
                del self.fields[name]

    def zones(self) -> tuple[str, ...]:
        """Return the time zones to choose from."""
        return ZONES

    def values(self) -> ChannelValues:
        """Return what was filled in, once the form is valid."""
        return ChannelValues(**{**self.cleaned_data, "quiet_days": tuple(self.cleaned_data["quiet_days"])})
