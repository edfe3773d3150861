"""Kinds of channels and messages, and where a duty to deliver stands."""

from __future__ import annotations

from django.db import models


class ChannelKind(models.TextChoices):
    SLACK_WEBHOOK = "slack_webhook", "Slack incoming webhook"
    SLACK_BOT = "slack_bot", "Slack bot"
    WEBHOOK = "webhook", "Webhook"
    EMAIL = "email", "E-mail"


class DeliveryKind(models.TextChoices):
    ALERT = "alert", "Alert"
    UPDATE = "update", "Update"
    RESOLVED = "resolved", "Resolved"
    DIGEST = "digest", "Digest"
    REPORT = "report", "Report"
    TEST = "test", "Test"


class DeliveryState(models.TextChoices):
    DUE = "due", "Due"
    SENT = "sent", "Sent"
    STOPPED = "stopped", "Stopped"
    CARRIED = "carried", "In a digest"


class StopScope(models.TextChoices):
    """What a final refusal is about: this message alone, or everything that goes to the channel."""

    NONE = "", "None"
    MESSAGE = "message", "This message"
    CHANNEL = "channel", "The channel"
