"""System checks of what messages need from the settings. Reads files that settings name, never the network."""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import parseaddr
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from apps.delivery.vault import KEY_LENGTH_MIN, has_key


def check_messages(**_options: Any) -> list[CheckMessage]:
    """Check the key for secrets, the proxy, the file of authorities and what mails are from."""
    return list(_faults())


def _faults() -> Iterator[CheckMessage]:
    if not has_key():
        yield Error(
            "GANGDASH_SECRETS_KEY is not set, so addresses and tokens of channels cannot be kept.",
            hint="Set it to 32 or more random characters, for example: openssl rand -base64 48",
            id="gangdash.E008",
        )
    if any(len(key) < KEY_LENGTH_MIN or len(set(key)) < 5 for key in settings.GANGDASH_SECRETS_KEYS):
        yield Error(
            "GANGDASH_SECRETS_KEY holds a key that is too short or too regular to protect secrets.",
            hint=f"Use {KEY_LENGTH_MIN} or more random characters for each.",
            id="gangdash.E009",
        )
    if settings.GANGDASH_WEBHOOK_PROXY and not settings.GANGDASH_WEBHOOK_PROXY.startswith(("http://", "https://")):
        yield Error(
            "GANGDASH_WEBHOOK_PROXY is not the address of a proxy.",
            hint="Write it like http://proxy.example:3128.",
            id="gangdash.E010",
        )
    if settings.GANGDASH_WEBHOOK_CA_FILE and not Path(settings.GANGDASH_WEBHOOK_CA_FILE).is_file():
        yield Error(
            "GANGDASH_WEBHOOK_CA_FILE names no file that can be read.",
            hint="Name a PEM file of authorities.",
            id="gangdash.E011",
        )
    if settings.EMAIL_HOST and not _is_address(settings.DEFAULT_FROM_EMAIL):
        yield Error(
            "GANGDASH_MAIL_FROM is no e-mail address.",
            hint="Write it like gangdash@example.com or gangdash <gangdash@example.com>.",
            id="gangdash.E012",
        )


def _is_address(text: str) -> bool:
    try:
        validate_email(parseaddr(text)[1])
    except ValidationError:
        return False
    return True
