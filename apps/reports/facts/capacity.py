"""What the capacity samples of a span say: GPUs over time, what queues held against their quota, what fits where.

A sample is true until the next one. Samples are thinned to one an hour after a day, so hours are the grain of a week.
Quotas and limits are those of now, as older ones are not kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from apps.inventory.models import CapacitySample, Queue, Topology
from apps.reports.facts.period import Period

WEEK = timedelta(days=7)
SLACK = 1e-6
"""Amounts are sums of shares of GPUs."""
UNLIMITED = -1
HOSTNAME = "kubernetes.io/hostname"
SAMPLES_AT_ONCE = 50

Amounts = Sequence[float | None]
Segment = tuple[datetime, datetime, Mapping[str, Amounts], Mapping[str, Sequence[float]]]


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """One queue: its rules as of now, and what it held over the span. ``last`` is what it held at the end.

    ``quota`` and ``limit`` are None where unlimited; an object that gives none has a quota of 0.
    """

    name: str
    parent: str
    is_leaf: bool
    quota: float | None
    limit: float | None
    last: float | None = None
    known_seconds: float = 0.0
    at_limit_seconds: float = 0.0
    idle_gpu_seconds: float = 0.0
    borrowed_gpu_seconds: float = 0.0
    starved_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Pair:
    """One queue was below its quota and wanted more while its sibling held more than its own."""

    starved: str
    borrower: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """``[GPUs, free, lost, nodes, whole free nodes]`` per domain at one moment; ``""`` is the whole cluster.

    Samples of before nodes were counted have the first three only.
    """

    at: datetime
    domains: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class LevelFacts:
    """One level of a topology above single nodes; ``number`` 0 is the broadest."""

    topology: str
    number: int
    label: str
    alias: str

    def has(self, key: str) -> bool:
        """Tell whether a domain of a sample, by its key there, is of this level."""
        topology, _, path = key.partition("|")
        return bool(path) and topology == self.topology and path.count("/") == self.number


@dataclass(frozen=True, slots=True)
class CapacityFacts:
    """Everything from samples. ``levels`` holds per step the mean GPUs used, free and lost, None where none is known.

    ``known_seconds`` is how much of the span has samples.
    """

    queues: tuple[QueueFacts, ...] = ()
    pairs: tuple[Pair, ...] = ()
    levels: tuple[tuple[float, float, float] | None, ...] = ()
    known_seconds: float = 0.0
    used_gpu_seconds: float = 0.0
    total_gpu_seconds: float = 0.0
    lost_gpu_seconds: float = 0.0
    newest: Capacity | None = None
    week_ago: Capacity | None = None
    topology_levels: tuple[LevelFacts, ...] = ()


@dataclass(slots=True)
class _Held:
    """What one queue's sums come to."""

    last: float | None = None
    known: float = 0.0
    at_limit: float = 0.0
    idle: float = 0.0
    borrowed: float = 0.0
    starved: float = 0.0


@dataclass(slots=True)
class QueueTally:
    """Sums what queues held, segment by segment."""

    period: Period
    queues: Mapping[str, QueueFacts]
    demand: Mapping[str, frozenset[int]]
    held: dict[str, _Held] = field(default_factory=lambda: defaultdict(_Held))
    pairs: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))

    def add(self, start: datetime, end: datetime, amounts: Mapping[str, Amounts]) -> None:
        """Add one segment in which the amounts were true."""
        seconds = (end - start).total_seconds()
        held = {name: amount[0] for name, amount in amounts.items() if name in self.queues and amount[0] is not None}
        for name, amount in held.items():
            self._add_queue(self.queues[name], amount, seconds)
        borrowers = self._borrowers(held)
        for name, amount in held.items():
            queue = self.queues[name]
            if queue.quota is not None and amount < queue.quota - SLACK:
                self._add_starved(queue, self._wanted(name, start, end), borrowers.get(queue.parent, ()))

    def _add_starved(self, queue: QueueFacts, seconds: float, borrowers: Sequence[str]) -> None:
        if seconds > 0:
            self.held[queue.name].starved += seconds
            for sibling in borrowers:
                self.pairs[queue.name, sibling] += seconds

    def _add_queue(self, queue: QueueFacts, amount: float, seconds: float) -> None:
        sums = self.held[queue.name]
        sums.last = amount
        sums.known += seconds
        if queue.limit is not None and amount > 0 and amount >= queue.limit - SLACK:
            sums.at_limit += seconds
        if queue.quota is not None:
            sums.idle += max(queue.quota - amount, 0.0) * seconds
            sums.borrowed += max(amount - queue.quota, 0.0) * seconds

    def _borrowers(self, held: Mapping[str, float]) -> dict[str, list[str]]:
        """Return by parent the queues that hold more than their quota."""
        found: dict[str, list[str]] = defaultdict(list)
        for name, amount in held.items():
            queue = self.queues[name]
            if queue.quota is not None and amount > queue.quota + SLACK:
                found[queue.parent].append(name)
        return found

    def _wanted(self, name: str, start: datetime, end: datetime) -> float:
        """Return how many seconds of a segment lie in steps in which a gang of the queue waited for capacity."""
        steps, base, width = self.demand.get(name, frozenset()), self.period.start, self.period.step
        found = 0.0
        for number in range(int((start - base) / width), int((end - base) / width) + 1):
            if number in steps:
                opened = max(start, base + number * width)
                found += max(0.0, (min(end, base + (number + 1) * width) - opened).total_seconds())
        return found

    def result(self) -> Iterator[QueueFacts]:
        for name, queue in self.queues.items():
            sums = self.held[name]
            yield QueueFacts(
                name, queue.parent, queue.is_leaf, queue.quota, queue.limit, sums.last, sums.known, sums.at_limit,
                sums.idle, sums.borrowed, sums.starved,
            )  # fmt: skip


