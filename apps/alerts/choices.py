"""Where an alert stands, how urgent it is, what a mute is about."""

from __future__ import annotations

from django.db import models

from apps.delivery.messages import Severity


class AlertState(models.TextChoices):
    PENDING = "pending", "Pending"
    FIRING = "firing", "Firing"
    RESOLVED = "resolved", "Resolved"


class AlertSeverity(models.TextChoices):
    PAGE = Severity.PAGE.value, "Page"
    TICKET = Severity.TICKET.value, "Ticket"
    INFO = Severity.INFO.value, "Info"


class MuteKind(models.TextChoices):
    SIGNATURE = "signature", "One cause"
    GANG = "gang", "One gang"
    QUEUE = "queue", "One queue"
    CLUSTER = "cluster", "A whole cluster"
