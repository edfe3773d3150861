"""`manage.py ensure_admin`: makes sure that someone can log in; prints one JSON line for the supervisor."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand

from apps.accounts.services import admin_ensure


class Command(BaseCommand):
    help = "Create the admin with a one-time password on first start; prints {username, password or null}."

    def handle(self, *_args: Any, **_options: Any) -> None:
        ensured = admin_ensure()
        self.stdout.write(json.dumps({"username": ensured.user.username, "password": ensured.password}))
