"""How a gang stands, as lists and tiles need it."""

from __future__ import annotations

from django.db import models

from gangdash.engine.verdict import Verdict


class GangState(models.TextChoices):
    WAITS = "waits", "Waits"
    TELLS = "tells", "Placed, with something to tell"
    FINE = "fine", "Nothing to tell"
    UNKNOWN = "unknown", "Not diagnosed yet"


# What is left waits. PARTIAL and NO_VERDICT depend on whether all pods have a node.
PLACED_VERDICTS = frozenset({Verdict.VIOLATED, Verdict.STARTING, Verdict.HEALTHY})
"""Verdicts of a gang that holds what it needs."""
