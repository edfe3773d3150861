"""How an analysis ended, and how far an uploaded file is."""

from __future__ import annotations

from django.db import models


class AnalysisOutcome(models.TextChoices):
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    SUPERSEDED = "superseded", "A newer one was done first"
    FAILED = "failed", "Failed"


class UploadState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
