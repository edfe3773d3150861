"""The dump of an analysed moment: with its time and history, so that the command line says the same on it."""

from __future__ import annotations

import gzip
from datetime import datetime

from apps.clusters.models import Cluster
from apps.collector.models import Reading as StoredReading
from apps.collector.models import ReadingContent
from apps.collector.packing import LEVEL, unpacked
from apps.diagnosis.choices import AnalysisOutcome
from apps.diagnosis.models import Snapshot
from apps.errors import ApplicationError
from gangdash.kube.reading import Reading
from gangdash.snapshot.archive import write_dump


def moment_reading(*, snapshot: Snapshot) -> Reading:
    """Return the objects of a moment; refuse where they are not kept any more."""
    if snapshot.reading is None:
        raise ApplicationError("dump_expired", "The objects of this moment are not kept any more")
    try:
        return unpacked(
            reading=snapshot.reading, as_of=snapshot.as_of, history=snapshot.history, name=snapshot.cluster.name
        )
    except ReadingContent.DoesNotExist as error:
        raise ApplicationError("dump_expired", "The objects of this moment are not kept any more") from error


def snapshot_dump(*, snapshot: Snapshot) -> bytes:
    """Return the gzipped dump of a moment; refuse where its objects are not kept any more."""
    return gzip.compress(write_dump(moment_reading(snapshot=snapshot)), LEVEL, mtime=0)


def moment_dump(*, cluster: Cluster, at: datetime) -> tuple[str, bytes]:
    """Return name and gzipped dump of what a cluster was read to have at a moment, for a replay by any version.

    Where that content was analysed, the dump has the time and history of the analysis nearest before the moment, so
    that the replay says what was said; else it has the moment itself and no history.
    """
    reading = StoredReading.objects.filter(cluster=cluster, as_of__lte=at).order_by("-as_of", "-pk").first()
    if reading is None:
        raise ApplicationError("dump_expired", "The objects of this moment are not kept")
    done = (
        Snapshot.objects.filter(reading=reading, as_of__lte=at, outcome=AnalysisOutcome.DONE).order_by("-as_of").first()
    )
    as_of, history = (done.as_of, done.history) if done else (min(at, reading.confirmed_at), {})
    found = unpacked(reading=reading, as_of=as_of, history=history, name=cluster.name)
    return _name(cluster, as_of), gzip.compress(write_dump(found), LEVEL, mtime=0)


def dump_name(*, snapshot: Snapshot) -> str:
    """Return the file name of a dump."""
    return _name(snapshot.cluster, snapshot.as_of)


def _name(cluster: Cluster, as_of: datetime) -> str:
    return f"{cluster.name}-{as_of:%Y%m%dT%H%M%SZ}.json.gz"
