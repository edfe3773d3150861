"""What a cluster offers: nodes, queues, topologies and their domains, as of the newest reading.

Amounts are in the units of the pages: GPUs as floats, cpu in millicores, memory in bytes. ``fingerprint`` is the
hash of a row's facts, so that a poll writes only rows that changed. What was before is in changes and samples.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.clusters.models import Cluster
from apps.inventory.choices import NodeState


class Node(models.Model):
    """One node with its GPUs: ``gpus = gpus_used + gpus_free + gpus_lost``.

    Lost are the unused GPUs of a node that takes no new pods because of its state, and devices that the node
    has but does not offer.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=16, choices=NodeState)
    state_reason = models.CharField(max_length=253, blank=True)
    product = models.CharField(max_length=253, blank=True)
    gpus = models.FloatField(default=0)
    gpus_used = models.FloatField(default=0)
    gpus_free = models.FloatField(default=0)
    gpus_lost = models.FloatField(default=0)
    cpu_millicores = models.BigIntegerField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    pods = models.PositiveIntegerField(default=0)
    labels = models.JSONField(default=dict)
    """Labels that some topology level names, the GPU product and the node pool; no others."""
    taints = models.JSONField(default=list)
    """``{"key", "value", "effect"}`` in the order of the node."""
    created_at = models.DateTimeField(null=True)
    fingerprint = models.CharField(max_length=32)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "name"], name="node_once_per_cluster")]

    def __str__(self) -> str:
        return self.name


class Queue(models.Model):
    """One queue as its object says and, in the ``cycle`` columns, as the newest replay computed it.

    A number is None where the object does not give it (which counts as 0 to the scheduler), -1 is unlimited.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="queues")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64, blank=True)
    display_name = models.CharField(max_length=253, blank=True)
    parent = models.CharField(max_length=253, blank=True)
    is_leaf = models.BooleanField(default=True)
    priority = models.IntegerField(null=True)
    gpu_quota = models.FloatField(null=True)
    gpu_limit = models.FloatField(null=True)
    gpu_weight = models.FloatField(null=True)
    resources = models.JSONField(default=dict)
    """``{"cpu"|"memory"|"gpu": {"quota", "limit", "over_quota_weight"}}`` in the units of the Queue object."""
    created_at = models.DateTimeField(null=True)
    fingerprint = models.CharField(max_length=32)

    cycle = models.JSONField(default=list)
    """Per shard: ``{"shard", "fair_share", "allocated_before", "allocated_after"}`` of the newest diagnosis."""
    cycle_as_of = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "name"], name="queue_once_per_cluster")]

    def __str__(self) -> str:
        return self.display_name or self.name


class Topology(models.Model):
    """One Topology object; ``levels`` are ``{"label", "alias"}``, broadest first."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="topologies")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64, blank=True)
    levels = models.JSONField(default=list)
    fingerprint = models.CharField(max_length=32)

    class Meta:
        ordering: ClassVar = ["name"]
        verbose_name_plural = "topologies"
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "name"], name="topology_once_per_cluster")]

    def __str__(self) -> str:
        return self.name


class Domain(models.Model):
    """One place in a topology: the nodes that share the label values of ``path`` down to this level."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="domains")
    topology = models.CharField(max_length=253)
    level = models.PositiveSmallIntegerField()
    """0 is the broadest level."""
    label = models.CharField(max_length=317)
    path = models.CharField(max_length=1024)
    """Label values from the broadest level down, joined by ``/``."""
    parent_path = models.CharField(max_length=1024, blank=True)
    name = models.CharField(max_length=63)
    nodes = models.PositiveIntegerField(default=0)
    nodes_free = models.PositiveIntegerField(default=0)
    """Nodes with GPUs of which none is used."""
    gpus = models.FloatField(default=0)
    gpus_used = models.FloatField(default=0)
    gpus_free = models.FloatField(default=0)
    gpus_lost = models.FloatField(default=0)
    fingerprint = models.CharField(max_length=32)

    class Meta:
        ordering: ClassVar = ["topology", "level", "path"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "topology", "path"], name="domain_once_per_topology"),
        ]

    def __str__(self) -> str:
        return f"{self.topology}: {self.path}"


class NodeFilter(models.Model):
    """Nodes with GPUs that the waiting pods of some gangs may never use, by labels, taints and pools alone."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="node_filters")
    key = models.CharField(max_length=32)
    """What gangs name it by; made of its content."""
    barred = models.JSONField(default=list)
    """Names of the nodes."""
    fingerprint = models.CharField(max_length=32)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "key"], name="node_filter_once")]

    def __str__(self) -> str:
        return f"{len(self.barred)} nodes barred"


class StateChange(models.Model):
    """A node or a part of the platform came, went, or changed its state; the newest row of a subject is its state."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="state_changes")
    kind = models.CharField(max_length=64)
    """``Node``, or ``Deployment`` for a part of the platform."""
    subject = models.CharField(max_length=512)
    """The name, with its namespace before it where the kind has one."""
    at = models.DateTimeField()
    state = models.CharField(max_length=16)
    """Of a node as in ``NodeState``; of a part ``ready``, ``partly`` or ``down``; ``gone`` of either."""
    was = models.CharField(max_length=16, blank=True)
    """The state before; empty for the first that was seen."""
    reason = models.CharField(max_length=253, blank=True)

    class Meta:
        ordering: ClassVar = ["at", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "kind", "subject", "at"], name="state_change_once_per_moment")
        ]
        # The log of one cluster; retention deletes its oldest rows.
        indexes: ClassVar = [models.Index(fields=["cluster", "at"], name="state_change_log")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}: {self.was} > {self.state}"


class CapacitySample(models.Model):
    """Queue shares and free capacity at one moment, true until the next sample; written only when they changed."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="capacity_samples")
    at = models.DateTimeField()
    queues = models.JSONField(default=dict)
    """Per queue ``[allocated, fair share]`` in GPUs, null where the replay did not compute it."""
    domains = models.JSONField(default=dict)
    """Per ``topology|path`` of a domain, and ``""`` for the cluster: ``[GPUs, free, lost, nodes, nodes all free]``.

    Of a domain all its nodes are counted, of the cluster those with GPUs; samples of before have three numbers.
    """

    class Meta:
        ordering: ClassVar = ["at", "pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["cluster", "at"], name="capacity_sample_once_per_moment")
        ]

    def __str__(self) -> str:
        return f"{self.cluster.name} {self.at:%Y-%m-%d %H:%M:%S}"
