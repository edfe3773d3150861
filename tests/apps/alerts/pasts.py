"""Small pasts for tests of rules: what rows a cluster would have left, written down minute by minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from apps.alerts.history import Cursor, History
from apps.alerts.rules import RULES
from apps.alerts.rules.base import Finding
from apps.alerts.rules.facts import (
    AttemptFact,
    Baseline,
    Facts,
    GangFact,
    Sample,
    Seen,
    StateFact,
    Stretch,
    Topic,
    queue_value,
)
from gangdash.engine.verdict import VERDICT_OF, ReasonCode, Verdict

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
"""Minute 0 of every past here; a Monday."""


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


class Past:
    """Collects rows; times are minutes from noon, None where something has not ended."""

    def __init__(self) -> None:
        self.gangs: dict[int, GangFact] = {}
        self.stretches: list[Stretch] = []
        self.attempts: dict[int, AttemptFact] = {}
        self.samples: list[Sample] = []
        self.states: list[StateFact] = []
        self.seen: list[Seen] = []
        self.baselines: dict[str, Baseline] = {}
        self.promises: list[Any] = []

    def gang(self, name: str, *, queue: str = "q", gpus: float = 8, created: float | None = None, **more: Any) -> int:
        key = len(self.gangs) + 1
        namespace, _, short = name.rpartition("/")
        moment = None if created is None else at(created)
        self.gangs[key] = GangFact(key, f"uid-{key}", namespace or "team-a", short, queue, gpus, moment, **more)
        return key

    def says(self, gang: int, code: str, start: float, end: float | None = None, **more: Any) -> None:
        """Add what was said of a gang from a minute to another one."""
        verdict = VERDICT_OF[ReasonCode(code)]
        placed = {Verdict.STARTING: "tells", Verdict.VIOLATED: "tells", Verdict.HEALTHY: "fine"}
        fields = {"who": "cluster_admin", "state": placed.get(verdict, "waits"), "subject": "Node/all"}
        gpus = self.gangs[gang].gpus or 0.0
        row = Stretch(gang, verdict, code, gpus=gpus, opened=at(start), closed=None if end is None else at(end),
                      **(fields | more))  # fmt: skip
        self.stretches.append(row)

    def steps(self, gang: int, *, evictions: Sequence[float] = (), **steps: float) -> None:
        moments = {name: at(minutes) for name, minutes in steps.items()}
        empty = dict.fromkeys(("created", "gated", "ungated", "decided", "bound", "ready", "ended"))
        fields: dict[str, Any] = {**empty, "seen": at(0), **moments}
        self.attempts[gang] = AttemptFact(gang, evictions=tuple(map(at, evictions)), **fields)

    def capacity(
        self, minute: float, *, gpus: float = 100, free: float = 0, lost: float = 0,
        queues: Mapping[str, float | None] | None = None, domains: Mapping[str, Sequence[float]] | None = None,
    ) -> None:  # fmt: skip
        held = {name: (amount, None) for name, amount in (queues or {}).items()}
        self.samples.append(Sample(at(minute), held, {"": [gpus, free, lost], **(domains or {})}))

    def queue(self, name: str, *, parent: str = "", quota: float | None = 0, limit: float | None = -1) -> None:
        self.sees(Topic.QUEUE, name, queue_value(parent=parent, quota=quota, limit=limit), -1e4)

    def sees(self, topic: Topic, subject: str, value: str, start: float, end: float | None = None) -> None:
        self.seen.append(Seen(topic, subject, value, at(start), None if end is None else at(end)))

    def state(self, kind: str, subject: str, state: str, minute: float) -> None:
        self.states.append(StateFact(kind, subject, at(minute), state))

    def history(self) -> History:
        return History(
            cluster="east",
            gangs=self.gangs,
            stretches=self.stretches,
            attempts=list(self.attempts.values()),
            samples=self.samples,
            states=self.states,
            seen=self.seen,
            promises=self.promises,
        )

    def facts(self, minute: float) -> Facts:
        facts = Cursor(self.history()).at(at(minute))
        return replace(facts, baselines=self.baselines) if self.baselines else facts

    def found(self, rule: str, minute: float, **values: float) -> list[Finding]:
        """Return what a rule finds at a minute, with its own numbers but for those named."""
        return RULES[rule].find(self.facts(minute), RULES[rule].defaults() | values)


def since(finding: Finding) -> float:
    """Return the beginning of a finding in minutes."""
    return (finding.since - NOON).total_seconds() / 60
