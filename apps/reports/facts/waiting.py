"""Who waits at one moment, with what was said of it then: need, best change, holders, the scheduler's own words.

Rests on the timelines, which know each moment that is kept, and on the newest explanation up to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db.models import OuterRef, Q, Subquery

from apps.clusters.models import Cluster
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline
from apps.reports.facts.waits import GangFacts
from apps.workloads.choices import GangState
from gangdash.documents.model import BindingEntry, FixEntry, HolderEntry, SchedulerEntry
from gangdash.engine.verdict import Certainty, Match, ReasonCode

GANGS_AT_ONCE = 500
KEPT = 100
"""Gangs of each list that are kept one by one; all are counted."""
SILENT_AFTER = timedelta(minutes=5)
"""Who waits for less may not have had its turn yet."""
HELD_CODES = frozenset(
    {
        ReasonCode.GPUS_BUSY,
        ReasonCode.FRAGMENTED,
        ReasonCode.DOMAIN_BUSY,
        ReasonCode.FAIR_SHARE_REACHED,
        ReasonCode.HOLDERS_PROTECTED,
        ReasonCode.QUEUE_LIMIT,
        ReasonCode.QUEUED_BEHIND,
        ReasonCode.WAITS_FOR_RELEASE,
    }
)
"""What ends by itself once holders end."""


class Told(msgspec.Struct, frozen=True):
    """The parts of an explanation that a report shows."""

    certainty: Certainty
    scheduler: SchedulerEntry
    binding: list[BindingEntry] = []
    fixes: list[FixEntry] = []
    fixes_refused: int = 0
    holders: list[HolderEntry] = []


told_decode = msgspec.json.Decoder(Told).decode


@dataclass(frozen=True, slots=True)
class WaitingGang:
    """A gang that waits; ``told`` is None where what was said of it is not kept."""

    gang: GangFacts
    verdict: str
    code: str
    who: str
    sentence: str
    gpus: float
    since: datetime
    told: Told | None

    def gpu_seconds(self, end: datetime) -> float:
        """Return the GPU-seconds it has waited up to a moment."""
        return self.gpus * max(0.0, (end - self.since).total_seconds())


@dataclass(frozen=True, slots=True)
class Ask:
    """The cheapest change of so many gangs, who makes it, and the GPUs that they wait for."""

    who: str
    sentence: str
    gangs: int
    gpus: float


@dataclass(frozen=True, slots=True)
class WaitingFacts:
    """Those who wait at a moment: sums over all of them, and the first of each list.

    ``gangs`` and ``held`` (whose holders are known) are by GPU-seconds waited, most first; ``silent``, of which the
    scheduler says nothing, by age; ``asks`` by GPUs.
    """

    total: int = 0
    gpus: float = 0.0
    oldest: WaitingGang | None = None
    gangs: tuple[WaitingGang, ...] = ()
    held: tuple[WaitingGang, ...] = ()
    held_total: int = 0
    silent: tuple[WaitingGang, ...] = ()
    silent_total: int = 0
    asks: tuple[Ask, ...] = ()
    matches: Counter[str] = field(default_factory=Counter)
    certainties: Counter[str] = field(default_factory=Counter)

    @property
    def told(self) -> int:
        """Return how many have an explanation that is kept."""
        return sum(self.certainties.values())


class First:
    """Keeps the first few of many by a key, and their number."""

    def __init__(self, key: Callable[[WaitingGang], tuple[Any, ...]]) -> None:
        self._key = key
        self._found: list[WaitingGang] = []
        self.total = 0

    def add(self, gang: WaitingGang) -> None:
        self.total += 1
        self._found.append(gang)
        if len(self._found) > 2 * KEPT:
            self._found = list(self.result())

    def result(self) -> tuple[WaitingGang, ...]:
        return tuple(sorted(self._found, key=self._key)[:KEPT])


class WaitingTally:
    """Sums those who wait, one after the other."""

    def __init__(self, at: datetime) -> None:
        self._at = at
        self._gpus = 0.0
        self._all, self._held = First(self._cost), First(self._cost)
        self._oldest, self._silent = First(_age), First(_age)
        self._asks: dict[tuple[str, str], list[float]] = {}
        self._matches: Counter[str] = Counter()
        self._certainties: Counter[str] = Counter()

    def _cost(self, gang: WaitingGang) -> tuple[Any, ...]:
        return -gang.gpu_seconds(self._at), gang.since, gang.gang.pk

    def add(self, gang: WaitingGang) -> None:
        """Add one gang."""
        self._gpus += gang.gpus
        self._all.add(gang)
        self._oldest.add(gang)
        if gang.told is not None:
            self._add_told(gang, gang.told)

    def _add_told(self, gang: WaitingGang, told: Told) -> None:
        self._matches[told.scheduler.match] += 1
        self._certainties[told.certainty] += 1
        if told.scheduler.match is Match.SILENT and gang.since <= self._at - SILENT_AFTER:
            self._silent.add(gang)
        if gang.code in HELD_CODES and told.holders:
            self._held.add(gang)
        if told.fixes:
            ask = self._asks.setdefault((told.fixes[0].who, told.fixes[0].sentence), [0, 0.0])
            ask[0] += 1
            ask[1] += gang.gpus

    def result(self) -> WaitingFacts:
        asks = [Ask(who, sentence, int(gangs), gpus) for (who, sentence), (gangs, gpus) in self._asks.items()]
        return WaitingFacts(
            total=self._all.total,
            gpus=self._gpus,
            oldest=next(iter(self._oldest.result()), None),
            gangs=self._all.result(),
            held=self._held.result(),
            held_total=self._held.total,
            silent=self._silent.result(),
            silent_total=self._silent.total,
            asks=tuple(sorted(asks, key=lambda ask: (-ask.gpus, ask.who, ask.sentence))),
            matches=self._matches,
            certainties=self._certainties,
        )


def _age(gang: WaitingGang) -> tuple[Any, ...]:
    return gang.since, gang.gang.pk


def waiting_facts(cluster: Cluster, at: datetime) -> WaitingFacts:
    """Return who waits at a moment."""
    held = ReasonTimeline.objects.filter(
        Q(closed_at=None) | Q(closed_at__gt=at), gang__cluster=cluster, opened_at__lte=at, state=GangState.WAITS
    )
    tally, keys = WaitingTally(at), sorted(held.values_list("pk", flat=True))
    for first in range(0, len(keys), GANGS_AT_ONCE):
        for gang in _gangs(cluster, keys[first : first + GANGS_AT_ONCE], at):
            tally.add(gang)
    return tally.result()


def _gangs(cluster: Cluster, keys: Sequence[int], at: datetime) -> Iterator[WaitingGang]:
    """Yield the gangs of some rows that hold at a moment."""
    rows = list(ReasonTimeline.objects.filter(pk__in=keys).select_related("gang").order_by("pk"))
    told = told_at(cluster, [row.gang_id for row in rows], at)
    # The column is of now; a gang that ran since then has lost what it said at that moment.
    since = {row.gang_id: row.gang.waiting_since for row in rows if row.gang.waiting_since is not None}
    late = [row.gang_id for row in rows if row.gang_id not in since or since[row.gang_id] > at]
    since |= waiting_from(late, at)
    yield from (_gang(row, since[row.gang_id], told.get(row.gang_id)) for row in rows)


def waiting_from(gangs: Sequence[int], at: datetime) -> dict[int, datetime]:
    """Return by gang when the stretch of waiting began that lasts at a moment, by the timelines."""
    rows = ReasonTimeline.objects.filter(gang__in=gangs, opened_at__lte=at).order_by("gang_id", "opened_at")
    found: dict[int, datetime] = {}
    ended: dict[int, datetime | None] = {}
    for gang, state, opened_at, closed_at in rows.values_list("gang_id", "state", "opened_at", "closed_at").iterator():
        if state != GangState.WAITS:
            found.pop(gang, None)
        elif gang not in found or ended[gang] != opened_at:
            found[gang] = opened_at
        ended[gang] = closed_at
    return found


def _gang(row: ReasonTimeline, since: datetime, told: Told | None) -> WaitingGang:
    gang = row.gang
    facts = GangFacts(gang.pk, gang.uid, gang.namespace, gang.name, gang.queue, gang.gpus)
    return WaitingGang(facts, row.verdict, row.code, row.who, row.sentence, row.gpus, since, told)


def told_at(cluster: Cluster, gangs: Sequence[int], at: datetime) -> dict[int, Told]:
    """Return what was said of some gangs up to a moment, by gang; one that is no longer kept is left out."""
    records = ExplanationRecord.objects.filter(gang__in=gangs)
    if cluster.diagnosed_as_of is not None and cluster.diagnosed_as_of <= at:
        records = records.filter(is_current=True)
    else:
        kept = ExplanationRecord.objects.filter(gang=OuterRef("gang"), snapshot__as_of__lte=at)
        records = records.filter(pk=Subquery(kept.order_by("-snapshot__as_of", "-pk").values("pk")[:1]))
    return {gang: told_decode(document) for gang, document in records.values_list("gang_id", "document").iterator(100)}
