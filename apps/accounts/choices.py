"""Roles of people and scopes of tokens."""

from __future__ import annotations

from django.db import models


class Role(models.TextChoices):
    ADMIN = "admin", "Admin: sees everything, manages people"
    VIEWER = "viewer", "Viewer: sees everything"
    NAMESPACES = "namespaces", "Viewer of named namespaces"


class TokenScope(models.TextChoices):
    READ = "read", "Read what its owner may read"
    DIAGNOSE = "diagnose", "Have snapshot files diagnosed"
