"""The dump of an analysed moment: with its time and history, so that the command line says the same on it."""

from __future__ import annotations

import gzip

from apps.collector.models import ReadingBody
from apps.collector.packing import LEVEL, unpacked
from apps.diagnosis.models import Snapshot
from apps.errors import ApplicationError
from gangdash.snapshot.archive import write_dump


def snapshot_dump(*, snapshot: Snapshot) -> bytes:
    """Return the gzipped dump of a moment; refuse where its objects are not kept any more."""
    if snapshot.reading is None:
        raise ApplicationError("dump_expired", "The objects of this moment are not kept any more")
    try:
        reading = unpacked(
            reading=snapshot.reading, as_of=snapshot.as_of, history=snapshot.history, name=snapshot.cluster.name
        )
    except ReadingBody.DoesNotExist as error:
        raise ApplicationError("dump_expired", "The objects of this moment are not kept any more") from error
    return gzip.compress(write_dump(reading), LEVEL, mtime=0)


def dump_name(*, snapshot: Snapshot) -> str:
    """Return the file name of a dump."""
    return f"{snapshot.cluster.name}-{snapshot.as_of:%Y%m%dT%H%M%SZ}.json.gz"
