"""Moments in a gang's life: since when it waits, when it was started, when something changed that matters to it."""

from __future__ import annotations

from datetime import datetime

from gangdash.engine.explain.gang import Gang
from gangdash.engine.model.meta import Meta
from gangdash.engine.session.build import EVICTION_ANNOTATION


def parse_time(text: str) -> float | None:
    """Read an RFC 3339 time as the scheduler writes it; None for anything else."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def annotation_time(meta: Meta, key: str) -> float | None:
    text = meta.annotations.get(key)
    return parse_time(text) if text else None


def waiting_since(gang: Gang) -> float | None:
    """Return the latest of: created, last gate removed, last run ended. Never a condition's own time.

    A gate's removal leaves no time of its own; what is left of it is PodScheduled's change away from SchedulingGated,
    which is only a gate's trace where the pod is older than that by more than a cycle. So a gate counts through the
    creation of the pods it held.
    """
    moments = [gang.meta.created]
    moments.extend(pod.meta.created for pod in gang.pods if not pod.node_name)
    moments.append(annotation_time(gang.meta, EVICTION_ANNOTATION))
    history = gang.context.snapshot.history.get(gang.meta.uid)
    if history is not None:
        moments.append(history.last_ran)
    known = [moment for moment in moments if moment is not None and moment <= gang.as_of]
    return max(known, default=None)
