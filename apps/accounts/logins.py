"""Writes logins, logouts and failed logins to the audit record.

Django announces them; passwords never reach this module.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest

from apps.accounts.models import User
from apps.accounts.selectors import LOGIN_FAILED, login_is_paused
from apps.accounts.services import audit_record


def connect() -> None:
    user_logged_in.connect(_note_login, dispatch_uid="audit.login")
    user_logged_out.connect(_note_logout, dispatch_uid="audit.logout")
    user_login_failed.connect(_note_failure, dispatch_uid="audit.login_failed")


def client_address(request: HttpRequest | None) -> str | None:
    """Return the peer's address as the web server saw it."""
    return (request.META.get("REMOTE_ADDR") or None) if request is not None else None


def _note_login(request: HttpRequest | None, user: User, **_signal: Any) -> None:
    audit_record(action="login", actor=user, target=user.username, address=client_address(request))


def _note_logout(request: HttpRequest | None, user: User | None, **_signal: Any) -> None:
    if user is not None:
        audit_record(action="logout", actor=user, target=user.username, address=client_address(request))


def _note_failure(credentials: dict[str, Any], request: HttpRequest | None = None, **_signal: Any) -> None:
    name, address = str(credentials.get("username", "")), client_address(request)
    action = "login.paused" if login_is_paused(name=name, address=address) else LOGIN_FAILED
    audit_record(action=action, actor_name=name, target=name, address=address)
