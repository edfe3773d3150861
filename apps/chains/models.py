"""What a person submitted to Dynamo or Grove and where it stands, and which gangs every object leads to.

A workload and a link are facts of the newest reading only: an object that is gone has no row. How a workload stood
before is in its moments. What the scheduler does with a gang is the gang's own row and explanation.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.clusters.models import Cluster


class TopObject(models.Model):
    """One DynamoGraphDeployment, or a PodCliqueSet that none made; no ``stage`` once its gangs are handed over."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="top_objects")
    uid = models.CharField(max_length=64)
    kind = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    api_version = models.CharField(max_length=128)
    created_at = models.DateTimeField(null=True)
    stage = models.CharField(max_length=8, blank=True)
    controller = models.CharField(max_length=64, blank=True)
    """Who owes the next step."""
    proof = models.CharField(max_length=600, blank=True)
    """The object that proves the stage, as ``Kind/namespace/name``."""
    field = models.CharField(max_length=128, blank=True)
    problem = models.CharField(max_length=500, blank=True)
    since = models.DateTimeField(null=True)
    is_overdue = models.BooleanField(default=False)
    components = models.JSONField(default=list)
    """Per component its layers with counts; a null count is one that no object states."""
    gangs = models.JSONField(default=list)
    """Per PodGang: what it waits for, the PodGroups made of it, its stage."""
    remarks = models.JSONField(default=list)
    """What is wrong beside the stage: ``{"stage", "proof", "field", "problem"}``."""
    as_of = models.DateTimeField()
    fingerprint = models.CharField(max_length=32)

    class Meta:
        ordering: ClassVar = ["cluster", "namespace", "name", "pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "uid"], name="top_object_identity")]
        # One workload's page, and the list of one namespace.
        indexes: ClassVar = [models.Index(fields=["cluster", "namespace", "name"], name="top_object_by_name")]

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"

    @property
    def public_id(self) -> str:
        """Return the stable id of REST and links, made as a gang's is."""
        return f"{self.cluster.name}~{self.uid}"


class TopMoment(models.Model):
    """A workload as it was from ``since`` until ``until``; the open one says what its ``TopObject`` says."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="top_moments")
    uid = models.CharField(max_length=64)
    kind = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)
    facts = models.JSONField(default=dict)
    """The other fields of ``TopObject``; times as ISO 8601."""

    class Meta:
        ordering: ClassVar = ["cluster", "namespace", "name", "since", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "uid", "since"], name="top_moment_once"),
            models.UniqueConstraint(
                fields=["cluster", "uid"], condition=models.Q(until=None), name="one_open_moment_per_top_object"
            ),
        ]
        # What stood at a moment: few rows have not ended before it. Retention goes by it too.
        indexes: ClassVar = [models.Index(fields=["cluster", "until"], name="top_moment_until")]

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name} since {self.since:%Y-%m-%d %H:%M:%S}"


class RecordedReading(models.Model):
    """Which reading the rows of workloads were brought to: an older one where a poll died just after its commit."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="recorded_reading")
    reading_id = models.BigIntegerField()

    def __str__(self) -> str:
        return f"reading {self.reading_id} of {self.cluster}"


class ChainLink(models.Model):
    """Where an object between the top and the PodGroups leads: names of PodGroups in its own namespace."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="chain_links")
    kind = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64, blank=True)
    """Empty where only a label or a reference tells of it."""
    gangs = models.JSONField(default=list)
    fingerprint = models.CharField(max_length=32)

    class Meta:
        ordering: ClassVar = ["cluster", "kind", "namespace", "name", "pk"]
        constraints: ClassVar = [
            # Resolving goes by the first four.
            models.UniqueConstraint(fields=["cluster", "kind", "namespace", "name", "uid"], name="chain_link_identity")
        ]

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"
