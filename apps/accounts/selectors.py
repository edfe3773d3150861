"""Reads of users, tokens and the audit record."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.accounts.models import ApiToken, AuditEntry, User

LOGIN_FAILED = "login.failed"
FAILURES_MAX = 10
PAUSE = timedelta(minutes=5)


def token_list(*, user: User) -> QuerySet[ApiToken]:
    """Return the user's usable tokens, newest first."""
    usable = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    return ApiToken.objects.filter(usable, user=user, revoked_at=None)


def login_is_paused(*, name: str, address: str | None) -> bool:
    """Return whether too many wrong passwords came for this name from this address just now."""
    since = timezone.now() - PAUSE
    failed = AuditEntry.objects.filter(action=LOGIN_FAILED, actor_name=name[:150], address=address, at__gt=since)
    return failed.count() >= FAILURES_MAX


def audit_list(*, action: str = "") -> QuerySet[AuditEntry]:
    """Return what was done, newest first; one kind of action where it is named."""
    entries = AuditEntry.objects.select_related("actor")
    return entries.filter(action=action) if action else entries
