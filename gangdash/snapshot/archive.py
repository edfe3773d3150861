"""Snapshot files: read any of the three forms, write the one that is offered for download.

``load_snapshot`` is the entry for commands and tests, ``load_reading`` for those who also keep the
reduced objects. Files are told by content, never by name; what they may cost is ``Limits``.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.kube.decode import encodable
from gangdash.kube.reading import History, Reading
from gangdash.snapshot import forms
from gangdash.snapshot.adapters.common import FieldError
from gangdash.snapshot.build import build_snapshot
from gangdash.snapshot.errors import SnapshotError
from gangdash.snapshot.unpack import FILE_LIMITS, UPLOAD_LIMITS, Limits, read_file, unpack

__all__ = ["FILE_LIMITS", "UPLOAD_LIMITS", "Limits", "SnapshotError", "load_bytes", "load_reading", "load_snapshot",
           "snapshot_of", "write_dump"]  # fmt: skip


Moment = datetime | float
"""A moment as such, or in seconds since the epoch."""


def load_snapshot(path: str | Path, *, as_of: Moment | None = None, limits: Limits = FILE_LIMITS) -> ClusterSnapshot:
    """Return the snapshot in a file, or raise ``SnapshotError`` with one line that says what is wrong where."""
    return snapshot_of(load_reading(path, as_of=as_of, limits=limits))


def load_reading(path: str | Path, *, as_of: Moment | None = None, limits: Limits = FILE_LIMITS) -> Reading:
    """Return the reduced objects in a file."""
    path = Path(path)
    reading = forms.parse(read_file(path, limits), str(path), _moment(as_of))
    reading.name = path.name
    return reading


def load_bytes(content: bytes, *, name: str, as_of: Moment | None = None, limits: Limits = UPLOAD_LIMITS) -> Reading:
    """Return the reduced objects in an upload, or in what ``write_dump`` wrote."""
    reading = forms.parse(unpack(content, name, limits), name, _moment(as_of))
    reading.name = name
    return reading


def _moment(as_of: Moment | None) -> datetime | None:
    return datetime.fromtimestamp(as_of, UTC) if isinstance(as_of, int | float) else as_of


def snapshot_of(reading: Reading) -> ClusterSnapshot:
    """Return the facts of a reading; a scheduler configuration that means nothing spoils all of it."""
    try:
        return build_snapshot(reading)
    except FieldError as err:
        raise SnapshotError(reading.name, err.problem, field=err.field) from err


def write_dump(reading: Reading, *, history: dict[str, History] | None = None) -> bytes:
    """Return the reading as a ``List`` that loads into the same snapshot; ``history`` replaces its own."""
    if history is not None:
        reading = replace(reading, history=history)
    frame: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "List",
        "asOf": reading.as_of,
        "read": sorted(reading.items.keys() - reading.not_read.keys()),
        "notRead": [{"kind": k, "reason": r} for k, r in sorted(reading.not_read.items())],
        "unknownKinds": reading.unknown_kinds,
        "oddities": reading.oddities,
        "history": reading.history,
        "deadlines": reading.deadlines,
        "items": [encodable(record) for kind in sorted(reading.items) for record in reading.items[kind]],
    }
    if reading.scheduler is not None:
        frame |= msgspec.to_builtins(reading.scheduler)
    return msgspec.json.encode(frame)
