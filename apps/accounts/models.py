"""Who may look at what: users with one role, grants per namespace, API tokens, and a record of what people did."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models

from apps.accounts.choices import Role


class User(AbstractUser):
    """A person or a service. A one-time password must be changed before anything else is shown."""

    role = models.CharField(max_length=16, choices=Role, default=Role.NAMESPACES)
    must_change_password = models.BooleanField(default=False)

    @property
    def is_admin(self) -> bool:
        return self.is_active and (self.is_superuser or self.role == Role.ADMIN)


class NamespaceGrant(models.Model):
    """One namespace of one cluster that a viewer of named namespaces may see.

    The cluster is held by name, so that a grant outlives a cluster that is removed and added again.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="grants")
    cluster = models.CharField(max_length=253)
    namespace = models.CharField(max_length=253)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "cluster", "namespace"], name="grant_once_per_namespace"),
        ]

    def __str__(self) -> str:
        return f"{self.user.username}: {self.cluster}/{self.namespace}"


class ApiToken(models.Model):
    """A named key of one user. Only its SHA-256 is kept: the text has 256 random bits, so it needs no salt.

    A token never allows more than its user may do, and not more than its scopes.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=64)
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-created_at", "-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["user", "name"], condition=models.Q(revoked_at=None), name="token_name_once_per_user"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}...)"


class AuditEntry(models.Model):
    """One thing that a person or token did. Written once, never changed; outlives the user."""

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    actor = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    actor_name = models.CharField(max_length=150, blank=True)
    action = models.CharField(max_length=64)
    target = models.CharField(max_length=512, blank=True)
    details = models.JSONField(default=dict)
    address = models.GenericIPAddressField(null=True)

    class Meta:
        ordering: ClassVar = ["-at", "-pk"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M:%S} {self.actor_name} {self.action} {self.target}"
