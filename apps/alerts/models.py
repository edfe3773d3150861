"""Rules as they are set, where their alerts go, the alerts themselves, mutes, and what alerts keep of the past.

An alert is one signature of one rule in one cluster, from the first look that found it to its end; the database lets
only one such row be open. ``AlertClock`` is what lets one of two evaluations win.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.accounts.models import User
from apps.alerts.choices import AlertSeverity, AlertState, MuteKind
from apps.alerts.rules import SILENT_WHEN_BLIND
from apps.alerts.rules.base import SIGNATURE_LENGTH
from apps.alerts.rules.facts import Topic
from apps.clusters.models import Cluster
from apps.delivery.models import Channel
from apps.workloads.models import Gang


class AlertRule(models.Model):
    """One rule with its settings: one of the list, or one that people made of a condition on gangs.

    Empty lists of the scope mean all. ``values`` holds only the numbers that differ from the list's own.
    """

    key = models.SlugField(max_length=64, unique=True)
    title = models.CharField(max_length=120)
    meaning = models.CharField(max_length=500, blank=True)
    condition = models.JSONField(null=True)
    """Of a custom rule, as ``custom.condition_of`` reads it; None for a rule of the list."""
    severity = models.CharField(max_length=8, choices=AlertSeverity)
    for_seconds = models.PositiveIntegerField()
    keep_seconds = models.PositiveIntegerField()
    values = models.JSONField(default=dict)
    is_enabled = models.BooleanField(default=True)
    clusters = models.JSONField(default=list)
    namespaces = models.JSONField(default=list)
    queues = models.JSONField(default=list)
    number = models.PositiveSmallIntegerField(null=True)
    changed_at = models.DateTimeField(null=True)
    changed_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering: ClassVar = [models.F("number").asc(nulls_last=True), "title", "pk"]

    def __str__(self) -> str:
        return self.title

    @property
    def is_custom(self) -> bool:
        return self.condition is not None

    @property
    def is_silent_when_blind(self) -> bool:
        return self.is_custom or self.key in SILENT_WHEN_BLIND


class Route(models.Model):
    """Alerts of these rules, severities and places go to a channel; empty lists mean all.

    What nobody acknowledges in ``escalate_after_minutes`` goes to a second channel too.
    """

    name = models.CharField(max_length=64, unique=True)
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="routes")
    rules = models.JSONField(default=list)
    severities = models.JSONField(default=list)
    clusters = models.JSONField(default=list)
    namespaces = models.JSONField(default=list)
    queues = models.JSONField(default=list)
    escalate_to = models.ForeignKey(Channel, on_delete=models.SET_NULL, null=True, related_name="escalations")
    escalate_after_minutes = models.PositiveIntegerField(null=True)
    is_enabled = models.BooleanField(default=True)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class Alert(models.Model):
    """One cause that a rule found in one cluster.

    ``thread`` is shared by the alerts of one signature, so that a channel is told of a cause once, however many rules
    find it. ``told_to`` are the channels that have the first message, ``told_gangs`` what the newest one said.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="alerts")
    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts")
    signature = models.CharField(max_length=SIGNATURE_LENGTH)
    state = models.CharField(max_length=16, choices=AlertState, default=AlertState.PENDING)
    severity = models.CharField(max_length=8, choices=AlertSeverity)
    verdict = models.CharField(max_length=16, blank=True)
    code = models.CharField(max_length=32, blank=True)
    subject = models.CharField(max_length=512, blank=True)
    who = models.CharField(max_length=16, blank=True)
    queue = models.CharField(max_length=253, blank=True)
    title = models.CharField(max_length=255)
    text = models.CharField(max_length=1000, blank=True)
    gang_count = models.PositiveIntegerField(default=0)
    gpus = models.FloatField(default=0)
    since = models.DateTimeField()
    """When the condition began."""
    fired_at = models.DateTimeField(null=True)
    calm_since = models.DateTimeField(null=True)
    """Since when it is not found any more while it is still kept; None while it is found."""
    resolved_at = models.DateTimeField(null=True)
    resolution = models.CharField(max_length=1000, blank=True)
    is_muted = models.BooleanField(default=False)

    thread = models.CharField(max_length=120, blank=True)
    told_to = models.JSONField(default=list)
    told_gangs = models.PositiveIntegerField(default=0)
    told_severity = models.CharField(max_length=8, blank=True)
    first_told_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)
    """When the newest message about it was written."""
    escalated_to = models.JSONField(default=list)
    updates = models.PositiveIntegerField(default=0)

    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    acknowledged_name = models.CharField(max_length=150, blank=True)
    acknowledged_note = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering: ClassVar = [models.F("fired_at").desc(nulls_last=True), "-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["rule", "cluster", "signature"],
                condition=models.Q(resolved_at=None),
                name="alert_open_once_per_signature",
            ),
        ]
        indexes: ClassVar = [
            # What fires now, on each look and on the page.
            models.Index(fields=["cluster", "state"], condition=models.Q(resolved_at=None), name="alert_open"),
            # What ended lately; retention deletes the oldest.
            models.Index(fields=["-resolved_at"], name="alert_resolved"),
        ]

    def __str__(self) -> str:
        return f"{self.title} ({self.state})"


