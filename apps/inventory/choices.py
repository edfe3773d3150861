"""States of a node as far as placement is concerned."""

from __future__ import annotations

from django.db import models


class NodeState(models.TextChoices):
    READY = "ready", "Ready"
    CORDONED = "cordoned", "Cordoned"
    NOT_READY = "not_ready", "Not ready"
    TAINTED = "tainted", "Tainted by its state"
