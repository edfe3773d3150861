"""Passwords, checked with patience: after ten wrong ones for a name from one address there is a pause.

Counts what the audit record holds, so that all web processes count together. Attempts during the pause are refused
without looking at the password and do not make it longer.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from apps.accounts.logins import client_address
from apps.accounts.models import User
from apps.accounts.selectors import login_is_paused


class PatientBackend(ModelBackend):
    """Django's own backend behind a counter."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **kwargs: Any
    ) -> User | None:
        if login_is_paused(name=username or "", address=client_address(request)):
            raise PermissionDenied
        user = super().authenticate(request, username=username, password=password, **kwargs)
        return user if isinstance(user, User) else None
