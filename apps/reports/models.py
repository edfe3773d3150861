"""When reports are due and what was reported.

A report is kept as its content and written out on demand, so that each form says the same. The row of a report is the
duty to make it; a task is only the hint.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import ClassVar

from django.core.validators import MaxValueValidator
from django.db import models
from django.db.models import Q

from apps.accounts.models import User
from apps.clusters.models import Cluster
from apps.delivery.models import Channel
from apps.reports.choices import Coverage, Frequency, ReportState, Weekday
from apps.reports.content import Content, content_decode
from apps.reports.schedule import Every, Plan, due_moments


class ReportSchedule(models.Model):
    """Reports that come by themselves. No cluster named means every one that is read.

    ``due_after`` is the moment up to which everything due was dealt with, made or missed.
    """

    name = models.CharField(max_length=100, unique=True)
    clusters = models.ManyToManyField(Cluster, blank=True, related_name="+")
    frequency = models.CharField(max_length=8, choices=Frequency, default=Frequency.DAILY)
    weekday = models.PositiveSmallIntegerField(
        choices=Weekday, default=Weekday.MONDAY, validators=[MaxValueValidator(6)]
    )
    """Counts for weekly ones only."""
    at = models.TimeField(default=time(8))
    zone = models.CharField(max_length=64, default="UTC")
    coverage_hours = models.PositiveIntegerField(choices=Coverage, default=Coverage.SINCE_LAST)
    channels = models.ManyToManyField(Channel, blank=True, related_name="report_schedules")
    attached = models.JSONField(default=list)
    """Forms that an e-mail carries as files."""
    is_enabled = models.BooleanField(default=True)
    due_after = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def plan(self) -> Plan:
        every = Every.WEEK if self.frequency == Frequency.WEEKLY else Every.DAY
        return Plan(every=every, weekday=self.weekday, at=self.at, zone=self.zone)

    def covered_from(self, due_at: datetime) -> datetime:
        """Return where the report that is due at a moment begins."""
        if self.coverage_hours:
            return due_at - timedelta(hours=self.coverage_hours)
        just_before = due_at - timedelta(microseconds=1)
        return max(due_moments(self.plan, after=due_at - timedelta(days=16), until=just_before))


class Report(models.Model):
    """One report of one cluster over ``start`` to ``end``. ``due_at`` is None for one that somebody asked for.

    ``missed`` counts earlier moments of the schedule that passed without a report, as nothing ran then.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="reports")
    schedule = models.ForeignKey(ReportSchedule, on_delete=models.SET_NULL, null=True, related_name="reports")
    due_at = models.DateTimeField(null=True)
    missed = models.PositiveIntegerField(default=0)
    title = models.CharField(max_length=100)
    requested_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    start = models.DateTimeField()
    end = models.DateTimeField()
    zone = models.CharField(max_length=64, default="UTC")
    state = models.CharField(max_length=8, choices=ReportState, default=ReportState.WAITING)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    """When the attempt under way began; None while nobody makes it."""
    ended_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    detail = models.CharField(max_length=512, blank=True)
    headline = models.CharField(max_length=512, blank=True)
    """The first sentence, for lists."""
    content = models.TextField(blank=True)
    previous = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    """The one that it was compared with when it was made."""

    class Meta:
        ordering: ClassVar = ["-end", "-pk"]
        constraints: ClassVar = [
            # Two workers that find the same moment due make one report of it.
            models.UniqueConstraint(fields=["schedule", "cluster", "due_at"], name="report_once_per_due_moment"),
            models.CheckConstraint(condition=Q(end__gt=models.F("start")), name="report_covers_time"),
        ]
        indexes: ClassVar = [
            # The list of a cluster, and the report before another.
            models.Index(fields=["cluster", "-end"], name="report_newest"),
            # What is still to be made, each tick.
            models.Index(fields=["created_at"], condition=Q(state="waiting"), name="report_waiting"),
        ]

    def __str__(self) -> str:
        return f"{self.title}: {self.cluster.name} to {self.end:%Y-%m-%d %H:%M}"

    def data(self) -> Content:
        """Return what the report says; ``msgspec.ValidationError`` where another version wrote it differently."""
        return content_decode(self.content)
