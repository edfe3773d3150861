"""Changes to clusters and the record of their polls.

A poll holds its cluster by a counted update on ``locked_until``: whoever changed the row may read, a lost holder
loses the lock by time. No row lock is held while a cluster is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from apps.clusters.choices import PollOutcome
from apps.clusters.models import Cluster, KindFreshness, PollRun
from apps.clusters.sources import ClusterSource, SourceList
from gangdash.kube.reading import KindStatus

BACK_OFF_MAX = timedelta(minutes=5)
"""A cluster that does not answer is tried again at least this often."""


@transaction.atomic
def clusters_sync(*, found: SourceList, now: datetime) -> list[Cluster]:
    """Make the rows say what the settings say and return the clusters to read.

    A source that went away leaves its cluster in place, marked as no longer read. While the folder cannot be read
    nobody is taken to be gone.
    """
    names = {source.name for source in found.sources}
    rows = {row.name: row for row in Cluster.objects.filter(Q(name__in=names) | Q(is_read=True))}
    for source in found.sources:
        rows[source.name] = _cluster_keep(rows.get(source.name), source)
    for row in rows.values():
        if row.is_read and row.name not in names and found.is_complete:
            row.is_read, row.removed_at = False, now
            row.save(update_fields=["is_read", "removed_at"])
    return [rows[source.name] for source in found.sources]


def _cluster_keep(row: Cluster | None, source: ClusterSource) -> Cluster:
    if row is None:
        return Cluster.objects.create(name=source.name, source=source.source, context=source.context)
    wanted = {"source": source.source, "context": source.context, "is_read": True, "removed_at": None}
    if any(getattr(row, field) != value for field, value in wanted.items()):
        for field, value in wanted.items():
            setattr(row, field, value)
        row.failures, row.next_poll_at = 0, None
        row.save(update_fields=[*wanted, "failures", "next_poll_at"])
    return row


def poll_claim(*, cluster: Cluster, now: datetime, hold: timedelta) -> bool:
    """Take the cluster for one poll if it is due and nobody reads it; the lock ends by itself after ``hold``."""
    free = Q(locked_until=None) | Q(locked_until__lt=now)
    due = Q(next_poll_at=None) | Q(next_poll_at__lte=now)
    taken = Cluster.objects.filter(free, due, pk=cluster.pk, is_read=True).update(locked_until=now + hold)
    return taken == 1


@transaction.atomic
def poll_run_start(*, cluster: Cluster, now: datetime) -> PollRun:
    """Open the record of a poll; one that was left open by a lost worker is closed as lost."""
    left = PollRun.objects.filter(cluster=cluster, outcome=PollOutcome.RUNNING)
    left.update(outcome=PollOutcome.LOST, ended_at=now, code="lost", detail="The worker ended before the poll did.")
    return PollRun.objects.create(cluster=cluster, started_at=now)


@transaction.atomic
def poll_run_finish(
    *,
    run: PollRun,
    kinds: Sequence[KindStatus],
    now: datetime,
    as_of: datetime,
    server_version: str,
    skew_seconds: float | None,
) -> None:
    """Record a poll whose reading was taken, wholly or in part, and let the next one come when it is due."""
    missing = any(report.reason and report.is_required for report in kinds)
    run.outcome = PollOutcome.PARTIAL if missing else PollOutcome.READ
    run.kinds, run.ended_at = [_kind_row(report) for report in kinds], now
    run.save()
    kinds_record(cluster=run.cluster, reports=kinds, now=now)
    Cluster.objects.filter(pk=run.cluster_id).update(
        read_as_of=as_of,
        server_version=server_version[:64],
        skew_seconds=skew_seconds,
        failures=0,
        fault_code="",
        fault="",
        locked_until=None,
        next_poll_at=None,
    )


@transaction.atomic
def poll_run_fail(
    *, run: PollRun, code: str, detail: str, now: datetime, jitter: float, kinds: Sequence[KindStatus] = ()
) -> None:
    """Record a poll whose reading was not taken and put the next one off, longer after each failure.

    ``jitter`` from 0 to 1 spreads clusters that failed together. What was read before stays as it is.
    """
    run.outcome, run.ended_at = PollOutcome.FAILED, now
    run.code, run.detail, run.kinds = code[:32], detail[:512], [_kind_row(report) for report in kinds]
    run.save()
    kinds_record(cluster=run.cluster, reports=kinds, now=now)
    failures = Cluster.objects.values_list("failures", flat=True).get(pk=run.cluster_id) + 1
    Cluster.objects.filter(pk=run.cluster_id).update(
        failures=failures,
        fault_code=run.code,
        fault=run.detail,
        locked_until=None,
        next_poll_at=now + back_off(failures=failures, jitter=jitter),
    )


@transaction.atomic
def poll_release(*, cluster: Cluster, now: datetime) -> None:
    """Let go of a cluster whose poll broke by a fault of ours: its record is closed, the next tick may try again."""
    detail = "The poll broke by a fault of gangdash; the log has it."
    running = PollRun.objects.filter(cluster=cluster, outcome=PollOutcome.RUNNING)
    running.update(outcome=PollOutcome.FAILED, ended_at=now, code="fault", detail=detail)
    Cluster.objects.filter(pk=cluster.pk).update(
        locked_until=None, failures=F("failures") + 1, fault_code="fault", fault=detail
    )


def back_off(*, failures: int, jitter: float) -> timedelta:
    """Return the pause after so many failures in a row: none after the first, then doubling, up to five minutes.

    The first failure waits for the next tick only: most of them are a restart that is over by then.
    """
    if failures <= 1:
        return timedelta(0)
    seconds = settings.GANGDASH_POLL_SECONDS * 2.0 ** min(failures - 1, 10)
    return min(timedelta(seconds=seconds), BACK_OFF_MAX) * (0.75 + 0.25 * jitter)


def kinds_record(*, cluster: Cluster, reports: Sequence[KindStatus], now: datetime) -> None:
    """Note per kind whether it was read; time and count of the last good reading stay when this one failed.

    Two statements, because an upsert writes the same columns for all its rows.
    """
    state = ["is_required", "is_read", "reason", "checked_at"]
    read = [_kind(cluster, report, now) for report in reports if not report.reason]
    missed = [_kind(cluster, report, now) for report in reports if report.reason]
    for rows, fields in ((read, [*state, "read_at", "count"]), (missed, state)):
        KindFreshness.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["cluster", "kind"], update_fields=fields
        )


def _kind(cluster: Cluster, report: KindStatus, now: datetime) -> KindFreshness:
    return KindFreshness(
        cluster=cluster,
        kind=report.kind,
        is_required=report.is_required,
        is_read=not report.reason,
        reason=": ".join(part for part in (report.reason, report.detail) if part)[:253],
        read_at=None if report.reason else report.read_at,
        checked_at=now,
        count=report.count,
    )


def poll_runs_prune(*, before: datetime) -> int:
    """Delete the records of polls that ended before a moment and return how many."""
    deleted, _by_model = PollRun.objects.filter(started_at__lt=before).delete()
    return deleted


def _kind_row(report: KindStatus) -> dict[str, Any]:
    return {
        "kind": report.kind,
        "count": report.count,
        "bytes": report.received_bytes,
        "requests": report.requests,
        "ms": report.took_ms,
        "reason": report.reason,
    }
