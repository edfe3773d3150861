"""Reads of gangs and pods, always inside what the reader may see.

Lists show gangs that still exist in clusters that are read; one gang is found also after it is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_

from django.db.models import Count, F, Max, Q, QuerySet, Sum

from apps.accounts.scope import Scope
from apps.clusters.models import Cluster
from apps.workloads.choices import GangState
from apps.workloads.models import Attempt, Gang, Pod
from gangdash.engine.verdict import Verdict

# The order of charts, legends and tiles: what a person can act on first, what needs nobody last.
VERDICT_ORDER: tuple[str, ...] = tuple(
    str(verdict)
    for verdict in (
        Verdict.NO_FIT,
        Verdict.NODE,
        Verdict.POLICY,
        Verdict.CONFIG,
        Verdict.GATED,
        Verdict.STUCK,
        Verdict.EVICTED,
        Verdict.PARTIAL,
        Verdict.VIOLATED,
        Verdict.STARTING,
        Verdict.WILL_START,
        Verdict.NO_VERDICT,
        Verdict.HEALTHY,
    )
)
NUL = "\x00"
"""A character that no name has and PostgreSQL refuses to look for."""
LOOP_WINDOW = timedelta(hours=2)
LOOP_TIMES = 3
"""So many failed attempts, or evictions, within the window are a loop."""
_LISTED = (
    "cluster__name", "uid", "kind", "namespace", "name", "queue", "shape", "gpus_waiting", "pods_waiting", "verdict",
    "code", "who", "certainty", "sentence", "subject", "waiting_since", "diagnosed_as_of",
)  # fmt: skip
"""Columns of the list that waits: thousands of rows are read for it, and the other half of each is not shown."""
ORDERINGS = ("waiting_since", "gpus", "gpus_waiting", "queue", "namespace", "name", "verdict", "created_at")
"""What lists may be sorted by; a leading minus reverses it."""


@dataclass(frozen=True, slots=True)
class GangFilter:
    """One view of the list. Each tuple means any of; empty means all. ``text`` matches parts of names."""

    cluster: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    who: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    text: str = ""

    def condition(self, *, verdicts: str = "") -> Q:
        """Return what rows must meet; ``verdicts`` is put before the names of the verdict columns."""
        fields = {
            "cluster__name": self.cluster,
            "namespace": self.namespace,
            "queue": self.queue,
            f"{verdicts}verdict": self.verdict,
            f"{verdicts}code": self.code,
            f"{verdicts}who": self.who,
            f"{verdicts}state": self.state,
        }
        condition = Q(**{f"{field}__in": values for field, values in fields.items() if values})
        for word in self.text.split():
            condition &= _matches(word, code=f"{verdicts}code")
        return condition


@dataclass(frozen=True, slots=True)
class WaitingTotals:
    """Numbers of the headline; ``gangs`` counts all that exist in the same view."""

    gangs: int
    waiting: int
    gpus_waiting: float
    telling: int
    undiagnosed: int


@dataclass(frozen=True, slots=True)
class WhoTile:
    """What one kind of person has to act on; ``subjects`` are the objects to touch, most GPUs first."""

    who: str
    gangs: int
    gpus: float
    subjects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Waiting gangs with one verdict, code and object; members in the order of the list."""

    verdict: str
    code: str
    subject: str
    who: str
    gpus: float
    since: datetime | None
    gangs: tuple[Gang, ...]

    @property
    def key(self) -> str:
        return f"{self.verdict}|{self.code}|{self.subject}"


@dataclass(frozen=True, slots=True)
class AttemptLoop:
    """The newest gang of a lineage with what happened to it and those before it within the last hours."""

    gang: Gang
    failures: int
    evictions: int


def gang_all(*, scope: Scope) -> QuerySet[Gang]:
    """Return every visible gang, gone ones and those of removed clusters too."""
    return Gang.objects.filter(scope.namespace_filter()).select_related("cluster")


def gang_list(*, scope: Scope, view: GangFilter | None = None) -> QuerySet[Gang]:
    """Return the gangs that exist now in clusters that are read."""
    gangs = gang_all(scope=scope).filter(gone_at=None, cluster__is_read=True)
    return gangs.filter(view.condition()) if view else gangs


