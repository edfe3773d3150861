"""The objects behind the fake API server: one counter of versions, old versions kept for a while.

Answers any list as it was at a resourceVersion, which is what makes paged lists consistent, and feeds watches.
Objects are kept encoded; a write that changes nothing makes no new version.
"""

from __future__ import annotations

import threading
import uuid
from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import msgspec

from gangdash.simulator.kinds import Kind, find_kind, kind_of
from gangdash.simulator.managed import managed_fields

# Namespace (empty for cluster-wide kinds) and name; lists come in this order.
Key = tuple[str, str]
# Whether a list shows an object, from its encoded body: label and field selectors.
Keep = Callable[[bytes], bool]

# Changes kept for watches and for pages of older lists. Some 100 s of the demo cluster, about 10 MB.
HISTORY = 2_000


def utc_now() -> datetime:
    """Return the present moment; the world puts its own clock in its place."""
    return datetime.now(UTC)


def _keep_all(_body: bytes) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Version:
    """One state of one object: encoded without kind and apiVersion, or None where it was deleted."""

    revision: int
    body: bytes | None
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Change:
    """One step of the history, as watches tell it; a DELETED one carries the last state."""

    revision: int
    resource: str
    type: str
    key: Key
    body: bytes


class _Shelf:
    """All versions of all objects of one kind."""

    __slots__ = ("keys", "versions")

    def __init__(self) -> None:
        self.keys: list[Key] = []
        self.versions: dict[Key, list[Version]] = {}

    def latest(self, key: Key) -> Version | None:
        """Return the newest version of an object, None where it does not exist now."""
        versions = self.versions.get(key)
        return versions[-1] if versions and versions[-1].body is not None else None

    def add(self, key: Key, version: Version) -> None:
        if key not in self.versions:
            insort(self.keys, key)
        self.versions.setdefault(key, []).append(version)

    def at(self, key: Key, revision: int) -> bytes | None:
        """Return an object's body as it was at a revision."""
        older = (version for version in reversed(self.versions[key]) if version.revision <= revision)
        found = next(older, None)
        return found.body if found else None

    def forget(self, key: Key, revision: int) -> None:
        """Drop the versions that no list at or after the revision can show."""
        versions = self.versions[key]
        shown = bisect_right([version.revision for version in versions], revision) - 1
        kept = versions[max(shown, 0) :]
        if kept[0].revision <= revision and kept[0].body is None:
            kept = kept[1:]
        if kept:
            self.versions[key] = kept
        else:
            del self.versions[key]
            self.keys.remove(key)


