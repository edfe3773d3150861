"""Answers: which moment was analysed, what was said about each gang, and how the reason changed over time.

An explanation is stored as the exact text of the contract's document, so that REST, page and command line give the
same bytes; the columns beside it are for lists.
"""

from __future__ import annotations

import json
import uuid
from typing import Any, ClassVar

from django.db import models

from apps.accounts.models import User
from apps.clusters.models import Cluster
from apps.collector.models import Reading
from apps.diagnosis.choices import AnalysisOutcome, UploadState
from apps.workloads.models import Gang


class Snapshot(models.Model):
    """One analysed moment: a reading, the time it was taken for, and what was known of each gang before.

    Reading, time and history together make the digest; the dump offered for download is made of the same three.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="snapshots")
    reading = models.ForeignKey(Reading, on_delete=models.SET_NULL, null=True, related_name="snapshots")
    as_of = models.DateTimeField()
    history = models.JSONField(default=dict)
    """Per gang uid: ``placeable_since``, ``last_ran``, ``last_verdict``, as a dump carries it."""
    digest = models.CharField(max_length=71, blank=True)
    engine = models.CharField(max_length=32)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, choices=AnalysisOutcome, default=AnalysisOutcome.RUNNING)
    detail = models.CharField(max_length=512, blank=True)
    attempts = models.PositiveSmallIntegerField(default=1)
    retry_at = models.DateTimeField(null=True)
    """When a running analysis counts as lost, or a failed one lets the next begin."""
    gangs = models.PositiveIntegerField(default=0)
    waiting = models.PositiveIntegerField(default=0)
    not_read = models.JSONField(default=list)
    not_modelled = models.JSONField(default=list)
    oddities = models.JSONField(default=list)

    class Meta:
        ordering: ClassVar = ["-as_of", "-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "as_of", "engine"], name="snapshot_once_per_moment"),
            # The lock of an analysis: whoever inserts the row may run.
            models.UniqueConstraint(
                fields=["cluster"], condition=models.Q(outcome="running"), name="one_analysis_per_cluster"
            ),
        ]
        # The newest analysis of a cluster by outcome.
        indexes: ClassVar = [models.Index(fields=["cluster", "outcome", "-as_of"], name="snapshot_newest")]

    def __str__(self) -> str:
        return f"{self.cluster.name} {self.as_of:%Y-%m-%d %H:%M:%S} {self.outcome}"


class ExplanationRecord(models.Model):
    """Document two for one gang at one analysed moment, written once.

    ``is_current`` marks the newest one of a gang; older ones stay while a timeline row was opened by them.
    """

    snapshot = models.ForeignKey(Snapshot, on_delete=models.CASCADE, related_name="explanations")
    gang = models.ForeignKey(Gang, on_delete=models.CASCADE, related_name="explanations")
    is_current = models.BooleanField(default=True)
    opens_timeline = models.BooleanField(default=False)
    verdict = models.CharField(max_length=16)
    code = models.CharField(max_length=32)
    who = models.CharField(max_length=16)
    certainty = models.CharField(max_length=16)
    sentence = models.CharField(max_length=255)
    document = models.TextField()

    class Meta:
        ordering: ClassVar = ["-snapshot__as_of", "-pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["snapshot", "gang"], name="explanation_once_per_moment"),
            models.UniqueConstraint(
                fields=["gang"], condition=models.Q(is_current=True), name="one_current_explanation_per_gang"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} {self.code}: {self.sentence}"

    def data(self) -> dict[str, Any]:
        """Return the document as plain data."""
        content: dict[str, Any] = json.loads(self.document)
        return content


class ReasonTimeline(models.Model):
    """One stretch of time in which a gang had one verdict and code; open while ``closed_at`` is None."""

    gang = models.ForeignKey(Gang, on_delete=models.CASCADE, related_name="timeline")
    snapshot = models.ForeignKey(Snapshot, on_delete=models.SET_NULL, null=True, related_name="+")
    """The analysis that opened the row."""
    verdict = models.CharField(max_length=16)
    code = models.CharField(max_length=32)
    who = models.CharField(max_length=16)
    state = models.CharField(max_length=16)
    sentence = models.CharField(max_length=255)
    """As it was said when the row was opened."""
    subject = models.CharField(max_length=512, blank=True)
    """The object that the first binding constraint was read from when the row was opened; it stays for the row."""
    gpus = models.FloatField(default=0)
    """GPUs that waited when the row was opened."""
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["opened_at", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["gang"], condition=models.Q(closed_at=None), name="one_open_row_per_gang"),
            models.UniqueConstraint(fields=["gang", "opened_at"], name="timeline_once_per_moment"),
        ]
        # The chart and the feed of changes read a span of time.
        indexes: ClassVar = [
            models.Index(fields=["opened_at"], name="timeline_opened"),
            models.Index(fields=["closed_at"], name="timeline_closed"),
        ]

    def __str__(self) -> str:
        return f"{self.opened_at:%Y-%m-%d %H:%M:%S} {self.verdict} {self.code}"


class Upload(models.Model):
    """A snapshot file that someone had diagnosed: its reduced content while it waits, then the answer.

    The file itself is never stored; only the uploader and admins may see the answer, for a limited time.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="uploads")
    file_name = models.CharField(max_length=255)
    created_at = models.DateTimeField(auto_now_add=True)
    state = models.CharField(max_length=16, choices=UploadState, default=UploadState.WAITING)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    detail = models.CharField(max_length=512, blank=True)
    packed = models.BinaryField(default=b"")
    document = models.TextField(blank=True)
    """Document one with its explanations, as the command line prints it."""

    class Meta:
        ordering: ClassVar = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.file_name} ({self.state})"
