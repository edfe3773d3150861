"""Forms of a report, how far one is, and how often a schedule makes one."""

from __future__ import annotations

from django.db import models


class ReportForm(models.TextChoices):
    """The value is also the suffix of the file."""

    HTML = "html", "HTML"
    MARKDOWN = "md", "Markdown"
    JSON = "json", "JSON"
    CSV = "csv", "CSV"


USUALLY_ATTACHED = (ReportForm.MARKDOWN, ReportForm.CSV)
"""Files of an e-mail where nobody chose: one to read, one to count with."""


class ReportState(models.TextChoices):
    WAITING = "waiting", "Being made"
    DONE = "done", "Made"
    FAILED = "failed", "Not made"


class Frequency(models.TextChoices):
    DAILY = "daily", "Every day"
    WEEKLY = "weekly", "Every week"


class Weekday(models.IntegerChoices):
    """As Python counts the days of a week."""

    MONDAY = 0, "Monday"
    TUESDAY = 1, "Tuesday"
    WEDNESDAY = 2, "Wednesday"
    THURSDAY = 3, "Thursday"
    FRIDAY = 4, "Friday"
    SATURDAY = 5, "Saturday"
    SUNDAY = 6, "Sunday"


class Coverage(models.IntegerChoices):
    """How much time a scheduled report covers, in hours. The first follows the wall clock: a day that a zone makes
    longer or shorter is covered once and whole."""

    SINCE_LAST = 0, "Since the one before is due"
    DAY = 24, "24 hours"
    WEEK = 168, "7 days"
    FOUR_WEEKS = 672, "28 days"