def gang_waiting_list(*, scope: Scope, view: GangFilter | None = None) -> QuerySet[Gang]:
    """Return the gangs that wait, longest first."""
    gangs = gang_list(scope=scope, view=view).filter(state=GangState.WAITS)
    return gangs.order_by(F("waiting_since").asc(nulls_last=True), "pk")


def gang_get(*, scope: Scope, public_id: str) -> Gang:
    """Return one gang by its stable id; ``Gang.DoesNotExist`` where it is not there or not visible."""
    cluster, _, uid = public_id.rpartition("~")
    if NUL in public_id:
        raise Gang.DoesNotExist
    return gang_all(scope=scope).get(cluster__name=cluster, uid=uid)


def gang_by_name(*, scope: Scope, cluster: str, namespace: str, name: str) -> Gang:
    """Return the gang of this name that exists, else the one gone last; ``Gang.DoesNotExist`` if none was seen."""
    if NUL in cluster + namespace + name:
        raise Gang.DoesNotExist
    named = gang_all(scope=scope).filter(cluster__name=cluster, namespace=namespace, name=name)
    gang = named.order_by(F("gone_at").desc(nulls_first=True), "-first_seen_at", "-pk").first()
    if gang is None:
        raise Gang.DoesNotExist
    return gang


def pod_list(*, gang: Gang) -> QuerySet[Pod]:
    """Return the pods of a gang by name."""
    return Pod.objects.filter(gang=gang)


def attempt_list(*, gang: Gang) -> QuerySet[Attempt]:
    """Return the attempts at what a gang is one of, oldest first: the gang's own and those before and after it."""
    lineages = Attempt.objects.filter(gang=gang).values("lineage")
    found = Attempt.objects.filter(cluster=gang.cluster_id, lineage__in=lineages)
    return found.select_related("gang__cluster").order_by("seen_at", "pk")


def loop_list(*, scope: Scope, now: datetime, cluster: str = "") -> list[AttemptLoop]:
    """Return what fails again and again: many attempts that ended unready, or one that keeps being evicted."""
    visible = scope.namespace_filter(cluster_field="gang__cluster__name", namespace_field="gang__namespace")
    attempts = Attempt.objects.filter(visible, **({"cluster__name": cluster} if cluster else {}))
    found = _loops(attempts, now)
    gangs = gang_all(scope=scope).filter(pk__in=list(found)).order_by("cluster", "namespace", "name", "pk")
    return [AttemptLoop(gang, *found[gang.pk]) for gang in gangs]


def loop_get(*, gang: Gang, now: datetime) -> AttemptLoop | None:
    """Return the loop that a gang is an attempt of, None where there is none; with the gang itself as its newest."""
    found = list(_loops(Attempt.objects.filter(pk__in=attempt_list(gang=gang).values("pk")), now).values())
    return AttemptLoop(gang, *found[0]) if found else None


def evictions_by_gang(*, cluster: Cluster, now: datetime) -> dict[str, tuple[float, ...]]:
    """Return by uid of each open gang when it, and the attempts before it, lost their nodes within the window.

    In seconds of the epoch, oldest first; gangs of which none did are left out.
    """
    since = (now - LOOP_WINDOW).timestamp()
    lost: dict[str, list[float]] = {}
    rows = Attempt.objects.filter(cluster=cluster, evicted_at__gte=now - LOOP_WINDOW)
    for lineage, times in rows.values_list("lineage", "eviction_times"):
        lost.setdefault(lineage, []).extend(moment for moment in times if moment >= since)
    going_on = Attempt.objects.filter(cluster=cluster, ended_at=None, lineage__in=list(lost))
    return {uid: tuple(sorted(lost[lineage])) for uid, lineage in going_on.values_list("gang__uid", "lineage")}


