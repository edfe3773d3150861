"""Changes to people and tokens. Each leaves a row in the audit record; secrets are returned once and never kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from apps.accounts.choices import Role, TokenScope
from apps.accounts.models import ApiToken, AuditEntry, NamespaceGrant, User
from apps.errors import ApplicationError

FAILED_LOGINS = ("login.failed", "login.paused")
KEY_MARK = "gd_"
"""Lets secret scanners and people recognise a token."""
TOKEN_BYTES = 32
PREFIX_LENGTH = 9
LAST_USED_STEP = timedelta(minutes=1)
"""The last use of a token is kept to the minute, so that a busy client does not write with each request."""


@dataclass(frozen=True, slots=True)
class NewUser:
    """``password`` is the one-time password, None where the user existed already."""

    user: User
    password: str | None


@dataclass(frozen=True, slots=True)
class NewToken:
    """``text`` is shown once and cannot be had again."""

    token: ApiToken
    text: str


def audit_record(
    *,
    action: str,
    actor: User | AnonymousUser | None = None,
    actor_name: str = "",
    target: str = "",
    details: dict[str, object] | None = None,
    address: str | None = None,
) -> AuditEntry:
    """Write down what was done; ``actor_name`` is for someone who is no user, like a failed login."""
    user = actor if isinstance(actor, User) else None
    return AuditEntry.objects.create(
        actor=user,
        actor_name=(user.username if user else actor_name)[:150],
        action=action,
        target=target[:512],
        details=details or {},
        address=address,
    )


@transaction.atomic
def admin_ensure() -> NewUser:
    """Create the first admin with a one-time password; where any user exists, change nothing."""
    existing = User.objects.order_by("-is_superuser", "pk").first()
    if existing is not None:
        return NewUser(existing, None)
    return user_create(username="admin", role=Role.ADMIN)


@transaction.atomic
def user_create(
    *, username: str, role: Role, grants: Iterable[tuple[str, str]] = (), actor: User | None = None
) -> NewUser:
    """Create a user with a one-time password; ``grants`` are (cluster, namespace) pairs of a namespace viewer."""
    pairs = sorted(set(grants))
    if pairs and role != Role.NAMESPACES:
        raise ApplicationError("grants_without_effect", "Only a viewer of named namespaces takes grants")
    password = secrets.token_urlsafe(15)
    user = User(username=username, role=role, must_change_password=True)
    user.is_superuser = user.is_staff = role == Role.ADMIN
    user.set_password(password)
    try:
        user.full_clean()
        user.save()
    except (ValidationError, IntegrityError) as error:
        raise ApplicationError("user_not_valid", f"User {username!r} cannot be created: {_words(error)}") from error
    NamespaceGrant.objects.bulk_create(
        NamespaceGrant(user=user, cluster=cluster, namespace=namespace) for cluster, namespace in pairs
    )
    audit_record(
        action="user.create", actor=actor, target=username, details={"role": role, "grants": [list(p) for p in pairs]}
    )
    return NewUser(user, password)


@transaction.atomic
def user_set_password(*, user: User, password: str, address: str | None = None) -> None:
    """Set a password that the validators accept; the old one and a one-time one end here."""
    if user.check_password(password):
        raise ApplicationError("password_not_new", "The new password must differ from the old one")
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise ApplicationError("password_too_weak", " ".join(error.messages)) from error
    user.set_password(password)
    user.must_change_password = False
    user.save(update_fields=["password", "must_change_password"])
    audit_record(action="password.change", actor=user, target=user.username, address=address)


@transaction.atomic
def token_create(
    *,
    user: User,
    name: str,
    scopes: Iterable[TokenScope] = (TokenScope.READ,),
    expires_at: datetime | None = None,
    address: str | None = None,
) -> NewToken:
    """Create a token; its text is in the answer and nowhere else."""
    wanted = sorted({str(TokenScope(scope)) for scope in scopes})
    clean = name.strip()
    if not clean or len(clean) > 64:
        raise ApplicationError("token_name_not_valid", "Name the token with 1 to 64 characters")
    if expires_at is not None and expires_at <= timezone.now():
        raise ApplicationError("token_expiry_past", "The token would have expired already")
    text = KEY_MARK + secrets.token_urlsafe(TOKEN_BYTES)
    token = ApiToken(user=user, name=clean, prefix=text[:PREFIX_LENGTH], digest=token_digest(text), scopes=wanted)
    token.expires_at = expires_at
    try:
        with transaction.atomic():
            token.save()
    except IntegrityError as error:
        raise ApplicationError("token_name_taken", f"You have a token named {clean!r} already") from error
    audit_record(action="token.create", actor=user, target=clean, details={"scopes": wanted}, address=address)
    return NewToken(token, text)


@transaction.atomic
def token_revoke(*, user: User, token_id: int, address: str | None = None) -> None:
    """End a token of this user, or of anyone where an admin asks; revoking it again changes nothing."""
    tokens = ApiToken.objects.all() if user.is_admin else ApiToken.objects.filter(user=user)
    token = tokens.filter(pk=token_id).first()
    if token is None:
        raise ApplicationError("token_unknown", "There is no such token")
    if tokens.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        audit_record(action="token.revoke", actor=user, target=token.name, address=address)


def token_authenticate(*, text: str) -> ApiToken | None:
    """Return the usable token with this text, None for any other; notes the use at most once a minute."""
    now = timezone.now()
    usable = Q(expires_at=None) | Q(expires_at__gt=now)
    token = (
        ApiToken.objects.filter(usable, digest=token_digest(text), revoked_at=None, user__is_active=True)
        .select_related("user")
        .first()
    )
    if token is not None and (token.last_used_at is None or now - token.last_used_at > LAST_USED_STEP):
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def failed_logins_prune(*, before: datetime) -> int:
    """Delete records of failed logins before a moment and return how many; what people did stays."""
    deleted, _by_model = AuditEntry.objects.filter(action__in=FAILED_LOGINS, at__lt=before).delete()
    return deleted


def token_digest(text: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(text.encode()).hexdigest()


def _words(error: ValidationError | IntegrityError) -> str:
    return " ".join(error.messages) if isinstance(error, ValidationError) else "the name is taken"
