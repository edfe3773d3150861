"""What people type into pages: a snapshot file, a new password, a token's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib.auth.password_validation import password_validators_help_texts
from django.core.exceptions import ValidationError

from apps.accounts.choices import TokenScope
from apps.accounts.models import User
from apps.dashboard import numbers

LIFETIMES = (("30", "30 days"), ("90", "90 days"), ("365", "1 year"), ("", "until it is revoked"))


class UploadForm(forms.Form):
    """``as_of`` is asked for only where the file does not say its own time."""

    file = forms.FileField(label="Snapshot file", allow_empty_file=True)
    as_of = forms.CharField(
        label="As of",
        required=False,
        help_text="Only for a file that does not carry its own time, like 2026-11-30T08:56:00Z.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "the file's own time"}),
    )

    def clean_as_of(self) -> str:
        text = str(self.cleaned_data["as_of"]).strip()
        if text and numbers.parse_time(text) is None:
            raise ValidationError("Write the time with its zone, like 2026-11-30T08:56:00Z")
        return text


class PasswordForm(forms.Form):
    """The old password is asked for, so that an open screen is not enough."""

    old = forms.CharField(
        label="Present password", widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}), strip=False
    )
    new = forms.CharField(
        label="New password", widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}), strip=False
    )
    again = forms.CharField(
        label="New password again", widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}), strip=False
    )

    def __init__(self, data: Mapping[str, Any] | None = None, *, user: User) -> None:
        super().__init__(data)
        self.user = user
        self.rules = password_validators_help_texts()

    def clean_old(self) -> str:
        old: str = self.cleaned_data["old"]
        if not self.user.check_password(old):
            raise ValidationError("This is not your present password")
        return old

    def clean(self) -> dict[str, object]:
        values = super().clean() or {}
        if values.get("new") != values.get("again"):
            self.add_error("again", "The two new passwords differ")
        return values


class TokenForm(forms.Form):
    name = forms.CharField(
        label="Name", max_length=64, widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": "ci, grafana"})
    )
    days = forms.ChoiceField(label="Valid for", choices=LIFETIMES, initial="90", required=False)
    scopes = forms.MultipleChoiceField(
        label="May", choices=TokenScope.choices, initial=[TokenScope.READ], widget=forms.CheckboxSelectMultiple
    )