def _loops(attempts: QuerySet[Attempt], now: datetime) -> dict[int, tuple[int, int]]:
    """Return failures and evictions within the window by the newest gang of each lineage that is in a loop."""
    since = now - LOOP_WINDOW
    rows = attempts.filter(Q(ended_at__gte=since, ready_at=None) | Q(evicted_at__gte=since)).order_by("gang")
    found: dict[tuple[int, str], tuple[int, int]] = {}
    for attempt in rows:
        key = (attempt.cluster_id, attempt.lineage)
        failures, lost = found.get(key, (0, 0))
        has_failed = attempt.ended_at is not None and attempt.ended_at >= since and attempt.ready_at is None
        lost += sum(moment >= since.timestamp() for moment in attempt.eviction_times)
        found[key] = (failures + has_failed, lost)
    loops = {key: counts for key, counts in found.items() if max(counts) >= LOOP_TIMES}
    newest = attempts.filter(lineage__in=[lineage for _, lineage in loops]).order_by()
    gangs = newest.values("cluster", "lineage").annotate(newest=Max("gang"))
    by_key = {(row["cluster"], row["lineage"]): row["newest"] for row in gangs}
    return {by_key[key]: counts for key, counts in loops.items()}


def waiting_totals(*, scope: Scope, view: GangFilter | None = None) -> WaitingTotals:
    """Return the numbers of the headline; one query."""
    waits = Q(state=GangState.WAITS)
    sums = gang_list(scope=scope, view=view).aggregate(
        gangs=Count("pk"),
        waiting=Count("pk", filter=waits),
        gpus_waiting=Sum("gpus_waiting", filter=waits, default=0.0),
        telling=Count("pk", filter=Q(state=GangState.TELLS)),
        undiagnosed=Count("pk", filter=Q(state=GangState.UNKNOWN)),
    )
    return WaitingTotals(**sums)


def who_tiles(*, scope: Scope, view: GangFilter | None = None) -> list[WhoTile]:
    """Return who has to act on how much, most GPUs first; one query."""
    rows = (
        gang_waiting_list(scope=scope, view=view)
        .order_by()
        .values("who", "subject")
        .annotate(gangs=Count("pk"), gpus=Sum("gpus_waiting"))
        .order_by("-gpus", "subject")
    )
    found: dict[str, list[tuple[str, int, float]]] = {}
    for row in rows:
        found.setdefault(row["who"], []).append((row["subject"], row["gangs"], row["gpus"] or 0.0))
    tiles = [
        WhoTile(
            who=who,
            gangs=sum(gangs for _, gangs, _ in parts),
            gpus=sum(gpus for _, _, gpus in parts),
            subjects=tuple(subject for subject, _, _ in parts if subject),
        )
        for who, parts in found.items()
    ]
    return sorted(tiles, key=lambda tile: (-tile.gpus, tile.who))


def cause_groups(*, scope: Scope, view: GangFilter | None = None) -> list[CauseGroup]:
    """Return the waiting gangs grouped by cause, most GPUs first; one query."""
    found: dict[tuple[str, str, str], list[Gang]] = {}
    for gang in gang_waiting_list(scope=scope, view=view).only(*_LISTED):
        found.setdefault((gang.verdict, gang.code, gang.subject), []).append(gang)
    groups = [
        CauseGroup(
            verdict=verdict,
            code=code,
            subject=subject,
            who=gangs[0].who,
            gpus=sum(gang.gpus_waiting or 0.0 for gang in gangs),
            since=min((gang.waiting_since for gang in gangs if gang.waiting_since), default=None),
            gangs=tuple(gangs),
        )
        for (verdict, code, subject), gangs in found.items()
    ]
    return sorted(groups, key=lambda group: (-group.gpus, group.key))


def filter_choices(*, scope: Scope) -> dict[str, list[str]]:
    """Return the values that the list's filters can take now, sorted, per filter; empty values are left out."""
    gangs = gang_list(scope=scope)
    fields = {"cluster": "cluster__name", "namespace": "namespace", "queue": "queue", "verdict": "verdict"}
    fields |= {"code": "code", "who": "who"}
    found: dict[str, set[str]] = {name: set() for name in fields}
    for row in gangs.order_by().values(*fields.values()).distinct():
        for name, field in fields.items():
            found[name].add(row[field])
    return {name: sorted(values - {""}) for name, values in found.items()}


def _matches(word: str, *, code: str) -> Q:
    fields = ("namespace", "name", "queue", "owner", code, "uid")
    return reduce(or_, (Q(**{f"{field}__icontains": word}) for field in fields))
