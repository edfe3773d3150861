"""WATCH: one open answer that tells each change of a kind, in order, until its time is up.

Written for readers that follow a list from its resourceVersion; a version that history has lost gets an ERROR
event with the 410 inside, on an answer that is itself 200, as real servers do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from gangdash.simulator.answers import ApiError
from gangdash.simulator.kinds import Kind
from gangdash.simulator.paging import ListRequest, partial, whole
from gangdash.simulator.selectors import selection
from gangdash.simulator.store import Change, Keep, ObjectStore

DEFAULT_SECONDS = 1800


@dataclass(slots=True)
class Stop:
    """Tells every open watch to end; set under the store's condition so that none sleeps through it."""

    requested: bool = False


def watch_lines(store: ObjectStore, request: ListRequest, stop: Stop) -> Iterator[bytes]:
    """Yield one event a line, blocking between them; check the query before the first."""
    start = request.number("resourceVersion")
    seconds = request.number("timeoutSeconds") or DEFAULT_SECONDS
    keep = selection(
        request.kind.plural, request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
    )
    return _lines(store, request, stop, start, time.monotonic() + seconds, keep)


def _lines(
    store: ObjectStore, request: ListRequest, stop: Stop, start: int, deadline: float, keep: Keep | None
) -> Iterator[bytes]:
    seen = start
    if not start:
        with store.changed:
            seen = store.revision
            present, _left = store.items(request.kind, request.namespace, seen)
        yield from (_line("ADDED", request, body) for _key, body in present if keep is None or keep(body))
    while True:
        with store.changed:
            if seen < store.compacted:
                yield _error(f"too old resource version: {seen} ({store.compacted})")
                return
            changes = store.changes_after(seen)
            seen = store.revision
        yield from (_line(c.type, request, c.body) for c in changes if _shown(c, request, keep))
        with store.changed:
            if not _wait(store, stop, seen, deadline):
                break
    if request.query.get("allowWatchBookmarks") in ("true", "1"):
        yield _bookmark(request, seen)


def _wait(store: ObjectStore, stop: Stop, seen: int, deadline: float) -> bool:
    """Sleep until there is something new; False when the watch is to end. The caller holds the condition."""
    while store.revision == seen and not stop.requested:
        left = deadline - time.monotonic()
        if left <= 0 or not store.changed.wait(left):
            return False
    return not stop.requested


def _shown(change: Change, request: ListRequest, keep: Keep | None) -> bool:
    if change.resource != request.kind.resource:
        return False
    if request.namespace is not None and change.key[0] != request.namespace:
        return False
    return keep is None or keep(change.body)


def _line(event: str, request: ListRequest, body: bytes) -> bytes:
    shown = partial(body) if request.metadata_only else whole(request.kind, request.version, body)
    return f'{{"type":"{event}","object":'.encode() + shown + b"}\n"


def _error(message: str) -> bytes:
    event = {"type": "ERROR", "object": ApiError(410, message).status()}
    return msgspec.json.encode(event) + b"\n"


def _bookmark(request: ListRequest, revision: int) -> bytes:
    kind: Kind = request.kind
    head = {"kind": kind.kind, "apiVersion": kind.api_version(request.version)}
    event = {"type": "BOOKMARK", "object": head | {"metadata": {"resourceVersion": str(revision)}}}
    return msgspec.json.encode(event) + b"\n"
