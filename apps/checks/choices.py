"""What a check found, and how much it matters."""

from __future__ import annotations

from django.db import models

from apps.checks.rules import Severity, State


class CheckState(models.TextChoices):
    OK = State.OK.value, "Pass"
    FAIL = State.FAIL.value, "Fail"
    UNKNOWN = State.UNKNOWN.value, "Cannot tell"
    ABSENT = State.ABSENT.value, "Does not apply"


class CheckSeverity(models.TextChoices):
    CRITICAL = Severity.CRITICAL.value, "Critical"
    WARNING = Severity.WARNING.value, "Warning"
    INFO = Severity.INFO.value, "Info"
