"""How the scheduler words what it reports about a gang: needed wherever its texts are shown back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gangdash.engine.model.cycle import FitError
from gangdash.simulator.gangs import Gang


def job_message(errors: Sequence[FitError]) -> str:
    """Return the text of a PodGroup's condition and event: the errors counted and joined."""
    reason = errors[0].reason if len(errors) == 1 else "Unable to schedule podgroup"
    if not errors:
        return reason
    counted = Counter(error.message for error in errors)
    parts = sorted(f"{count} {text}" if count > 1 else text for text, count in counted.items())
    return f"{reason}: " + ". \n".join(parts) + "."


def not_ready_message(gang: Gang) -> str:
    """Return the text of the event about a gang that lacks members, with or without subgroups."""
    parts = ["Job is not ready for scheduling."]
    if not gang.subgroups:
        parts.append(f"Waiting for {gang.minimum} pods, {_state(gang, '')}")
    for name, minimum in gang.subgroups.items():
        parts.append(f"Waiting for {minimum} pods for SubGroup {name}, {_state(gang, name)}.")
    return " ".join(parts)


def _state(gang: Gang, role: str) -> str:
    own = [member for member in gang.members if member.role == role and member.deleted is None]
    return f"currently {len(own)} exist, {sum(bool(member.gates) for member in own)} are gated"


def eviction_message(gang: Gang, pod: str, action: str, evictor: str) -> str:
    """Return the text of the event on a gang that loses a pod; `evictor` is the gang it makes room for."""
    if action == "consolidation":
        cause = "and rescheduled due to bin packing (resource consolidation) procedure"
    else:
        cause = f"by {'higher priority ' if action == 'preempt' else ''}workload {evictor}"
    return f"Pod {gang.namespace}/{pod} was preempted {cause}"
