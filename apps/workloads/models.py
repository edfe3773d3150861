"""Gangs, pods and attempts: facts of the newest reading, and the newest verdict in columns that lists can sort by.

A gang's identity is cluster and uid, from the first sight until after it is gone. The explanation itself is in
``apps.diagnosis``; the verdict columns here are its copy, written in the same transaction.
"""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from apps.clusters.models import Cluster
from apps.workloads.choices import GangState


class Gang(models.Model):
    """One PodGroup, or a workload that should have one and has none (then ``kind`` says what it is)."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="gangs")
    uid = models.CharField(max_length=64)
    kind = models.CharField(max_length=64, default="PodGroup")
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    owner = models.CharField(max_length=512, blank=True)
    """The topmost owner as ``Kind/namespace/name``; empty where the gang stands alone."""
    queue = models.CharField(max_length=253, blank=True)
    shard = models.CharField(max_length=253, blank=True)
    priority_class = models.CharField(max_length=253, blank=True)
    preemptibility = models.CharField(max_length=32, blank=True)
    min_member = models.PositiveIntegerField(null=True)
    topology = models.CharField(max_length=253, blank=True)
    required_level = models.CharField(max_length=317, blank=True)
    preferred_level = models.CharField(max_length=317, blank=True)
    # The numbers of pods are None where pods could not be read.
    pods_total = models.PositiveIntegerField(null=True)
    pods_placed = models.PositiveIntegerField(null=True)
    """Pods that have a node and have not ended."""
    pods_waiting = models.PositiveIntegerField(null=True)
    """Pods without a node, gated ones included."""
    node_filter = models.CharField(max_length=32, null=True)  # noqa: DJ001 - not known is not the same as no filter
    """The key of the ``NodeFilter`` of its waiting pods, empty where they may use every node; None where not known."""
    gpus = models.FloatField(null=True)
    gpus_waiting = models.FloatField(null=True)
    """GPUs that pods without a node ask for."""
    shape = models.CharField(max_length=64, blank=True)
    """``pods x GPUs each`` where all pods ask the same, else empty."""
    created_at = models.DateTimeField(null=True)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    """When its facts last changed or, once it is gone, the last reading that had it."""
    gone_at = models.DateTimeField(null=True)
    is_running = models.BooleanField(default=False)
    """At least the minimum of its pods runs."""
    fingerprint = models.CharField(max_length=32, blank=True)

    # The newest verdict.
    state = models.CharField(max_length=16, choices=GangState, default=GangState.UNKNOWN)
    verdict = models.CharField(max_length=16, blank=True)
    code = models.CharField(max_length=32, blank=True)
    who = models.CharField(max_length=16, blank=True)
    certainty = models.CharField(max_length=16, blank=True)
    sentence = models.CharField(max_length=255, blank=True)
    subject = models.CharField(max_length=512, blank=True)
    """The object that the first binding constraint was read from; gangs of one cause share it."""
    stage = models.CharField(max_length=8, blank=True)
    waiting_since = models.DateTimeField(null=True)
    diagnosed_as_of = models.DateTimeField(null=True)

    # What the next diagnosis is told about before.
    placeable_since = models.DateTimeField(null=True)
    last_ran_at = models.DateTimeField(null=True)
    """When the last run that was seen ended; None while none has."""

    class Meta:
        ordering: ClassVar = ["cluster", "namespace", "name", "pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "uid"], name="gang_identity")]
        indexes: ClassVar = [
            # The triage list: what waits now, longest first.
            models.Index(fields=["state", "waiting_since"], name="gang_waiting", condition=models.Q(gone_at=None)),
            # A gang page by name, and the list of one namespace.
            models.Index(fields=["cluster", "namespace", "name"], name="gang_by_name"),
            # Retention looks for what is gone long enough.
            models.Index(fields=["gone_at"], name="gang_gone"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def public_id(self) -> str:
        """Return the stable id of REST and links: cluster and uid survive a rebuilt database."""
        return f"{self.cluster.name}~{self.uid}"

    @property
    def is_waiting(self) -> bool:
        return self.state == GangState.WAITS


class Pod(models.Model):
    """One pod of a gang, or one that should belong to one."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="pods")
    gang = models.ForeignKey(Gang, on_delete=models.CASCADE, related_name="pods", null=True)
    uid = models.CharField(max_length=64)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    sub_group = models.CharField(max_length=253, blank=True)
    phase = models.CharField(max_length=16)
    node = models.CharField(max_length=253, blank=True)
    gpus = models.FloatField(default=0)
    is_gated = models.BooleanField(default=False)
    is_terminating = models.BooleanField(default=False)
    reason = models.CharField(max_length=253, blank=True)
    """The pod's own reason, or that of its PodScheduled condition."""
    restarts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(null=True)
    fingerprint = models.CharField(max_length=32)

    class Meta:
        ordering: ClassVar = ["namespace", "name", "pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "uid"], name="pod_identity")]
        indexes: ClassVar = [models.Index(fields=["cluster", "namespace", "name"], name="pod_by_name")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Attempt(models.Model):
    """How far one gang came: the times of its steps, each the first time it was made; None where it was not.

    A gang that is made anew (new uid, perhaps new name and namespace) is the next attempt of the same ``lineage``.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="attempts")
    gang = models.OneToOneField(Gang, on_delete=models.CASCADE, related_name="attempt")
    lineage = models.CharField(max_length=32)
    number = models.PositiveIntegerField(default=1)
    """One more than the attempts of its lineage that had ended when this one was first seen."""
    requested_at = models.DateTimeField(null=True)
    """When the topmost owner was made."""
    created_at = models.DateTimeField(null=True)
    gated_at = models.DateTimeField(null=True)
    """When some pod was first seen with a scheduling gate; None where none was."""
    gates_removed_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    """When the scheduler first chose a node for one of its pods."""
    bound_at = models.DateTimeField(null=True)
    """When its minimum of pods had nodes."""
    ready_at = models.DateTimeField(null=True)
    evicted_at = models.DateTimeField(null=True)
    """The last time that it fell below its minimum without any pod having ended by itself."""
    evictions = models.PositiveIntegerField(default=0)
    eviction_times = models.JSONField(default=list)
    """When its newest evictions were, in seconds of the epoch, oldest first; a loop is told from them."""
    is_bound = models.BooleanField(default=False)
    """The minimum of its pods held nodes at the last reading."""
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["seen_at", "pk"]
        indexes: ClassVar = [
            # The attempts of one lineage, and those that go on.
            models.Index(fields=["cluster", "lineage", "seen_at"], name="attempt_lineage"),
            models.Index(fields=["cluster"], name="attempt_open", condition=models.Q(ended_at=None)),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.gang}"


class ServiceObjective(models.Model):
    """How fast gangs are to start: in one queue and those below it, or in the whole cluster where none is named.

    Read as: this ``share`` of gangs up to ``gpus_max`` GPUs, within quota and not never-fitting, is bound within
    ``within_seconds`` of being eligible, over ``window_days``.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="objectives")
    queue = models.CharField(max_length=253, blank=True)
    share = models.FloatField(default=0.95, validators=[MinValueValidator(0.5), MaxValueValidator(0.9999)])
    """Below one: a promise without any miss has no budget that could be burnt."""
    gpus_max = models.FloatField(default=64, validators=[MinValueValidator(0)])
    within_seconds = models.PositiveIntegerField(default=600, validators=[MinValueValidator(1)])
    window_days = models.PositiveIntegerField(default=28, validators=[MinValueValidator(1), MaxValueValidator(366)])

    class Meta:
        ordering: ClassVar = ["cluster", "queue"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "queue"], name="objective_once_per_queue"),
            models.CheckConstraint(condition=models.Q(share__gt=0, share__lt=1), name="objective_leaves_a_budget"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster.name} {self.queue or 'all queues'}"
