"""A look back at one cluster: what a rule would have done, and what cannot be told from what is kept.

Each kind of row is kept for its own time. Where a rule needs one that does not reach back to the beginning, the look
begins later and says so; where one that only helps is missing, it says what it could not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Min, QuerySet

from apps.alerts.backtest import Backtest, backtest
from apps.alerts.loading import history_load
from apps.alerts.models import AlertClock
from apps.alerts.rules import RULES
from apps.alerts.rules.base import Source
from apps.alerts.settings import RuleSetting
from apps.clusters.models import Cluster
from apps.diagnosis.models import ReasonTimeline
from apps.inventory.models import CapacitySample, StateChange
from apps.workloads.models import Attempt

LEAST_SPAN = timedelta(days=1)
"""Rows of this long before the beginning are read, so that what had begun by then counts from its true beginning."""
_WORDS: Mapping[Source, str] = {
    Source.REASONS: "the reasons of gangs",
    Source.ATTEMPTS: "the steps of gangs",
    Source.CAPACITY: "capacity and shares",
    Source.STATES: "the states of nodes and parts of the platform",
    Source.STANCES: "how the scheduler's words compare",
    Source.QUEUES: "what queues may use",
    Source.READINGS: "when the cluster was blind",
}


@dataclass(frozen=True, slots=True)
class Lookback:
    """``result`` is None where nothing can be told; ``unknown`` are sentences about what is not kept."""

    cluster: str
    result: Backtest | None
    unknown: tuple[str, ...]

    @property
    def count(self) -> int:
        """Return how many times the rule would have fired within the span."""
        return sum(not firing.is_carried for firing in self.result.firings) if self.result else 0


def lookback_all(*, clusters: Iterable[Cluster], setting: RuleSetting, end: datetime, days: int) -> list[Lookback]:
    """Run a rule over what is kept of some clusters; they share the work that one request may take."""
    start, rows = end - timedelta(days=days), list(clusters)
    return [lookback(cluster=row, setting=setting, start=start, end=end, parts=len(rows)) for row in rows]


def lookback(*, cluster: Cluster, setting: RuleSetting, start: datetime, end: datetime, parts: int = 1) -> Lookback:
    """Run a rule over what is kept of a cluster."""
    if not setting.is_about(cluster.name):
        return Lookback(cluster.name, None, ("The rule is not about this cluster.",))
    kept = {source: _kept_since(cluster, source) for source in (*setting.needs, *setting.helps)}
    missing = [source for source in setting.needs if (kept[source] or end) >= end]
    if missing:
        return Lookback(
            cluster.name, None, tuple(f"Cannot be told: {_WORDS[source]} are not kept." for source in missing)
        )
    begin = max([start, *(moment for source in setting.needs if (moment := kept[source]) is not None)])
    since = begin - max(LEAST_SPAN, setting.longest_window)
    history = history_load(cluster=cluster, since=since, until=end)
    result = backtest(history, setting, start=begin, end=end, parts=parts)
    return Lookback(cluster.name, result, tuple(_unknown(setting, kept, start, begin, result)))


def _kept_since(cluster: Cluster, source: Source) -> datetime | None:
    """Return since when rows of a kind are kept, None where there are none."""
    if source in {Source.STANCES, Source.QUEUES, Source.READINGS}:
        return AlertClock.objects.filter(cluster=cluster).values_list("started_at", flat=True).first()
    rows: dict[Source, tuple[QuerySet[Any], str]] = {
        Source.REASONS: (ReasonTimeline.objects.filter(gang__cluster=cluster), "opened_at"),
        Source.ATTEMPTS: (Attempt.objects.filter(cluster=cluster), "seen_at"),
        Source.CAPACITY: (CapacitySample.objects.filter(cluster=cluster), "at"),
        Source.STATES: (StateChange.objects.filter(cluster=cluster), "at"),
    }
    found, column = rows[source]
    first: datetime | None = found.order_by().aggregate(first=Min(column))["first"]
    return first


def _unknown(
    setting: RuleSetting, kept: Mapping[Source, datetime | None], start: datetime, begin: datetime, result: Backtest
) -> Iterator[str]:
    late = [source for source in setting.needs if (kept[source] or start) > start]
    if late:
        words = " and ".join(_WORDS[source] for source in late)
        yield f"Cannot be told before {begin:%Y-%m-%d %H:%M} UTC: {words} are kept since then."
    for source in setting.helps:
        moment = kept[source]
        if moment is None:
            yield f"Not known: {_WORDS[source]}."
        elif moment > begin:
            yield f"Not known before {moment:%Y-%m-%d %H:%M} UTC: {_WORDS[source]}."
    if setting.condition is None and RULES[setting.key].note:
        yield RULES[setting.key].note
    if result.looked_every > timedelta(minutes=1):
        yield f"Looked at every {result.looked_every.total_seconds() / 60:g} min, as there is much to look at."
    if result.blind_seconds:
        yield f"It would have kept still for {result.blind_seconds / 60:g} min while the cluster was blind."
