"""What a poll read, kept as it was reduced: the material of every diagnosis and of the dump that is offered.

A reading holds allow-listed fields only; environment values, commands and secrets never reach it.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.clusters.models import Cluster


class Reading(models.Model):
    """One content of a cluster: first seen at ``as_of``, still the same at ``confirmed_at``.

    A poll that reads the same content again moves ``confirmed_at`` and stores nothing.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="readings")
    content_key = models.CharField(max_length=64)
    """SHA-256 of the reduced objects and of what was not read, without the time."""
    as_of = models.DateTimeField()
    confirmed_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True)
    """When an analysis first took it; one that a newer reading overtakes before that is dropped."""
    objects_total = models.PositiveIntegerField(default=0)
    packed_bytes = models.PositiveIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["-as_of", "-pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "as_of"], name="reading_once_per_moment")]

    def __str__(self) -> str:
        return f"{self.cluster.name} {self.as_of:%Y-%m-%d %H:%M:%S}"


class ReadingContent(models.Model):
    """The packed objects of one content, apart from the readings so that no list ever loads them.

    A cluster that comes back to what it was has another reading of the same content: it is kept once, and found by
    cluster and key.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="reading_contents")
    key = models.CharField(max_length=64)
    packed = models.BinaryField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "key"], name="reading_content_once")]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.key[:12]}"
