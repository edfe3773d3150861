"""Where messages go, and the outbox: one row for each duty to deliver one message to one channel.

The row is the duty, a task is only a hint to look. Addresses and tokens are kept sealed and never leave this app;
what is shown is the host.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from apps.delivery.choices import ChannelKind, DeliveryKind, DeliveryState, StopScope
from apps.delivery.messages import Severity


class Channel(models.Model):
    """A place that messages go to.

    ``clusters`` and ``namespaces`` limit which names may be told there; an empty list means all. A paused channel
    keeps its duties. ``stopped_at`` is set when the far side refuses everything: duties wait until an admin acts.
    """

    name = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=16, choices=ChannelKind)
    host = models.CharField(max_length=253, blank=True)
    sealed = models.TextField(blank=True)
    slack_channel = models.CharField(max_length=80, blank=True)
    recipients = models.JSONField(default=list)
    clusters = models.JSONField(default=list)
    namespaces = models.JSONField(default=list)
    is_enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    digest_after = models.PositiveSmallIntegerField(
        null=True, default=5, validators=[MinValueValidator(1), MaxValueValidator(1000)]
    )
    """More alerts than this within ``digest_minutes`` become one digest; None never does."""
    digest_minutes = models.PositiveSmallIntegerField(
        default=10, validators=[MinValueValidator(1), MaxValueValidator(1440)]
    )

    # Quiet hours; the days are those on which they begin, Monday is 0.
    quiet_zone = models.CharField(max_length=64, default="UTC")
    quiet_days = models.JSONField(default=list)
    quiet_from = models.TimeField(null=True)
    quiet_to = models.TimeField(null=True)
    quiet_pages_pass = models.BooleanField(default=True)

    last_success_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=300, blank=True)
    last_error_at = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)
    # Set together when the far side asks for a pause; a clock before wait_since means that the clock went back.
    wait_since = models.DateTimeField(null=True)
    wait_until = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"

    def may_tell(self, *, cluster: str, namespace: str) -> bool:
        """Return whether names of this namespace of this cluster may be told there."""
        return (not self.clusters or cluster in self.clusters) and (not self.namespaces or namespace in self.namespaces)


class Delivery(models.Model):
    """One message that one channel must get.

    A sender takes it by a counted update on ``claim``; ``may_repeat`` says that an attempt ended without anybody
    knowing whether the message arrived.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    kind = models.CharField(max_length=16, choices=DeliveryKind)
    key = models.CharField(max_length=200)
    thread = models.CharField(max_length=200, blank=True)
    """The key of the message that this one follows, empty where it is the first."""
    severity = models.CharField(max_length=8, choices=[(level.value, level.value) for level in Severity])
    title = models.CharField(max_length=255)
    message = models.TextField()
    state = models.CharField(max_length=16, choices=DeliveryState, default=DeliveryState.DUE)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True)
    """When to try again; None means at once."""
    attempted_at = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    claim = models.CharField(max_length=36, blank=True)
    claimed_at = models.DateTimeField(null=True)
    may_repeat = models.BooleanField(default=False)
    sent_at = models.DateTimeField(null=True)
    remote_id = models.CharField(max_length=64, blank=True)
    """What the far side calls the message, where it says so; replies need it."""
    detail = models.CharField(max_length=300, blank=True)
    """How the newest attempt went wrong."""
    stop_scope = models.CharField(max_length=8, choices=StopScope, blank=True, default=StopScope.NONE)
    carried_by = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="carries")

    class Meta:
        ordering: ClassVar = ["-created_at", "-pk"]
        verbose_name_plural = "deliveries"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["channel", "key"], name="delivery_once_per_key"),
        ]
        indexes: ClassVar = [
            # What is due, each few seconds.
            models.Index(fields=["channel"], condition=models.Q(state="due"), name="delivery_due"),
            # How many alerts a channel got lately.
            models.Index(fields=["channel", "sent_at"], name="delivery_sent"),
            # The log.
            models.Index(fields=["-created_at"], name="delivery_log"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.title} ({self.state})"
