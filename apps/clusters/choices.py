"""Where a cluster's address comes from, how a poll ended, how fresh a cluster is."""

from __future__ import annotations

from django.db import models


class Source(models.TextChoices):
    FOLDER = "folder", "A file of the kubeconfig folder"
    KUBECONFIG = "kubeconfig", "The kubeconfig given at the start"
    IN_CLUSTER = "in_cluster", "The pod's own service account"
    DEMO = "demo", "The demo cluster"


class PollOutcome(models.TextChoices):
    RUNNING = "running", "Running"
    READ = "read", "All read"
    PARTIAL = "partial", "Some kinds not read"
    FAILED = "failed", "Nothing read"
    LOST = "lost", "Never finished"


class Freshness(models.TextChoices):
    FIRST_READ = "first_read", "First reading under way"
    LIVE = "live", "Live"
    STALE = "stale", "Stale"
    BLIND = "blind", "Blind"
    REMOVED = "removed", "No longer read"
