"""Writes down what rules need of the past and no other table keeps: how the scheduler's words compare, what queues may
use, and why a cluster is not to be trusted.

Run twice for the same moment it changes nothing; only changes are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import msgspec
from django.db import transaction
from django.db.models import Q

from apps.alerts.models import AlertClock, Observation
from apps.alerts.rules.blindness import ANALYSIS, KIND, OPTIONAL, POLL, SKEW
from apps.alerts.rules.facts import Topic, queue_value
from apps.clusters.choices import Freshness
from apps.clusters.models import Cluster, KindFreshness
from apps.clusters.selectors import BLIND_POLLS, freshness_state
from apps.diagnosis.choices import AnalysisOutcome
from apps.diagnosis.models import ExplanationRecord, Snapshot
from apps.inventory.models import Queue
from apps.workloads.choices import GangState
from gangdash.engine.verdict import Match

BATCH = 500
SKEW_MOST = timedelta(seconds=30)
"""A clock that differs by more makes ages wrong enough to mislead."""
NOT_SERVED = "not served"
_KEPT_STANCES = frozenset({Match.SILENT, Match.DISAGREE, Match.STALE})


class _Scheduler(msgspec.Struct):
    match: str = ""


class _Stance(msgspec.Struct):
    """The one part of an explanation that is read here."""

    scheduler: _Scheduler = msgspec.field(default_factory=_Scheduler)


_decode = msgspec.json.Decoder(_Stance).decode


def cluster_observe(*, cluster: Cluster, clock: AlertClock, now: datetime) -> None:
    """Write down what changed in one cluster."""
    blind = dict(_blind(cluster, now))
    with transaction.atomic():
        _write(cluster, Topic.BLIND, blind, now)
        if POLL not in blind and Queue.objects.filter(cluster=cluster).exists():
            _write(cluster, Topic.QUEUE, dict(_queues(cluster)), now)
        newest = (
            Snapshot.objects.filter(cluster=cluster, outcome=AnalysisOutcome.DONE).order_by("-as_of", "-pk").first()
        )
        if newest is not None and newest.pk != clock.observed_snapshot:
            _write(cluster, Topic.STANCE, dict(_stances(cluster)), now)
            AlertClock.objects.filter(pk=clock.pk).update(observed_snapshot=newest.pk)


def _write(cluster: Cluster, topic: Topic, found: Mapping[str, str], now: datetime) -> None:
    """Close what is otherwise now and open what is new; another writer of the same moment loses nothing."""
    rows = Observation.objects.filter(cluster=cluster, topic=topic, closed_at=None)
    standing = {row.subject: row for row in rows}
    ended = [row.pk for subject, row in standing.items() if found.get(subject) != row.value]
    for start in range(0, len(ended), BATCH):
        Observation.objects.filter(pk__in=ended[start : start + BATCH], closed_at=None).update(closed_at=now)
    new = [
        Observation(cluster=cluster, topic=topic, subject=subject, value=value, opened_at=now)
        for subject, value in found.items()
        if subject not in standing or standing[subject].value != value
    ]
    Observation.objects.bulk_create(new, BATCH, ignore_conflicts=True)


def _queues(cluster: Cluster) -> Iterator[tuple[str, str]]:
    rows = Queue.objects.filter(cluster=cluster).values_list("name", "parent", "gpu_quota", "gpu_limit")
    for name, parent, quota, limit in rows:
        yield name, queue_value(parent=parent, quota=quota, limit=limit)[:300]


def _stances(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield by gang uid how the scheduler's words compare, where that is worth keeping."""
    records = ExplanationRecord.objects.filter(
        gang__cluster=cluster, gang__gone_at=None, gang__state__in=[GangState.WAITS, GangState.TELLS], is_current=True
    )
    for uid, document in records.order_by().values_list("gang__uid", "document").iterator(BATCH):
        stance = _decode(document.encode()).scheduler.match
        if stance in _KEPT_STANCES:
            yield uid, stance


def _blind(cluster: Cluster, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield what makes a cluster's data doubtful now, with the reason in words."""
    if freshness_state(cluster=cluster, now=now) == Freshness.BLIND:
        yield POLL, f"No reading for more than {BLIND_POLLS} polls{_because(cluster.fault)}"
    # A first attempt that still runs has not answered yet; a repeated one has failed before.
    answered = Snapshot.objects.filter(cluster=cluster).exclude(outcome=AnalysisOutcome.SUPERSEDED)
    answered = answered.exclude(outcome=AnalysisOutcome.RUNNING, attempts=1)
    newest = answered.order_by("-started_at", "-pk").first()
    if newest is not None and newest.outcome != AnalysisOutcome.DONE:
        yield ANALYSIS, f"The newest analysis failed{_because(newest.detail)}"
    yield from _kinds(cluster)
    if cluster.skew_seconds is not None and abs(cluster.skew_seconds) > SKEW_MOST.total_seconds():
        direction = "ahead of" if cluster.skew_seconds > 0 else "behind"
        yield SKEW, f"Its clock is more than {SKEW_MOST.total_seconds():g} s {direction} this one"


def _because(fault: str) -> str:
    return f": {fault[:200]}" if fault else ""


def _kinds(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield kinds that are refused or fail.

    One that a cluster does not serve is a fact about it, unless verdicts rest on it or it was read before.
    """
    rows = KindFreshness.objects.filter(cluster=cluster, is_read=False).exclude(reason="")
    never_there = Q(reason__startswith=NOT_SERVED, is_required=False, read_at=None)
    for kind, is_required, reason in rows.exclude(never_there).values_list("kind", "is_required", "reason"):
        yield f"{KIND if is_required else OPTIONAL}{kind}", f"{kind} is not read: {reason}"[:300]
