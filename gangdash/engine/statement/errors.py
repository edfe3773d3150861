"""What a cycle notes down about a gang that it could not place: per task and per gang.

Texts follow the scheduler's own word for word, since its conditions are matched against them. Mirrors
pkg/scheduler/api/common_info/pod_errors.go and job_errors.go (KAI d5bc503a).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

NO_NODES = "no nodes with enough resources were found"
DEFAULT_TASK_ERROR = "Unable to schedule pod"
DEFAULT_GANG_ERROR = "Unable to schedule podgroup"


class TaskErrors:
    """Why nodes refused one task, counted over every attempt of the cycle, or one error of the task itself."""

    __slots__ = ("error", "reasons")

    def __init__(self) -> None:
        self.error = ""
        self.reasons: Counter[str] = Counter()

    def add(self, reasons: Iterable[str], times: int = 1) -> None:
        for reason in reasons:
            self.reasons[reason] += times

    def text(self) -> str:
        base = self.error or NO_NODES
        if not self.reasons:
            return base
        lines = sorted(f"{count} {reason}" for reason, count in self.reasons.items())
        return f"{base}: " + ". \n".join(lines) + "."


@dataclass(frozen=True, slots=True)
class GangError:
    """One error of a gang. ``details`` are the wordings used with detailed fit errors, empty = as ``messages``."""

    reason: str
    messages: tuple[str, ...]
    details: tuple[str, ...] = ()
    domain: str = ""
    """The topology domain that the error is about."""
    sub_group: str = ""
