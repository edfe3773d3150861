"""Which moment is to be analysed, who may do it, and the analysis itself.

The duty is in the rows: a cluster is due when its newest reading has no finished analysis by this engine. A task that
is lost or runs twice changes nothing: the lock is a unique row, a lost one ends by time, results are written once.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
import structlog
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F

from apps.clusters.models import Cluster
from apps.collector.models import Reading
from apps.collector.packing import unpacked
from apps.collector.selectors import reading_newest
from apps.diagnosis.choices import AnalysisOutcome
from apps.diagnosis.models import ExplanationRecord, Snapshot
from apps.diagnosis.services.history import history_of
from apps.diagnosis.services.recording import results_record
from apps.diagnosis.services.retention import readings_prune
from gangdash import __version__
from gangdash.documents import ExplanationDocument
from gangdash.replay import replay
from gangdash.snapshot.archive import snapshot_of

logger = structlog.get_logger(__name__)

RECHECK_LEAST = timedelta(seconds=30)
"""The same content is analysed again after this long while something waits: some verdicts turn with time alone."""
RECHECK_SHARE = 4
"""... but an analysis never takes more than a quarter of the time on an unchanged cluster."""
RETRY_FIRST = timedelta(seconds=30)
RETRY_MAX = timedelta(minutes=15)
LOST_SLACK = timedelta(seconds=60)
"""Beyond the time limit, before a running analysis counts as lost."""


@dataclass(frozen=True, slots=True)
class Due:
    """What to analyse next for one cluster."""

    cluster: Cluster
    reading: Reading
    as_of: datetime


def analyses_due(*, now: datetime) -> list[Due]:
    """Return what is due, the cluster with the oldest verdicts first."""
    clusters = Cluster.objects.filter(is_read=True).order_by(F("diagnosed_as_of").asc(nulls_first=True), "pk")
    found = (analysis_due(cluster=cluster, now=now) for cluster in clusters)
    return [due for due in found if due is not None]


def analysis_due(*, cluster: Cluster, now: datetime) -> Due | None:
    """Return what is due for one cluster: the newest reading, unless it was answered or an attempt is under way."""
    reading = reading_newest(cluster=cluster)
    last = Snapshot.objects.filter(cluster=cluster, engine=__version__).order_by("-as_of", "-pk").first()
    if reading is None or (last is not None and _is_answered(last, reading, now)):
        return None
    return Due(cluster, reading, reading.confirmed_at)


def _is_answered(last: Snapshot, reading: Reading, now: datetime) -> bool:
    if last.outcome in {AnalysisOutcome.RUNNING, AnalysisOutcome.FAILED}:
        return last.retry_at is not None and last.retry_at > now
    if last.reading_id != reading.pk:
        return False
    took = (last.ended_at or last.started_at) - last.started_at
    return not last.waiting or reading.confirmed_at - last.as_of < max(RECHECK_LEAST, took * RECHECK_SHARE)


def analysis_claim(*, due: Due, now: datetime) -> Snapshot | None:
    """Take the moment for analysis; None where someone else has the cluster or the reading is gone."""
    hold = timedelta(seconds=settings.GANGDASH_ANALYSIS_SECONDS) + LOST_SLACK
    try:
        with transaction.atomic():
            _close_lost(due.cluster, now)
            if not Reading.objects.filter(pk=due.reading.pk).update(claimed_at=now):
                return None
            return _open(due, now, now + hold)
    except IntegrityError:
        return None


def _open(due: Due, now: datetime, lost_at: datetime) -> Snapshot:
    """Insert the row that is the lock, or reopen a failed one of the same moment with the history it had."""
    snapshot, is_new = Snapshot.objects.select_for_update().get_or_create(
        cluster=due.cluster,
        as_of=due.as_of,
        engine=__version__,
        defaults={
            "reading": due.reading,
            "history": history_of(cluster=due.cluster, now=due.as_of),
            "started_at": now,
            "retry_at": lost_at,
        },
    )
    if not is_new:
        if snapshot.outcome != AnalysisOutcome.FAILED:
            raise IntegrityError("this moment was analysed")
        snapshot.outcome, snapshot.started_at, snapshot.retry_at = AnalysisOutcome.RUNNING, now, lost_at
        snapshot.attempts, snapshot.detail, snapshot.ended_at = snapshot.attempts + 1, "", None
        snapshot.save()
    return snapshot


def _close_lost(cluster: Cluster, now: datetime) -> None:
    """Close an analysis whose worker is gone; its lock ends here."""
    running = Snapshot.objects.filter(cluster=cluster, outcome=AnalysisOutcome.RUNNING, retry_at__lte=now)
    running.update(outcome=AnalysisOutcome.FAILED, ended_at=now, detail="The worker ended before the analysis did.")


def analysis_run(*, snapshot: Snapshot) -> AnalysisOutcome:
    """Replay a claimed moment and write what it says; the newest moment wins over one that took longer."""
    if snapshot.reading is None:
        raise LookupError("the reading of this moment is gone")
    reading = unpacked(
        reading=snapshot.reading, as_of=snapshot.as_of, history=snapshot.history, name=snapshot.cluster.name
    )
    diagnosis = replay(snapshot_of(reading), include_all=True, known=_known(snapshot))
    outcome = results_record(snapshot=snapshot, diagnosis=diagnosis, now=datetime.now(UTC))
    readings_prune(cluster=snapshot.cluster, now=datetime.now(UTC))
    logger.info(
        "analysis_done",
        cluster=snapshot.cluster.name,
        digest=diagnosis.digest,
        outcome=outcome,
        gangs=len(diagnosis.explanations),
    )
    return outcome


def _known(snapshot: Snapshot) -> list[ExplanationDocument]:
    """Return all answers to the same objects at the moment before; none where one is missing or another engine's."""
    before = Snapshot.objects.filter(
        cluster=snapshot.cluster_id, outcome=AnalysisOutcome.DONE, as_of__lt=snapshot.as_of
    ).order_by("-as_of", "-pk")[:1]
    last = before.first()
    if last is None or (last.reading_id, last.engine) != (snapshot.reading_id, snapshot.engine):
        return []
    rows = ExplanationRecord.objects.filter(snapshot=last, is_current=True).values_list("document", flat=True)
    texts = list(rows)
    if len(texts) != last.gangs:
        return []
    return [msgspec.json.decode(text, type=ExplanationDocument) for text in texts]


def analysis_fail(*, snapshot: Snapshot, detail: str, now: datetime) -> None:
    """Record an analysis that broke; the next attempt comes later each time, whatever is read meanwhile."""
    failures = _failures_in_a_row(snapshot)
    pause = min(RETRY_FIRST * 2 ** min(failures - 1, 10), RETRY_MAX)
    Snapshot.objects.filter(pk=snapshot.pk, outcome=AnalysisOutcome.RUNNING).update(
        outcome=AnalysisOutcome.FAILED, ended_at=now, detail=detail[:512], retry_at=now + pause
    )


def _failures_in_a_row(snapshot: Snapshot) -> int:
    """Return how many attempts have failed since the last good one, this one included."""
    good = Snapshot.objects.filter(cluster=snapshot.cluster, outcome=AnalysisOutcome.DONE).order_by("-as_of").first()
    failed = Snapshot.objects.filter(cluster=snapshot.cluster, outcome=AnalysisOutcome.FAILED)
    if good is not None:
        failed = failed.filter(as_of__gt=good.as_of)
    return sum(failed.exclude(pk=snapshot.pk).values_list("attempts", flat=True)) + snapshot.attempts
