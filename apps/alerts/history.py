"""The kept rows about one cluster, and how they looked at a moment.

A cursor goes through the past once, oldest first: it keeps what stands open and hands out ``Facts``. Live evaluation
asks for one moment, a look back for thousands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from apps.alerts.rules.facts import (
    AttemptFact,
    Baseline,
    Facts,
    GangFact,
    Promise,
    Sample,
    Seen,
    StateFact,
    Stretch,
)
from apps.alerts.rules.progress import baselines
from apps.workloads.choices import GangState
from gangdash.engine.verdict import ReasonCode

BASELINE_SPAN = timedelta(days=14)
"""How far back runs tell how long a stage takes."""


@dataclass(frozen=True, slots=True)
class History:
    """What is kept of one cluster, in any order. ``known_baselines`` are by day; other days are worked out."""

    cluster: str
    gangs: Mapping[int, GangFact]
    stretches: Sequence[Stretch] = ()
    attempts: Sequence[AttemptFact] = ()
    samples: Sequence[Sample] = ()
    states: Sequence[StateFact] = ()
    seen: Sequence[Seen] = ()
    promises: Sequence[Promise] = ()
    known_baselines: Mapping[datetime, Mapping[str, Baseline]] = field(default_factory=dict)


class Cursor:
    """Goes through a history, never back."""

    def __init__(self, history: History) -> None:
        self.history = history
        self._opened = sorted(history.stretches, key=lambda row: (row.opened, row.gang))
        self._samples = sorted(history.samples, key=lambda row: row.at)
        self._past = _grouped(self._opened)
        self._attempts = {row.gang: row for row in history.attempts}
        self._evictions = sorted((at, row.gang) for row in history.attempts for at in row.evictions)
        self._standing: dict[int, Stretch] = {}
        self._seen: dict[str, dict[str, Seen]] = {}
        self._states: dict[tuple[str, str], StateFact] = {}
        self._events = _events(history)
        self._next = 0
        self._view: tuple[tuple[Stretch, ...], tuple[Stretch, ...]] = ((), ())
        self._baselines = dict(history.known_baselines)

    def upcoming(self) -> datetime | None:
        """Return when the next thing changes, None after the last."""
        return self._events[self._next][0] if self._next < len(self._events) else None

    def at(self, moment: datetime) -> Facts:
        """Return what was true at a moment that is not before the one asked for last."""
        before = self._next
        while self._next < len(self._events) and self._events[self._next][0] <= moment:
            self._apply(self._events[self._next][2], self._events[self._next][3])
            self._next += 1
        if self._next != before:
            rows = self._standing.values()
            self._view = (
                tuple(row for row in rows if row.state != GangState.FINE),
                tuple(row for row in rows if row.state == GangState.FINE),
            )
        return Facts(
            at=moment,
            cluster=self.history.cluster,
            gangs=self.history.gangs,
            standing=self._view[0],
            resting=self._view[1],
            past=self._past,
            opened=self._opened,
            attempts=self._attempts,
            evictions=self._evictions,
            samples=self._samples,
            states=self._states,
            seen=self._seen,
            baselines=self._baselines_of(moment),
            promises=self.history.promises,
        )

    def _apply(self, row: Any, is_end: bool) -> None:
        if isinstance(row, Stretch):
            self._turn_stretch(row, is_end)
        elif isinstance(row, Seen):
            self._turn_seen(row, is_end)
        else:
            self._states[row.kind, row.subject] = row

    def _turn_stretch(self, row: Stretch, is_end: bool) -> None:
        if not is_end:
            self._standing[row.gang] = row
        elif self._standing.get(row.gang) is row:
            del self._standing[row.gang]

    def _turn_seen(self, row: Seen, is_end: bool) -> None:
        topic = self._seen.setdefault(row.topic, {})
        if not is_end:
            topic[row.subject] = row
        elif topic.get(row.subject) is row:
            del topic[row.subject]

    def _baselines_of(self, moment: datetime) -> Mapping[str, Baseline]:
        day = day_of(moment)
        if day not in self._baselines:
            start = day - BASELINE_SPAN
            runs = [row for row in self.history.attempts if row.seen >= start]
            upstream = [row for row in self._opened if row.code == ReasonCode.UPSTREAM_STAGE and row.opened >= start]
            self._baselines[day] = baselines(runs, upstream, before=day)
        return self._baselines[day]


def day_of(moment: datetime) -> datetime:
    """Return the beginning of a moment's day: what is usual is told anew each day, not with each look."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


Event = tuple[datetime, int, Any, bool]
"""When, an order among those of one moment, the row, and whether it ends."""


def _events(history: History) -> list[Event]:
    """Return all changes in order; of one moment ends come before beginnings."""
    events: list[Event] = [(row.at, 1, row, False) for row in history.states]
    spans: Iterable[Stretch | Seen] = [*history.stretches, *history.seen]
    for row in spans:
        events.append((row.opened, 1, row, False))
        if row.closed is not None:
            events.append((row.closed, 0, row, True))
    events.sort(key=lambda event: event[:2])
    return events


def _grouped(rows: Iterable[Stretch]) -> dict[int, list[Stretch]]:
    found: dict[int, list[Stretch]] = {}
    for row in rows:
        found.setdefault(row.gang, []).append(row)
    return found
