"""What nodes and parts of the platform did in a span: lost, returned, down, and how they stood at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.db.models import Max

from apps.inventory.choices import NodeState
from apps.inventory.models import StateChange
from apps.reports.facts.period import Period

NODE, PART = "Node", "Deployment"
GONE, PART_UP = "gone", "ready"
ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one node or part; ``was`` is empty for the first that was seen."""

    subject: str
    at: datetime
    state: str
    was: str
    reason: str


@dataclass(frozen=True, slots=True)
class Outage:
    """One node or part over a span: how often it was lost, how long it was away, how it stood at the end."""

    subject: str
    times: int
    away_seconds: float
    state: str
    reason: str
    last_at: datetime


@dataclass(frozen=True, slots=True)
class HardwareFacts:
    """``states`` counts nodes by state at the end. Outages are those of the span, longest first."""

    states: dict[str, int]
    lost: int = 0
    returned: int = 0
    nodes: tuple[Outage, ...] = ()
    parts: tuple[Outage, ...] = ()

    @property
    def total(self) -> int:
        return sum(self.states.values())


def hardware_facts(period: Period) -> HardwareFacts:
    """Read the changes of one span, and the states that it began with."""
    changes = list(_changes(period, NODE))
    return HardwareFacts(
        states=_states(period),
        lost=sum(change.was == NodeState.READY and change.state != NodeState.READY for change in changes),
        returned=sum(bool(change.was) and change.was != NodeState.READY and change.state == NodeState.READY
                     for change in changes),
        nodes=_outages(period, NODE, changes, NodeState.READY),
        parts=_outages(period, PART, list(_changes(period, PART)), PART_UP),
    )  # fmt: skip


def _changes(period: Period, kind: str) -> Iterator[Change]:
    rows = StateChange.objects.filter(
        cluster=period.cluster_id, kind=kind, at__gte=period.start, at__lt=period.end
    ).order_by("at", "pk")
    for row in rows.values_list("subject", "at", "state", "was", "reason").iterator(ROWS_AT_ONCE):
        yield Change(*row)


def _before(period: Period, kind: str) -> dict[str, Change]:
    """Return how each subject stood when the span began."""
    rows = StateChange.objects.filter(cluster=period.cluster_id, kind=kind, at__lt=period.start)
    newest = rows.order_by().values("subject").annotate(newest=Max("pk")).values("newest")
    columns = ("subject", "at", "state", "was", "reason")
    return {row[0]: Change(*row) for row in rows.filter(pk__in=newest).values_list(*columns)}


def _states(period: Period) -> dict[str, int]:
    rows = StateChange.objects.filter(cluster=period.cluster_id, kind=NODE, at__lt=period.end)
    newest = rows.order_by().values("subject").annotate(newest=Max("pk")).values("newest")
    found: dict[str, int] = {}
    for state in rows.filter(pk__in=newest).exclude(state=GONE).values_list("state", flat=True):
        found[state] = found.get(state, 0) + 1
    return found


def _outages(period: Period, kind: str, changes: Sequence[Change], up: str) -> tuple[Outage, ...]:
    """Return what was away in the span. What was gone before it and stayed so is not there to be lost."""
    before = {subject: change for subject, change in _before(period, kind).items() if change.state != GONE}
    by_subject: dict[str, list[Change]] = {
        subject: list(group)
        for subject, group in groupby(sorted(changes, key=lambda change: change.subject), lambda c: c.subject)
    }
    subjects = sorted({*by_subject, *(name for name, change in before.items() if change.state != up)})
    found = [outage_of(period, before.get(name), by_subject.get(name, []), up) for name in subjects]
    away = [outage for outage in found if outage.away_seconds > 0 or outage.times]
    return tuple(sorted(away, key=lambda outage: (-outage.away_seconds, outage.subject)))


def outage_of(period: Period, before: Change | None, changes: Iterable[Change], up: str) -> Outage:
    """Sum one subject: away is every state but the one that counts as up, from when it was first seen."""
    standing, since = before, period.start
    away, times = 0.0, 0
    for change in changes:
        if standing is None and change.was not in {"", GONE}:
            # The row of the state before is no longer kept, but the change says what it was.
            standing = Change(change.subject, period.start, change.was, "", "")
        if standing is not None and standing.state != up:
            away += (change.at - since).total_seconds()
        times += change.state != up and (standing is None or standing.state == up)
        standing, since = change, change.at
    if standing is None:
        raise ValueError("an outage needs a state before or a change")
    if standing.state != up:
        away += (period.end - since).total_seconds()
    return Outage(standing.subject, times, away, standing.state, standing.reason, max(standing.at, period.start))
