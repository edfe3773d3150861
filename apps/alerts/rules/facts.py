"""What a rule may look at: plain rows about one cluster, and which of them are true at a moment.

No query is made here. ``Facts`` shows the past of its moment only: a rule never looks at what opened after ``at``.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from apps.workloads.choices import GangState
from apps.workloads.objectives import QueueShares, Start


class Topic(StrEnum):
    """What alerts keep of the past themselves, because no other table does."""

    STANCE = "stance"
    """By gang uid: how the scheduler's own words compare, where they do not simply agree."""
    QUEUE = "queue"
    """By queue: parent, quota and limit in GPUs, as ``queue_value`` writes them."""
    BLIND = "blind"
    """By what is not to be trusted: ``poll``, ``analysis``, ``skew``, ``kind:Pod``, ``optional:Event``."""


@dataclass(frozen=True, slots=True)
class GangFact:
    """One gang. ``lineage`` is shared by the attempts at the same thing, empty where it is not known."""

    key: int
    uid: str
    namespace: str
    name: str
    queue: str
    gpus: float | None
    created: datetime | None
    lineage: str = ""

    @property
    def path(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Stretch:
    """One stretch of time in which a gang had one verdict and code."""

    gang: int
    verdict: str
    code: str
    who: str
    state: str
    subject: str
    gpus: float
    opened: datetime
    closed: datetime | None

    @property
    def cause(self) -> str:
        """Return the signature that gangs of one cause share."""
        return f"{self.verdict}|{self.code}|{self.subject}"

    @property
    def waits(self) -> bool:
        return self.state == GangState.WAITS


@dataclass(frozen=True, slots=True)
class AttemptFact:
    """The steps of one gang; None where a step is not made."""

    gang: int
    created: datetime | None
    seen: datetime
    gated: datetime | None
    ungated: datetime | None
    decided: datetime | None
    bound: datetime | None
    ready: datetime | None
    ended: datetime | None
    evictions: tuple[datetime, ...] = ()

    def as_of(self, at: datetime) -> AttemptFact:
        """Return the attempt without what came after a moment."""
        names = ("gated", "ungated", "decided", "bound", "ready", "ended")
        past = {name: moment for name in names if (moment := getattr(self, name)) is not None and moment <= at}
        return replace(self, **{**dict.fromkeys(names), **past})


@dataclass(frozen=True, slots=True)
class Sample:
    """Shares of queues ``(allocated, fair share)`` and capacities ``(GPUs, free, lost)``, true until the next one."""

    at: datetime
    queues: Mapping[str, Sequence[float | None]]
    domains: Mapping[str, Sequence[float]]

    def free(self) -> float | None:
        """Return the cluster's free GPUs, None where they were not kept."""
        whole = self.domains.get("")
        return whole[1] if whole else None


@dataclass(frozen=True, slots=True)
class StateFact:
    """A node or a part of the platform changed its state."""

    kind: str
    subject: str
    at: datetime
    state: str


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing that alerts keep themselves, from the moment it was so until it was otherwise."""

    topic: str
    subject: str
    value: str
    opened: datetime
    closed: datetime | None


@dataclass(frozen=True, slots=True)
class Promise:
    """One service objective with the starts it speaks of, in the order in which they became eligible."""

    name: str
    queue: str
    share: float
    gpus_max: float
    within_seconds: int
    starts: Sequence[Start]
    shares: QueueShares


@dataclass(frozen=True, slots=True)
class Baseline:
    """How long a stage takes in all but one of a hundred runs, and how many runs say so."""

    seconds: float
    runs: int


@dataclass(frozen=True, slots=True)
class Scope:
    """What a rule is about; empty means all. A rule about queues knows no namespaces."""

    clusters: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()

    def has_gang(self, gang: GangFact) -> bool:
        return (not self.namespaces or gang.namespace in self.namespaces) and self.has_queue(gang.queue)

    def has_queue(self, queue: str) -> bool:
        return not self.queues or queue in self.queues


@dataclass(frozen=True, slots=True)
class Facts:
    """What is true of one cluster at ``at``.

    ``standing`` are the reasons of gangs that wait or have something to tell, ``resting`` those of all others.
    ``past`` holds the stretches of each gang, ``opened`` those of all, ``samples`` the samples, each oldest first
    and perhaps running beyond ``at``: the methods cut there. ``baselines`` by stage are those of the day.
    """

    at: datetime
    cluster: str
    gangs: Mapping[int, GangFact]
    standing: Sequence[Stretch]
    resting: Sequence[Stretch] = ()
    past: Mapping[int, Sequence[Stretch]] = field(default_factory=dict)
    opened: Sequence[Stretch] = ()
    attempts: Mapping[int, AttemptFact] = field(default_factory=dict)
    evictions: Sequence[tuple[datetime, int]] = ()
    samples: Sequence[Sample] = ()
    states: Mapping[tuple[str, str], StateFact] = field(default_factory=dict)
    seen: Mapping[str, Mapping[str, Seen]] = field(default_factory=dict)
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    promises: Sequence[Promise] = ()

    def within(self, scope: Scope) -> Facts:
        """Return the facts with the reasons of gangs in a scope only."""
        if not scope.namespaces and not scope.queues:
            return self

        def inside(rows: Sequence[Stretch]) -> list[Stretch]:
            return [row for row in rows if scope.has_gang(self.gangs[row.gang])]

        return replace(self, standing=inside(self.standing), resting=inside(self.resting))

    def opened_since(self, since: datetime) -> Sequence[Stretch]:
        """Return the stretches that opened after a moment, oldest first."""
        low = bisect.bisect_right(self.opened, since, key=lambda row: row.opened)
        return self.opened[low : bisect.bisect_right(self.opened, self.at, key=lambda row: row.opened)]

    def evicted_since(self, since: datetime) -> Sequence[tuple[datetime, int]]:
        """Return the evictions after a moment with their gangs, oldest first."""
        low = bisect.bisect_right(self.evictions, since, key=lambda row: row[0])
        return self.evictions[low : bisect.bisect_right(self.evictions, self.at, key=lambda row: row[0])]

    def history(self, gang: int) -> Sequence[Stretch]:
        """Return what was said of a gang up to now, oldest first."""
        rows = self.past.get(gang, ())
        return rows[: bisect.bisect_right(rows, self.at, key=lambda row: row.opened)]

    def waits_since(self, row: Stretch) -> datetime:
        """Return since when the gang of a standing reason waits without a break."""
        rows = self.past.get(row.gang, ())
        index = bisect.bisect_right(rows, self.at, key=lambda known: known.opened) - 1
        if index < 0:
            return row.opened
        while index > 0 and rows[index - 1].waits:
            index -= 1
        created = self.gangs[row.gang].created
        return min(created, rows[0].opened) if index == 0 and created is not None else rows[index].opened

    def samples_since(self, since: datetime) -> Sequence[Sample]:
        """Return the samples that were true at some time after a moment, oldest first."""
        low = max(bisect.bisect_right(self.samples, since, key=lambda row: row.at) - 1, 0)
        return self.samples[low : bisect.bisect_right(self.samples, self.at, key=lambda row: row.at)]

    def sample(self) -> Sample | None:
        """Return the newest sample, None before the first."""
        rows = self.samples_since(self.at)
        return rows[-1] if rows else None

    def samples_back(self) -> Iterator[Sample]:
        """Yield the samples from the newest to the oldest."""
        for index in range(bisect.bisect_right(self.samples, self.at, key=lambda row: row.at) - 1, -1, -1):
            yield self.samples[index]

    def about(self, topic: Topic) -> Mapping[str, Seen]:
        return self.seen.get(topic, {})

    def oldest_first(self, rows: Iterable[Stretch]) -> list[Stretch]:
        return sorted(rows, key=lambda row: (self.waits_since(row), row.gang))

    def age(self, moment: datetime) -> timedelta:
        return max(self.at - moment, timedelta())


def queue_value(*, parent: str, quota: float | None, limit: float | None) -> str:
    """Write what is kept of a queue; the parent is whatever text someone put there, so it stands first."""
    return f"{parent}|{'' if quota is None else f'{quota:g}'}|{'' if limit is None else f'{limit:g}'}"


@dataclass(frozen=True, slots=True)
class QueueFact:
    """What a queue may use, in GPUs: None where its object does not say (which counts as 0), -1 unlimited."""

    name: str
    parent: str
    quota: float | None
    limit: float | None


def queue_of(seen: Seen) -> QueueFact:
    """Read what ``queue_value`` wrote."""
    parent, quota, limit = seen.value.rsplit("|", 2)
    return QueueFact(seen.subject, parent, float(quota) if quota else None, float(limit) if limit else None)
