"""One row per cluster and check: what was found at the newest poll, since when it is so, and the evidence."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.checks.choices import CheckSeverity, CheckState
from apps.clusters.models import Cluster


class ClusterCheck(models.Model):
    """``check_id`` is that of the list (V1 to V22, C1 to C20); its title and remedy are in ``apps.checks.rules``."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="checks")
    check_id = models.CharField(max_length=8)
    severity = models.CharField(max_length=16, choices=CheckSeverity)
    state = models.CharField(max_length=16, choices=CheckState)
    evidence = models.CharField(max_length=1000, blank=True)
    objects_found = models.JSONField(default=list)
    """``Kind/namespace/name`` of the objects that the evidence rests on, the first twenty."""
    since = models.DateTimeField()
    """When the state became what it is."""
    checked_at = models.DateTimeField()

    class Meta:
        ordering: ClassVar = ["cluster", "pk"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["cluster", "check_id"], name="check_once_a_cluster")]
        indexes: ClassVar = [
            # The checks page lists what fails; a cluster's own come by the constraint above.
            models.Index(fields=["state"], name="check_by_state"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster.name} {self.check_id}: {self.state}"
