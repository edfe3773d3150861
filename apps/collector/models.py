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


class ReadingBody(models.Model):
    """The packed objects of a reading, apart from it so that no list ever loads them."""

    reading = models.OneToOneField(Reading, on_delete=models.CASCADE, primary_key=True, related_name="body")
    packed = models.BinaryField()

    class Meta:
        verbose_name_plural = "reading bodies"

    def __str__(self) -> str:
        return f"body of {self.reading_id}"
