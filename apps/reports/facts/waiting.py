"""Who waits at one moment, with what was said of it then: need, best change, holders, the scheduler's own words.

Rests on the timelines, which know each moment that is kept, and on the newest explanation up to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
from django.db.models import OuterRef, Q, Subquery

from apps.clusters.models import Cluster
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline
from apps.reports.facts.waits import GangFacts
from apps.workloads.choices import GangState
from gangdash.documents.model import BindingEntry, FixEntry, HolderEntry, SchedulerEntry
from gangdash.engine.verdict import Certainty, Match

GANGS_AT_ONCE = 500


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
class WaitingFacts:
    """Those who wait at a moment, by what they have cost: most GPU-seconds first."""

    gangs: tuple[WaitingGang, ...] = ()
    matches: Counter[str] = field(default_factory=Counter)
    certainties: Counter[str] = field(default_factory=Counter)

    @property
    def gpus(self) -> float:
        return sum(gang.gpus for gang in self.gangs)

    @property
    def oldest(self) -> WaitingGang | None:
        return min(self.gangs, key=lambda gang: (gang.since, gang.gang.pk), default=None)

    @property
    def told(self) -> int:
        """Return how many have an explanation that is kept."""
        return sum(self.certainties.values())

    def silent(self, before: datetime) -> tuple[WaitingGang, ...]:
        """Return those who wait since before a moment and of whom the scheduler has said nothing."""
        return tuple(g for g in self.gangs if g.since <= before and g.told and g.told.scheduler.match is Match.SILENT)


def waiting_facts(cluster: Cluster, at: datetime) -> WaitingFacts:
    """Return who waits at a moment."""
    gangs = list(_waiting(cluster, at))
    told = [gang.told for gang in gangs if gang.told is not None]
    return WaitingFacts(
        gangs=tuple(sorted(gangs, key=lambda gang: (-gang.gpu_seconds(at), gang.since, gang.gang.pk))),
        matches=Counter(str(item.scheduler.match) for item in told),
        certainties=Counter(str(item.certainty) for item in told),
    )


def _waiting(cluster: Cluster, at: datetime) -> Iterator[WaitingGang]:
    held = ReasonTimeline.objects.filter(
        Q(closed_at=None) | Q(closed_at__gt=at), gang__cluster=cluster, opened_at__lte=at, state=GangState.WAITS
    )
    rows = list(held.select_related("gang").defer("snapshot").order_by("gang_id"))
    for first in range(0, len(rows), GANGS_AT_ONCE):
        part = rows[first : first + GANGS_AT_ONCE]
        told = told_at(cluster, [row.gang_id for row in part], at)
        # The column is of now; a gang that ran since then has lost what it said at that moment.
        since = {row.gang_id: row.gang.waiting_since for row in part if row.gang.waiting_since is not None}
        late = [row.gang_id for row in part if row.gang_id not in since or since[row.gang_id] > at]
        since |= waiting_from(late, at)
        yield from (_gang(row, since[row.gang_id], told.get(row.gang_id)) for row in part)


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
