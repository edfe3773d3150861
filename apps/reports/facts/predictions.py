"""Estimates for those who wait, and how estimates made in the span turned out, from what is kept of past runs.

A holder's like are the earlier attempts of its lineage; where there are none, runs of its namespace in its queue, if
there are enough of them. Runs that evictions ended are no history: they say nothing of how long the work takes.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import OuterRef, Subquery

from apps.clusters.models import Cluster
from apps.diagnosis.models import ExplanationRecord
from apps.reports.facts.period import Period
from apps.reports.facts.waiting import HELD_CODES, Told, WaitingFacts, WaitingGang, told_decode
from apps.reports.prediction import Calibration, Estimate, HolderRun, NoEstimate, calibrate, estimate
from apps.workloads.models import Attempt
from gangdash.engine.identifiers import Unit

RUNS_KEPT = 20_000
TEAM_RUNS_LEAST = 5
"""Fewer runs of a namespace say nothing of the next one."""
ESTIMATED = 50
CASES = 200
"""Of those who wait, and of past starts, the first so many."""
CANDIDATES = 500
"""Of past starts, so many are looked at for an explanation from before."""
NAMES_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class PredictionFacts:
    """Those who wait for holders with their estimates, costliest first, and the error of past ones.

    ``total`` counts all who wait for holders, ``others`` those who wait for something else.
    """

    gangs: tuple[tuple[WaitingGang, Estimate | NoEstimate], ...] = ()
    total: int = 0
    others: int = 0
    past: Calibration = field(default_factory=lambda: Calibration(0, 0))


@dataclass(frozen=True, slots=True)
class _Holder:
    lineage: str
    team: tuple[str, str]
    bound_at: datetime
    ended_at: datetime | None


@dataclass(slots=True)
class History:
    """Past runs by lineage and by namespace and queue, each as sorted ends with the seconds that the run took."""

    lineages: dict[str, list[tuple[datetime, float]]] = field(default_factory=lambda: defaultdict(list))
    teams: dict[tuple[str, str], list[tuple[datetime, float]]] = field(default_factory=lambda: defaultdict(list))

    def runs(self, holder: _Holder, at: datetime) -> tuple[float, ...]:
        """Return how long the like of a holder had run by a moment."""
        own = _until(self.lineages.get(holder.lineage, ()), at)
        team = _until(self.teams.get(holder.team, ()), at)
        return own or (team if len(team) >= TEAM_RUNS_LEAST else ())


def _until(runs: Sequence[tuple[datetime, float]], at: datetime) -> tuple[float, ...]:
    return tuple(seconds for _, seconds in runs[: bisect.bisect_right(runs, (at, float("inf")))])


def prediction_facts(cluster: Cluster, period: Period, waiting: WaitingFacts) -> PredictionFacts:
    """Return the estimates of one moment and the error of those of the span before it."""
    held = waiting.held[:ESTIMATED]
    history = run_history(cluster, period.end)
    cases = list(_past_cases(cluster, period))
    told = [*(gang.told for gang in held if gang.told), *(told for told, _, _, _ in cases)]
    holders = holders_named(cluster, {holder.gang for item in told for holder in item.holders})
    return PredictionFacts(
        gangs=tuple((gang, _estimate(gang.told, gang.gpus, period.end, holders, history)) for gang in held
                    if gang.told),
        total=waiting.held_total,
        others=waiting.total - waiting.held_total,
        past=calibrate([(_estimate(told, gpus, at, holders, history), took) for told, gpus, at, took in cases]),
    )  # fmt: skip


def _estimate(
    told: Told, gpus: float, at: datetime, holders: dict[str, list[_Holder]], history: History
) -> Estimate | NoEstimate:
    runs = []
    for entry in told.holders:
        holder = _held_at(holders.get(entry.gang, ()), at)
        age = (at - holder.bound_at).total_seconds() if holder else 0.0
        runs.append(HolderRun(entry.gpus, age, history.runs(holder, at) if holder else ()))
    return estimate(short_of(told, gpus), runs)


def short_of(told: Told, gpus: float) -> float:
    """Return the GPUs that have to become free: what the first constraint lacks, else all that wait."""
    first = told.binding[0] if told.binding else None
    if first is None or first.unit is not Unit.GPU or isinstance(first.need, str):
        return gpus
    return gpus if first.have is None or isinstance(first.have, str) else max(first.need - first.have, 0.0)


def _held_at(found: Iterable[_Holder], at: datetime) -> _Holder | None:
    """Return the gang that had a name and nodes at a moment."""
    return next((h for h in found if h.bound_at <= at and (h.ended_at is None or h.ended_at > at)), None)


def run_history(cluster: Cluster, until: datetime) -> History:
    """Return the newest runs that ended by themselves up to a moment."""
    rows = Attempt.objects.filter(cluster=cluster, ended_at__lte=until, bound_at__isnull=False, evictions=0)
    columns = ("lineage", "gang__namespace", "gang__queue", "bound_at", "ended_at")
    history = History()
    newest = rows.order_by("-ended_at", "-pk").values_list(*columns)[:RUNS_KEPT]
    for lineage, namespace, queue, bound_at, ended_at in reversed(newest):
        run = (ended_at, (ended_at - bound_at).total_seconds())
        history.lineages[lineage].append(run)
        history.teams[namespace, queue].append(run)
    return history


def holders_named(cluster: Cluster, names: set[str]) -> dict[str, list[_Holder]]:
    """Return by ``namespace/name`` the gangs that have had nodes under it."""
    found: dict[str, list[_Holder]] = defaultdict(list)
    ordered = sorted(names)
    for first in range(0, len(ordered), NAMES_AT_ONCE):
        part = {name.partition("/")[::2] for name in ordered[first : first + NAMES_AT_ONCE]}
        rows = Attempt.objects.filter(
            cluster=cluster, bound_at__isnull=False,
            gang__namespace__in={namespace for namespace, _ in part}, gang__name__in={name for _, name in part},
        )  # fmt: skip
        columns = ("gang__namespace", "gang__name", "lineage", "gang__queue", "bound_at", "ended_at")
        for namespace, name, lineage, queue, bound_at, ended_at in rows.order_by("pk").values_list(*columns):
            if (namespace, name) in part:
                found[f"{namespace}/{name}"].append(_Holder(lineage, (namespace, queue), bound_at, ended_at))
    return found


def _past_cases(cluster: Cluster, period: Period) -> Iterator[tuple[Told, float, datetime, float]]:
    """Yield explanations that gangs had before they got their nodes in the span: GPUs, moment, seconds it took."""
    before = ExplanationRecord.objects.filter(
        gang=OuterRef("gang"), opens_timeline=True, code__in=sorted(HELD_CODES),
        snapshot__as_of__lt=OuterRef("bound_at"),
    )  # fmt: skip
    bound = Attempt.objects.filter(
        cluster=cluster, bound_at__gte=period.start, bound_at__lt=period.end, gang__gpus__gt=0
    ).order_by("-bound_at", "-pk")
    # The newest are picked first: looking for an explanation of every start of a busy week takes seconds.
    newest = Attempt.objects.filter(pk__in=list(bound.values_list("pk", flat=True)[:CANDIDATES]))
    cases = newest.annotate(record=Subquery(before.order_by("snapshot__as_of", "pk").values("pk")[:1]))
    rows = cases.order_by("-bound_at", "-pk").values_list("record", "bound_at", "gang__gpus")
    before_all = [(record, at, gpus or 0.0) for record, at, gpus in rows if record is not None and at is not None]
    found = {record: (at, gpus) for record, at, gpus in before_all[:CASES]}
    records = ExplanationRecord.objects.filter(pk__in=list(found)).order_by("pk")
    for pk, document, at in records.values_list("pk", "document", "snapshot__as_of"):
        told, (bound_at, gpus) = told_decode(document), found[pk]
        if told.holders:
            yield told, gpus, at, (bound_at - at).total_seconds()
