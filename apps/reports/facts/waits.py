"""What the timelines of a span say: GPUs that waited, for what, in which queue; evictions; reasons that flap.

Reads the rows gang by gang in the order of an index and keeps sums only, so that a week with millions of rows costs
time, not memory. The span before is summed along for the trend.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter

from django.db.models import Q

from apps.diagnosis.models import ReasonTimeline
from apps.reports.facts.period import Period
from apps.workloads.choices import GangState
from apps.workloads.models import Attempt, Gang
from gangdash.engine.verdict import Verdict

GANGS_AT_ONCE = 500
ROWS_AT_ONCE = 5000
KEPT = 50
"""Evictions and flapping gangs that are kept one by one; all are counted."""
FLAP_CHANGES = 4
FLAP_WINDOW = timedelta(minutes=30)
"""So many changes of the reason within this span are flapping."""
NO_DEMAND = frozenset({Verdict.CONFIG, Verdict.GATED})
"""Under these verdicts a gang asks its queue for nothing yet."""

Row = tuple[int, str, str, str, float, datetime, datetime | None]
"""Gang, verdict, code, state, GPUs waiting, opened, closed; the rows of a gang in the order of time."""


@dataclass(frozen=True, slots=True)
class GangFacts:
    """A gang as lists name it."""

    pk: int
    uid: str
    namespace: str
    name: str
    queue: str
    gpus: float | None


@dataclass(frozen=True, slots=True)
class CodeWait:
    """What waited under one code. ``gangs`` are different ones; ``before`` are the GPU-seconds of the span before."""

    verdict: str
    code: str
    gpu_seconds: float
    gangs: int
    before: float


@dataclass(frozen=True, slots=True)
class Eviction:
    """A gang lost its nodes. ``run_seconds`` is how long it had held them, None where that did not show."""

    gang: GangFacts
    code: str
    at: datetime
    run_seconds: float | None

    @property
    def gpu_seconds(self) -> float | None:
        return None if self.run_seconds is None or self.gang.gpus is None else self.run_seconds * self.gang.gpus


@dataclass(frozen=True, slots=True)
class Flapper:
    """A gang whose reason changed again and again: ``changes`` is the most of them within one window."""

    gang: GangFacts
    changes: int
    at: datetime


@dataclass(frozen=True, slots=True)
class WaitFacts:
    """The sums of one span. ``levels`` holds per verdict the mean waiting GPUs of each step.

    ``demand`` holds per queue the numbers of the steps in which a gang of it waited for capacity.
    ``opened`` counts per code the rows that were opened in the span. Churners are gangs evicted more than once.
    """

    rows: int = 0
    gangs: int = 0
    codes: tuple[CodeWait, ...] = ()
    levels: dict[str, tuple[float, ...]] = field(default_factory=dict)
    demand: dict[str, frozenset[int]] = field(default_factory=dict)
    opened: Counter[str] = field(default_factory=Counter)
    evictions: tuple[Eviction, ...] = ()
    evictions_total: int = 0
    evicted_gangs: int = 0
    evicted_gpu_seconds: float = 0.0
    evictions_unmeasured: int = 0
    churners: tuple[tuple[GangFacts, int], ...] = ()
    churners_total: int = 0
    unseen_evictions: int = 0
    flappers: tuple[Flapper, ...] = ()
    flappers_total: int = 0

    @property
    def gpu_seconds(self) -> float:
        return sum(code.gpu_seconds for code in self.codes)


class WaitTally:
    """Sums the timelines of one gang after the other."""

    def __init__(self, period: Period) -> None:
        self.period = period
        self._start, self._end = period.start.timestamp(), period.end.timestamp()
        self._before, self._step = period.before.timestamp(), period.step.total_seconds()
        self._waited: dict[tuple[str, str], float] = defaultdict(float)
        self._waited_before: dict[tuple[str, str], float] = defaultdict(float)
        self._code_gangs: Counter[tuple[str, str]] = Counter()
        self._levels: dict[str, list[float]] = {}
        self._demand: dict[str, int] = defaultdict(int)
        self._opened: Counter[str] = Counter()
        self._rows = self._gangs = 0
        self._evicted: list[Eviction] = []
        self._evictions = self._evicted_gangs = self._unmeasured = self._unseen = 0
        self._lost = 0.0
        self._churners: list[tuple[GangFacts, int]] = []
        self._churning = 0
        self._flappers: list[Flapper] = []
        self._flapping = 0

    def add(self, gang: GangFacts, rows: Iterable[Row], *, lost_at: datetime | None = None) -> None:
        """Add one gang; ``lost_at`` is when it last fell below its minimum, by its attempt."""
        codes: set[tuple[str, str]] = set()
        changed: list[float] = []
        evictions: list[Eviction] = []
        demand = 0
        placed_since: float | None = None
        ended: float | None = None
        for _, verdict, code, state, gpus, opened_at, closed_at in rows:
            opened = opened_at.timestamp()
            closed = self._end if closed_at is None else min(closed_at.timestamp(), self._end)
            if opened >= self._start:
                self._opened[code] += 1
                if ended is not None:
                    changed.append(opened)
                if verdict == Verdict.EVICTED:
                    ran = opened - placed_since if placed_since is not None and ended == opened else None
                    evictions.append(Eviction(gang, code, opened_at, ran))
            self._rows += closed > self._start
            if state == GangState.WAITS:
                placed_since = None
                demand |= self._wait(verdict, code, gpus, opened, closed) if gpus > 0 else 0
                if closed > self._start:
                    codes.add((verdict, code))
            elif placed_since is None or ended != opened:
                placed_since = opened
            ended = closed
        self._code_gangs.update(codes)
        self._gangs += bool(codes)
        self._demand[gang.queue] |= demand
        self._add_evictions(gang, evictions, lost_at)
        self._add_flapping(gang, changed)

    def _wait(self, verdict: str, code: str, gpus: float, opened: float, closed: float) -> int:
        """Add one stretch of waiting; return the steps in which it asks for capacity as a mask of bits."""
        key = (verdict, code)
        if opened < self._start:
            before = min(closed, self._start) - max(opened, self._before)
            if before > 0:
                self._waited_before[key] += before * gpus
            opened = self._start
        if closed <= opened:
            return 0
        self._waited[key] += (closed - opened) * gpus
        levels = self._levels.get(verdict)
        if levels is None:
            levels = self._levels[verdict] = [0.0] * self.period.steps
        step, base = self._step, self._start
        first = int((opened - base) / step)
        last = max(first, min(int((closed - base - 1e-6) / step), len(levels) - 1))
        if first == last:
            levels[first] += (closed - opened) * gpus
        else:
            levels[first] += (base + (first + 1) * step - opened) * gpus
            for number in range(first + 1, last):
                levels[number] += step * gpus
            levels[last] += (closed - base - last * step) * gpus
        return 0 if verdict in NO_DEMAND else (1 << (last + 1)) - (1 << first)

    def _add_evictions(self, gang: GangFacts, evictions: list[Eviction], lost_at: datetime | None) -> None:
        if not evictions:
            self._unseen += lost_at is not None and self.period.start <= lost_at < self.period.end
            return
        self._evictions += len(evictions)
        self._evicted_gangs += 1
        lost = [eviction.gpu_seconds for eviction in evictions]
        self._lost += sum(seconds for seconds in lost if seconds is not None)
        self._unmeasured += sum(seconds is None for seconds in lost)
        self._evicted = _newest([*self._evicted, *evictions])
        if len(evictions) > 1:
            self._churning += 1
            self._churners = _most([*self._churners, (gang, len(evictions))])

    def _add_flapping(self, gang: GangFacts, changed: Sequence[float]) -> None:
        most, at = most_within(changed, FLAP_WINDOW.total_seconds())
        if most < FLAP_CHANGES:
            return
        self._flapping += 1
        moment = self.period.start + timedelta(seconds=at - self._start)
        self._flappers.append(Flapper(gang, most, moment))
        if len(self._flappers) > 2 * KEPT:
            self._flappers = _worst(self._flappers)

    def result(self) -> WaitFacts:
        """Return the sums."""
        return WaitFacts(
            rows=self._rows,
            gangs=self._gangs,
            codes=tuple(self._code_waits()),
            levels={verdict: self._means(sums) for verdict, sums in self._levels.items()},
            demand={queue: _bits(mask) for queue, mask in sorted(self._demand.items()) if mask},
            opened=self._opened,
            evictions=tuple(_newest(self._evicted)),
            evictions_total=self._evictions,
            evicted_gangs=self._evicted_gangs,
            evicted_gpu_seconds=self._lost,
            evictions_unmeasured=self._unmeasured,
            churners=tuple(self._churners),
            churners_total=self._churning,
            unseen_evictions=self._unseen,
            flappers=tuple(_worst(self._flappers)),
            flappers_total=self._flapping,
        )

    def _code_waits(self) -> Iterator[CodeWait]:
        for key in sorted({*self._waited, *self._waited_before, *self._code_gangs}):
            yield CodeWait(*key, self._waited.get(key, 0.0), self._code_gangs[key], self._waited_before.get(key, 0.0))

    def _means(self, sums: Sequence[float]) -> tuple[float, ...]:
        return tuple(total / self.period.step_seconds(number) for number, total in enumerate(sums))


def most_within(moments: Sequence[float], window: float) -> tuple[int, float]:
    """Return the most moments that lie within one window, and the first of them; 0 and 0 where there are none."""
    inside: deque[float] = deque()
    best, at = 0, 0.0
    for moment in moments:
        inside.append(moment)
        while moment - inside[0] > window:
            inside.popleft()
        if len(inside) > best:
            best, at = len(inside), inside[0]
    return best, at


def _bits(mask: int) -> frozenset[int]:
    return frozenset(number for number in range(mask.bit_length()) if mask >> number & 1)


def _newest(evictions: list[Eviction]) -> list[Eviction]:
    return sorted(evictions, key=lambda eviction: (eviction.at, eviction.gang.pk), reverse=True)[:KEPT]


def _most(churners: list[tuple[GangFacts, int]]) -> list[tuple[GangFacts, int]]:
    return sorted(churners, key=lambda churner: (-churner[1], churner[0].pk))[:KEPT]


def _worst(flappers: list[Flapper]) -> list[Flapper]:
    return sorted(flappers, key=lambda flapper: (-flapper.changes, flapper.gang.pk))[:KEPT]


def wait_facts(period: Period) -> WaitFacts:
    """Read and sum the timelines of one span and of the one before it."""
    tally = WaitTally(period)
    for gangs in _gang_parts(period):
        rows = groupby(_rows(period, list(gangs)), key=itemgetter(0))
        lost = dict(Attempt.objects.filter(gang__in=list(gangs), evictions__gt=0).values_list("gang", "evicted_at"))
        for pk, of_gang in rows:
            tally.add(gangs[pk], of_gang, lost_at=lost.get(pk))
    return tally.result()


def _gang_parts(period: Period) -> Iterator[dict[int, GangFacts]]:
    """Yield the gangs that were there in the span or in the one before, some at a time in the order of their keys."""
    gangs = Gang.objects.filter(Q(gone_at=None) | Q(gone_at__gt=period.before), cluster=period.cluster_id)
    gangs = gangs.filter(first_seen_at__lt=period.end).order_by("pk")
    last = 0
    while True:
        part = gangs.filter(pk__gt=last)[:GANGS_AT_ONCE]
        found = {row[0]: GangFacts(*row) for row in part.values_list("pk", "uid", "namespace", "name", "queue", "gpus")}
        if not found:
            return
        yield found
        last = max(found)


def _rows(period: Period, gangs: list[int]) -> Iterator[Row]:
    rows = ReasonTimeline.objects.filter(
        Q(closed_at=None) | Q(closed_at__gt=period.before), gang__in=gangs, opened_at__lt=period.end
    ).order_by("gang_id", "opened_at")
    columns = ("gang_id", "verdict", "code", "state", "gpus", "opened_at", "closed_at")
    yield from rows.values_list(*columns).iterator(ROWS_AT_ONCE)