class ObjectStore:
    """Thread-safe; every write wakes the watches."""

    def __init__(self, clock: Callable[[], datetime] = utc_now, history: int = HISTORY) -> None:
        self.clock = clock
        self.changed = threading.Condition(threading.RLock())
        self.revision = 1
        self.compacted = 0
        self._history = history
        self._log: deque[Change] = deque()
        self._shelves: dict[str, _Shelf] = {}

    def put(self, obj: Mapping[str, Any]) -> int:
        """Create or replace an object; return the revision that shows it."""
        kind, prepared = self._prepare(obj)
        with self.changed:
            return self._put(kind, prepared)

    def delete(self, kind_name: str, namespace: str, name: str) -> int:
        """Delete an object; KeyError where there is none."""
        with self.changed:
            return self._delete(find_kind(kind_name), (namespace, name))

    def write(self, puts: Iterable[Mapping[str, Any]], deletes: Iterable[tuple[str, str, str]] = ()) -> int:
        """Do many writes in one step that no list can see half of."""
        prepared = [self._prepare(obj) for obj in puts]
        with self.changed:
            for kind_name, namespace, name in deletes:
                self._delete(find_kind(kind_name), (namespace, name))
            for kind, obj in prepared:
                self._put(kind, obj)
            return self.revision

    def get(self, kind: Kind, key: Key) -> bytes | None:
        """Return an object's body now, None where there is none."""
        with self.changed:
            latest = self._shelf(kind).latest(key)
            return latest.body if latest else None

    def items(
        self,
        kind: Kind,
        namespace: str | None,
        revision: int,
        *,
        after: Key = ("", ""),
        keep: Keep = _keep_all,
        limit: int = 0,
    ) -> tuple[list[tuple[Key, bytes]], int]:
        """Return the objects of a kind as they were at a revision, in key order, and how many keys are left.

        `after` is the last key already given, `limit` 0 means all of them.
        """
        found: list[tuple[Key, bytes]] = []
        with self.changed:
            shelf = self._shelf(kind)
            keys = shelf.keys[bisect_right(shelf.keys, after) :]
            if namespace is not None:
                keys = [key for key in keys if key[0] == namespace]
            for seen, key in enumerate(keys):
                body = shelf.at(key, revision)
                if body is None or not keep(body):
                    continue
                if limit and len(found) == limit:
                    return found, len(keys) - seen
                found.append((key, body))
        return found, 0

    def changes_after(self, revision: int) -> list[Change]:
        """Return the kept history after a revision, oldest first."""
        with self.changed:
            newest = (change for change in reversed(self._log))
            found = []
            for change in newest:
                if change.revision <= revision:
                    break
                found.append(change)
            return found[::-1]

    def compact(self) -> None:
        """Forget all history now: older continue tokens and watches are answered with 410."""
        with self.changed:
            self._log.clear()
            self._compact_to(self.revision)

    def _shelf(self, kind: Kind) -> _Shelf:
        return self._shelves.setdefault(kind.resource, _Shelf())

    def _prepare(self, obj: Mapping[str, Any]) -> tuple[Kind, dict[str, Any]]:
        """Copy an object with its metadata, without what the server itself writes into lists."""
        kind = kind_of(obj["apiVersion"], obj["kind"])
        prepared = {key: value for key, value in obj.items() if key not in {"apiVersion", "kind"}}
        prepared["metadata"] = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
        if not kind.namespaced:
            prepared["metadata"].pop("namespace", None)
        return kind, prepared

    def _put(self, kind: Kind, obj: dict[str, Any]) -> int:
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        if kind.namespaced != bool(key[0]):
            raise ValueError(f"{kind.kind} {key[1]}: namespace {key[0]!r} does not fit the kind's scope")
        content = blake2b(msgspec.json.encode(obj), digest_size=16).digest()
        old = self._shelf(kind).latest(key)
        if old is not None and old.content == content:
            return old.revision
        self.revision += 1
        self._complete(kind, key, metadata, old)
        metadata.setdefault("managedFields", managed_fields(obj, kind.api_version(), self._now()))
        version = Version(self.revision, msgspec.json.encode(obj), content)
        self._append(kind, key, version, "ADDED" if old is None else "MODIFIED")
        return self.revision

    def _complete(self, kind: Kind, key: Key, metadata: dict[str, Any], old: Version | None) -> None:
        """Fill what a server fills: uid and creation time once, the version on each write."""
        before = msgspec.json.decode(old.body)["metadata"] if old and old.body else {}
        seed = f"{kind.resource}/{key[0]}/{key[1]}"
        metadata.setdefault("uid", before.get("uid") or str(uuid.uuid5(uuid.NAMESPACE_URL, seed)))
        metadata.setdefault("creationTimestamp", before.get("creationTimestamp") or self._now())
        metadata["resourceVersion"] = str(self.revision)

    def _delete(self, kind: Kind, key: Key) -> int:
        old = self._shelf(kind).latest(key)
        if old is None or old.body is None:
            raise KeyError(f"there is no {kind.kind} {'/'.join(filter(None, key))}")
        self.revision += 1
        self._append(kind, key, Version(self.revision, None), "DELETED", last=_at_revision(old.body, self.revision))
        return self.revision

    def _append(self, kind: Kind, key: Key, version: Version, change: str, last: bytes = b"") -> None:
        self._shelf(kind).add(key, version)
        self._log.append(Change(version.revision, kind.resource, change, key, version.body or last))
        # Trimmed in halves, so that the work per write stays constant.
        if len(self._log) > 2 * self._history:
            while len(self._log) > self._history:
                self._log.popleft()
            self._compact_to(self._log[0].revision - 1)
        self.changed.notify_all()

    def _compact_to(self, revision: int) -> None:
        self.compacted = revision
        for shelf in self._shelves.values():
            for key in [key for key, versions in shelf.versions.items() if _has_old(versions, revision)]:
                shelf.forget(key, revision)

    def _now(self) -> str:
        return self.clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _at_revision(body: bytes, revision: int) -> bytes:
    """Return an object as a DELETED event shows it: unchanged but for the version of its deletion."""
    obj = msgspec.json.decode(body)
    obj["metadata"]["resourceVersion"] = str(revision)
    return msgspec.json.encode(obj)


def _has_old(versions: list[Version], revision: int) -> bool:
    """Tell whether compaction can free anything of one object."""
    return len(versions) > 1 or (versions[0].body is None and versions[0].revision <= revision)
