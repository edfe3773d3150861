"""Which clusters there are, who is read, how each reading went and how fresh each kind is.

No address credential, token or certificate is ever stored: the file is read again for each poll.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.clusters.choices import PollOutcome, Source


class Cluster(models.Model):
    """One cluster by name. A removed one keeps its rows and is no longer read.

    ``read_as_of`` and ``diagnosed_as_of`` are apart on purpose: an analysis may be minutes behind the reading.
    """

    name = models.CharField(max_length=253, unique=True)
    source = models.CharField(max_length=16, choices=Source)
    context = models.CharField(max_length=253, blank=True)
    added_at = models.DateTimeField(auto_now_add=True)
    is_read = models.BooleanField(default=True)
    removed_at = models.DateTimeField(null=True)
    server_version = models.CharField(max_length=64, blank=True)
    skew_seconds = models.FloatField(null=True)
    """How far its clock is ahead of ours; ages of its objects are wrong by that much. None where it does not say."""

    read_as_of = models.DateTimeField(null=True)
    """When the newest complete reading was made; kinds that could not be read are in ``KindFreshness``."""
    diagnosed_as_of = models.DateTimeField(null=True)
    """The moment that the current verdicts are true for."""
    diagnosed_digest = models.CharField(max_length=71, blank=True)
    engine = models.CharField(max_length=32, blank=True)

    # What the next poll needs to know. The lock is taken by a counted update on locked_until.
    next_poll_at = models.DateTimeField(null=True)
    locked_until = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0)
    """Polls in a row that read nothing."""
    fault_code = models.CharField(max_length=32, blank=True)
    fault = models.CharField(max_length=512, blank=True)
    """Why the newest poll read nothing; empty after a good one."""

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class PollRun(models.Model):
    """One attempt to read a cluster, kept for the time that the settings say."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="poll_runs")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=16, choices=PollOutcome, default=PollOutcome.RUNNING)
    code = models.CharField(max_length=32, blank=True)
    detail = models.CharField(max_length=512, blank=True)
    requests = models.PositiveIntegerField(default=0)
    received_bytes = models.BigIntegerField(default=0)
    rows_written = models.PositiveIntegerField(default=0)
    is_unchanged = models.BooleanField(default=False)
    """The reading was equal to the one before, so nothing was stored or analysed for it."""
    kinds = models.JSONField(default=list)
    """Per kind: ``{"kind", "count", "bytes", "requests", "ms", "reason"}``; a reason means not read."""

    class Meta:
        ordering: ClassVar = ["-started_at", "-pk"]
        # The health page lists the newest runs of a cluster; retention deletes the oldest.
        indexes: ClassVar = [models.Index(fields=["cluster", "-started_at"], name="pollrun_newest")]

    def __str__(self) -> str:
        return f"{self.cluster.name} {self.started_at:%Y-%m-%d %H:%M:%S} {self.outcome}"


class KindFreshness(models.Model):
    """What is known of one kind in one cluster: when it was last read, how many, and why not if not.

    ``count`` is of the last good reading and stays when the newest attempt failed.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="kinds")
    kind = models.CharField(max_length=64)
    is_required = models.BooleanField(default=False)
    is_read = models.BooleanField(default=False)
    reason = models.CharField(max_length=253, blank=True)
    read_at = models.DateTimeField(null=True)
    checked_at = models.DateTimeField()
    count = models.PositiveIntegerField(null=True)

    class Meta:
        ordering: ClassVar = ["kind"]
        verbose_name_plural = "kind freshness"
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "kind"], name="freshness_once_per_kind")]

    def __str__(self) -> str:
        return f"{self.cluster.name} {self.kind}: {'read' if self.is_read else self.reason}"
