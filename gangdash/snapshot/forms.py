"""JSON text of a file -> ``Reading``: the scheduler's own snapshot, or a Kubernetes ``List``.

Relies on the table of kinds. A bad object is left out and named; a file whose frame is wrong, or of
which nothing could be read, is refused as a whole.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec

from gangdash.kube import kinds
from gangdash.kube.decode import BadObjectError, decode_object, describe
from gangdash.kube.reading import BadObject, History, Reading, SchedulerFile
from gangdash.kube.records.base import Time
from gangdash.kube.records.kai import SchedulerConfig, SchedulerParams
from gangdash.snapshot.errors import SnapshotError

_MOMENT = re.compile(rb'"([^"\\]*)"\s*:\s*"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))"')


class _Unread(msgspec.Struct):
    kind: str
    reason: str = ""


class _Case(msgspec.Struct):
    now: Time | None = None


class _File(msgspec.Struct, rename="camel"):
    """The frame of either form; objects stay undecoded."""

    api_version: str | None = None
    kind: str | None = None
    items: list[msgspec.Raw] | None = None
    as_of: Time | None = None
    read: list[str] | None = None
    not_read: list[_Unread] | None = None
    history: dict[str, History] | None = None
    deadlines: dict[str, float] | None = None
    oddities: list[BadObject] | None = None
    unknown_kinds: list[str] | None = None
    raw_objects: dict[str, list[msgspec.Raw] | None] | None = None
    config: SchedulerConfig | None = None
    scheduler_params: SchedulerParams | None = None
    case: _Case | None = None


class _Head(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None


def parse(text: bytes, file: str, as_of: datetime | None) -> Reading:
    """Return the reading in a file; ``as_of`` overrides the moment that the file names."""
    frame = _frame(text, file)
    if frame.raw_objects is not None:
        reading = _from_scheduler(frame)
    elif frame.items is not None and (frame.kind or "").endswith("List"):
        reading = _from_list(frame)
    else:
        raise SnapshotError(file, "neither a scheduler snapshot (rawObjects) nor a Kubernetes List (items)")
    if reading.oddities and not any(reading.items.values()):
        worst = reading.oddities[0]
        raise SnapshotError(file, worst.problem, object_=worst.object, field=worst.field)
    reading.as_of = as_of or _moment(frame, text, file)
    return reading


def _frame(text: bytes, file: str) -> _File:
    try:
        return msgspec.json.decode(text, type=_File)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as err:
        field, problem = describe(err)
        raise SnapshotError(file, problem, field=field) from err


def _moment(frame: _File, text: bytes, file: str) -> datetime:
    """The file's own moment, else the newest time in it: nothing can be younger than the reading."""
    named = frame.as_of or (frame.case.now if frame.case else None)
    if named is not None:
        return named
    texts = {moment for key, moment in _MOMENT.findall(text) if key != b"deletionTimestamp"}
    newest = max(filter(None, map(_instant, texts)), default=None)
    if newest is None:
        raise SnapshotError(file, "no time in it: say with --as-of when it was taken")
    return newest


def _instant(text: bytes) -> datetime | None:
    try:
        return datetime.fromisoformat(text.decode())
    except ValueError:
        return None


def _from_scheduler(frame: _File) -> Reading:
    reading = Reading(as_of=datetime.min.replace(tzinfo=UTC), source="kai")
    reading.scheduler = SchedulerFile(frame.config or SchedulerConfig(), frame.scheduler_params or SchedulerParams())
    known = {kind.in_snapshot: kind for kind in kinds.KINDS if kind.in_snapshot}
    for key, objects in (frame.raw_objects or {}).items():
        kind = known.get(key)
        if kind is None:
            reading.unknown_kinds.append(key)
            continue
        reading.items[kind.name] = []
        for i, raw in enumerate(objects or ()):
            _add(reading, kind, raw, kind.versions[0], f"{key}[{i}]")
    for kind in known.values():
        reading.items.setdefault(kind.name, [])
    _name_the_rest(reading, "not part of a scheduler snapshot")
    return reading


def _from_list(frame: _File) -> Reading:
    reading = Reading(as_of=datetime.min.replace(tzinfo=UTC), source="dump")
    reading.not_read = {u.kind: u.reason or "not read" for u in frame.not_read or ()}
    reading.history, reading.deadlines = frame.history or {}, frame.deadlines or {}
    reading.oddities = list(frame.oddities or ())
    known = kinds.by_name()
    reading.items = {name: [] for name in frame.read or () if name in known}
    unknown = dict.fromkeys(frame.unknown_kinds or ())
    for i, raw in enumerate(frame.items or ()):
        _add_item(reading, unknown, frame, raw, i)
    reading.unknown_kinds = sorted(unknown)
    _name_the_rest(reading, "not in the dump")
    if frame.config or frame.scheduler_params:
        params = frame.scheduler_params or SchedulerParams()
        reading.scheduler = SchedulerFile(frame.config or SchedulerConfig(), params)
    return reading


def _name_the_rest(reading: Reading, reason: str) -> None:
    """Every kind of the table is either read or not read: nothing counts as empty because nobody spoke of it."""
    for kind in kinds.KINDS:
        if kind.name not in reading.items:
            reading.not_read.setdefault(kind.name, reason)


def _add_item(reading: Reading, unknown: dict[str, None], frame: _File, raw: msgspec.Raw, i: int) -> None:
    try:
        head = msgspec.json.decode(raw, type=_Head)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as err:
        reading.oddities.append(BadObject(f"items[{i}]", *describe(err)))
        return
    name = head.kind or (frame.kind or "").removesuffix("List")
    api_version = head.api_version or frame.api_version or ""
    kind = kinds.find(api_version, name)
    if kind is not None:
        _add(reading, kind, raw, api_version.rpartition("/")[2], f"items[{i}]")
    elif name:
        unknown[f"{name} ({api_version})"] = None
    else:
        reading.oddities.append(BadObject(f"items[{i}]", "kind", "missing"))


def _add(reading: Reading, kind: kinds.Kind, raw: msgspec.Raw, version: str, position: str) -> None:
    records = reading.items.setdefault(kind.name, [])
    try:
        records.append(decode_object(kind, raw, version, position))
    except BadObjectError as err:
        reading.oddities.append(err.bad)