@dataclass(slots=True)
class LevelTally:
    """Sums the GPUs of the cluster per step."""

    period: Period
    sums: list[list[float]] = field(init=False)

    def __post_init__(self) -> None:
        self.sums = [[0.0, 0.0, 0.0, 0.0] for _ in range(self.period.steps)]

    def add(self, start: datetime, end: datetime, total: Sequence[float]) -> None:
        """Add one segment with its GPUs, free and lost ones."""
        gpus, free, lost = total
        base, width = self.period.start, self.period.step
        for number in range(int((start - base) / width), min(int((end - base) / width) + 1, len(self.sums))):
            opened, closed = max(start, base + number * width), min(end, base + (number + 1) * width)
            seconds = max(0.0, (closed - opened).total_seconds())
            sums = self.sums[number]
            for at, amount in enumerate((1.0, gpus - free - lost, free, lost)):
                sums[at] += amount * seconds

    def means(self) -> tuple[tuple[float, float, float] | None, ...]:
        return tuple((s[1] / s[0], s[2] / s[0], s[3] / s[0]) if s[0] > 0 else None for s in self.sums)

    def total(self, at: int) -> float:
        """Return the sum over the span: of seconds, then of GPU-seconds used, free and lost."""
        return sum(sums[at] for sums in self.sums)


def capacity_facts(period: Period, demand: Mapping[str, frozenset[int]]) -> CapacityFacts:
    """Read the samples of one span."""
    queues, levels = QueueTally(period, _queues(period.cluster_id), demand), LevelTally(period)
    newest: Capacity | None = None
    for start, end, amounts, domains in _segments(period):
        queues.add(start, end, amounts)
        if "" in domains:
            levels.add(start, end, domains[""][:3])
        newest = Capacity(end, domains)
    used, free, lost = levels.total(1), levels.total(2), levels.total(3)
    return CapacityFacts(
        queues=tuple(queues.result()),
        pairs=tuple(Pair(*names, seconds) for names, seconds in sorted(queues.pairs.items(), key=_longest)),
        levels=levels.means(),
        known_seconds=levels.total(0),
        used_gpu_seconds=used,
        total_gpu_seconds=used + free + lost,
        lost_gpu_seconds=lost,
        newest=newest,
        week_ago=capacity_at(period.cluster_id, period.end - WEEK),
        topology_levels=tuple(_topology_levels(period.cluster_id)),
    )


def _longest(item: tuple[tuple[str, str], float]) -> tuple[float, tuple[str, str]]:
    return -item[1], item[0]


def _segments(period: Period) -> Iterator[Segment]:
    """Yield the samples with the part of the span that each is true for."""
    samples = CapacitySample.objects.filter(cluster=period.cluster_id, at__lt=period.end)
    before = samples.filter(at__lte=period.start).order_by("-at").values_list("at", flat=True).first()
    rows = samples.filter(at__gte=before or period.start).order_by("at").values_list("at", "queues", "domains")
    held: tuple[datetime, Mapping[str, Amounts], Mapping[str, Sequence[float]]] | None = None
    for at, queues, domains in rows.iterator(SAMPLES_AT_ONCE):
        if held is not None:
            yield max(held[0], period.start), at, held[1], held[2]
        held = (at, queues, domains)
    if held is not None:
        yield max(held[0], period.start), period.end, held[1], held[2]


def capacity_at(cluster_id: int, at: datetime) -> Capacity | None:
    """Return the capacity at a moment, None where no sample reaches back so far."""
    sample = CapacitySample.objects.filter(cluster=cluster_id, at__lte=at).order_by("-at").first()
    return None if sample is None else Capacity(sample.at, sample.domains)


def _queues(cluster_id: int) -> dict[str, QueueFacts]:
    rows = Queue.objects.filter(cluster=cluster_id).order_by("name")
    columns = ("name", "parent", "is_leaf", "gpu_quota", "gpu_limit")
    return {
        name: QueueFacts(name, parent, is_leaf, _bound(quota or 0.0), _bound(limit or 0.0))
        for name, parent, is_leaf, quota, limit in rows.values_list(*columns)
    }


def _bound(value: float) -> float | None:
    return None if value == UNLIMITED else value


def _topology_levels(cluster_id: int) -> Iterator[LevelFacts]:
    for name, levels in Topology.objects.filter(cluster=cluster_id).values_list("name", "levels"):
        for number, level in enumerate(levels):
            if level["label"] != HOSTNAME:
                yield LevelFacts(name, number, level["label"], level.get("alias") or "")