class AlertGang(models.Model):
    """One gang that an alert is about, as long as it was one of them."""

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="members")
    gang = models.ForeignKey(Gang, on_delete=models.CASCADE, related_name="alert_memberships")
    joined_at = models.DateTimeField()
    left_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["joined_at", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["alert", "gang"], name="alert_gang_once"),
        ]

    def __str__(self) -> str:
        return f"{self.gang} in alert {self.alert_id}"


class Mute(models.Model):
    """Alerts about this are not told until the end; they still fire and are shown.

    ``value`` is a signature, ``namespace/name`` of a gang, a queue's name, or empty for a cluster. Without a cluster
    it holds in all.
    """

    kind = models.CharField(max_length=16, choices=MuteKind)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, null=True, related_name="mutes")
    value = models.CharField(max_length=SIGNATURE_LENGTH, blank=True)
    reason = models.CharField(max_length=500)
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_name = models.CharField(max_length=150)
    ends_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    """When someone ended it before its time."""
    ended_name = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering: ClassVar = ["-created_at", "-pk"]
        # Which mutes hold now.
        indexes: ClassVar = [models.Index(fields=["ends_at"], condition=models.Q(ended_at=None), name="mute_holds")]

    def __str__(self) -> str:
        return f"{self.kind} {self.value} until {self.ends_at:%Y-%m-%d %H:%M}"


class Observation(models.Model):
    """What no other table keeps of the past and some rule needs; open while ``closed_at`` is None."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="observations")
    topic = models.CharField(max_length=16, choices=[(topic.value, topic.value) for topic in Topic])
    subject = models.CharField(max_length=253)
    value = models.CharField(max_length=300)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["opened_at", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["cluster", "topic", "subject"],
                condition=models.Q(closed_at=None),
                name="observation_open_once",
            ),
        ]
        indexes: ClassVar = [
            # What was so within a span of time.
            models.Index(fields=["cluster", "closed_at"], name="observation_span"),
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.subject}: {self.value}"


class AlertClock(models.Model):
    """Where the evaluation of one cluster stands. An evaluation counts only if ``version`` is still what it read."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="alert_clock")
    version = models.PositiveBigIntegerField(default=0)
    started_at = models.DateTimeField()
    """Since when observations are kept."""
    evaluated_at = models.DateTimeField(null=True)
    blind_since = models.DateTimeField(null=True)
    """Since when the rules that rest on verdicts keep still; None while they do not."""
    observed_snapshot = models.BigIntegerField(null=True)
    """The analysed moment whose documents were looked at last."""
    baselines_on = models.DateTimeField(null=True)
    baselines = models.JSONField(default=dict)
    """By stage ``[seconds, runs]``, worked out once a day."""

    def __str__(self) -> str:
        return f"{self.cluster.name}: {self.version} evaluations"
