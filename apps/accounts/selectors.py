"""Reads of users, tokens and the audit record."""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.accounts.models import ApiToken, AuditEntry, User


def token_list(*, user: User) -> QuerySet[ApiToken]:
    """Return the user's usable tokens, newest first."""
    usable = Q(expires_at=None) | Q(expires_at__gt=timezone.now())
    return ApiToken.objects.filter(usable, user=user, revoked_at=None)


def audit_list(*, action: str = "") -> QuerySet[AuditEntry]:
    """Return what was done, newest first; one kind of action where it is named."""
    entries = AuditEntry.objects.select_related("actor")
    return entries.filter(action=action) if action else entries
