"""One poll: read the cluster, store the reading if it says something new, bring the rows up to it, leave a record.

However it ends there is a record; what was read before stays until something better is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import SystemRandom

import structlog
from celery import current_app
from django.conf import settings
from django.db import transaction

from apps.clusters.models import Cluster, PollRun
from apps.clusters.services import poll_run_fail, poll_run_finish, poll_run_start
from apps.clusters.sources import ClusterSource
from apps.collector.connections import LiveReading, cluster_read
from apps.collector.history import FoundHistory, capacity_sample, found_history, history_sync
from apps.collector.models import Reading as StoredReading
from apps.collector.models import ReadingContent
from apps.collector.packing import Packed, deadlines, packed
from apps.collector.rows import FoundRows, found_rows
from apps.collector.selectors import reading_newest
from apps.collector.signals import reading_done
from apps.collector.sync import rows_sync
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.kube.errors import Forbidden, KubeconfigError, KubeError, NotInstalled, Unauthorized, Unreachable
from gangdash.kube.reading import KindStatus
from gangdash.snapshot.archive import SnapshotError, snapshot_of

logger = structlog.get_logger(__name__)

DIAGNOSE_TASK = "diagnosis.diagnose_due"
LASTING_REASONS = frozenset({"403", "not served"})
"""Reasons that the next poll will meet again: they are part of what the cluster lets us see, not an accident."""
_CODES: dict[type[KubeError], str] = {
    KubeconfigError: "kubeconfig",
    Unauthorized: "unauthorized",
    Forbidden: "forbidden",
    NotInstalled: "not_served",
    Unreachable: "unreachable",
}
_random = SystemRandom()


@dataclass(frozen=True, slots=True)
class Found:
    """What a reading says, computed before the transaction opens."""

    rows: FoundRows
    history: FoundHistory


def found_of(snapshot: ClusterSnapshot) -> Found:
    """Return what a reading says: of now, and of what happened."""
    return Found(found_rows(snapshot), found_history(snapshot))


@dataclass(frozen=True, slots=True)
class Stored:
    """What storing a reading did."""

    rows_written: int
    is_unchanged: bool
    reading_id: int


def cluster_poll(*, cluster: Cluster, source: ClusterSource) -> PollRun:
    """Read a cluster that this caller holds, and return the record of it."""
    run = poll_run_start(cluster=cluster, now=datetime.now(UTC))
    try:
        live = cluster_read(source)
        live.reading.deadlines = deadlines()
        snapshot = snapshot_of(live.reading)
    except KubeError as error:
        _fail(run, _CODES.get(type(error), "server_fault"), str(error))
        return run
    except SnapshotError as error:
        _fail(run, "scheduler_config", str(error))
        return run
    failed = accidents(live.reading.statuses.values())
    if failed:
        _fail(run, "required_kind", failed, reports=list(live.reading.statuses.values()))
    else:
        _finish(run, live, snapshot)
    return run


def accidents(statuses: Iterable[KindStatus]) -> str:
    """Return which required kinds failed for a passing reason, empty where none did.

    Such a reading is not stored: taking it for the truth would unsay every verdict for the length of one poll.
    """
    lost = [status for status in statuses if status.is_required and status.reason not in {"", *LASTING_REASONS}]
    return "; ".join(f"{status.kind}: {status.reason}" for status in lost)


def _fail(run: PollRun, code: str, detail: str, *, reports: list[KindStatus] | None = None) -> None:
    logger.warning("poll_failed", cluster=run.cluster.name, code=code, detail=detail)
    poll_run_fail(
        run=run, code=code, detail=detail, now=datetime.now(UTC), jitter=_random.random(), kinds=reports or []
    )


def _finish(run: PollRun, live: LiveReading, snapshot: ClusterSnapshot) -> None:
    content, as_of = packed(live.reading, snapshot), live.reading.as_of
    found = None if reading_is_known(cluster=run.cluster, content=content) else found_of(snapshot)
    with transaction.atomic():
        stored = reading_store(cluster=run.cluster, found=found, content=content, as_of=as_of)
        run.requests, run.received_bytes = live.requests, live.received_bytes
        run.rows_written, run.is_unchanged = stored.rows_written, stored.is_unchanged
        poll_run_finish(
            run=run,
            kinds=list(live.reading.statuses.values()),
            now=datetime.now(UTC),
            as_of=as_of,
            server_version=live.version,
            skew_seconds=live.skew_seconds,
        )
        transaction.on_commit(diagnosis_ask, robust=True)

        # Each receiver on its own: one that fails is logged, and the others and the poll go on.
        def tell() -> None:
            facts = {"snapshot": snapshot, "as_of": as_of, "is_unchanged": stored.is_unchanged}
            facts["reading_id"] = stored.reading_id
            reading_done.send_robust(sender=Cluster, cluster=run.cluster, **facts)

        transaction.on_commit(tell, robust=True)
    logger.info("poll_done", cluster=run.cluster.name, rows=stored.rows_written, unchanged=stored.is_unchanged)


def reading_is_known(*, cluster: Cluster, content: Packed) -> bool:
    """Return whether the newest stored reading has this very content."""
    newest = reading_newest(cluster=cluster)
    return newest is not None and newest.content_key == content.key


def reading_store(*, cluster: Cluster, found: Found | None, content: Packed, as_of: datetime) -> Stored:
    """Store a reading and bring the rows up to it; without rows it is the known one, whose time moves on."""
    if found is None:
        known = StoredReading.objects.filter(cluster=cluster, content_key=content.key).latest("as_of")
        StoredReading.objects.filter(pk=known.pk).update(confirmed_at=as_of)
        capacity_sample(cluster=cluster, now=as_of)
        return Stored(rows_written=0, is_unchanged=True, reading_id=known.pk)
    # What no analysis has taken yet is overtaken by this one; of each minute one reading stays, for replays.
    minute = as_of.replace(second=0, microsecond=0)
    StoredReading.objects.filter(cluster=cluster, claimed_at=None, as_of__gte=minute).delete()
    reading = _reading_create(cluster, content, as_of)
    written = rows_sync(cluster=cluster, found=found.rows, now=as_of)
    history_sync(cluster=cluster, found=found.history, now=as_of)
    capacity_sample(cluster=cluster, now=as_of)
    return Stored(rows_written=written, is_unchanged=False, reading_id=reading.pk)


def _reading_create(cluster: Cluster, content: Packed, as_of: datetime) -> StoredReading:
    reading = StoredReading.objects.create(
        cluster=cluster,
        content_key=content.key,
        as_of=as_of,
        confirmed_at=as_of,
        objects_total=content.objects,
        packed_bytes=len(content.content),
    )
    # A cluster that flaps comes back to contents that are there.
    ReadingContent.objects.get_or_create(cluster=cluster, key=content.key, defaults={"packed": content.content})
    contents_prune(cluster=cluster)
    return reading


def contents_prune(*, cluster: Cluster) -> int:
    """Delete the contents that no reading has any more; return how many."""
    kept = StoredReading.objects.filter(cluster=cluster).order_by().values("content_key")
    return ReadingContent.objects.filter(cluster=cluster).exclude(key__in=kept).delete()[0]


def diagnosis_ask() -> None:
    """Ask for what is due now; the tick asks again should this be lost."""
    current_app.send_task(DIAGNOSE_TASK, queue="analyse", expires=settings.GANGDASH_POLL_SECONDS)


def poll_delay(*, clusters: int) -> float:
    """Return seconds to wait before a poll, so that many clusters are not read in the same instant."""
    return 0.0 if clusters < 2 else _random.uniform(0, min(settings.GANGDASH_POLL_SECONDS / 3, 5.0))
