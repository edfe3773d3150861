"""People, roles, tokens and the record of what was done."""

from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "apps.accounts"

    def ready(self) -> None:
        """Have logins written to the audit record."""
        from apps.accounts import logins

        logins.connect()
