"""Paged LIST of kinds -> ``Reading``: what was read, when, how much, and what not and why.

Relies on ``Client`` for single requests. A kind that fails is named and the others go on; only a server
that cannot be reached at all, or refuses the credential, fails the whole reading. Pages are decoded one
by one, so memory holds one page and the reduced records.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from gangdash.kube import kinds
from gangdash.kube.client import Client
from gangdash.kube.decode import BadObjectError, decode_object
from gangdash.kube.errors import Forbidden, Gone, KubeError, NotInstalled, ServerFault
from gangdash.kube.kinds import Kind
from gangdash.kube.reading import BadObject, KindStatus, Reading
from gangdash.kube.records import kai
from gangdash.kube.records.base import Record

PAGE = 500
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
READING_SECONDS = 120.0
"""A reading that takes longer is cut short: what is left counts as not read, and the next poll comes."""
SELDOM = timedelta(minutes=5)
_DEFAULT_NAMESPACE = "kai-scheduler"
_DEFAULT_SCHEDULER = "kai-scheduler"


class _ListMeta(msgspec.Struct):
    continue_: str | None = msgspec.field(name="continue", default=None)


class _Page(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class _GroupVersion(msgspec.Struct):
    version: str


class _Group(msgspec.Struct):
    name: str
    versions: list[_GroupVersion]


class _Groups(msgspec.Struct):
    groups: list[_Group]


@dataclass(slots=True)
class _Listed:
    """One kind as listed; thrown away when the list has to be begun again."""

    records: list[Record] = field(default_factory=list)
    bad: list[BadObject] = field(default_factory=list)


def read_cluster(
    client: Client,
    wanted: Iterable[Kind] | None = None,
    *,
    previous: Reading | None = None,
    seconds: float = READING_SECONDS,
    seldom: timedelta = SELDOM,
) -> Reading:
    """Read the kinds of a cluster, those polled live unless told otherwise.

    ``previous`` lends its records of kinds that seldom change while they are younger than ``seldom``. Raises
    ``Unreachable`` or ``Unauthorized`` when the server answers nothing at all.
    """
    reader = _Reader(client, time.monotonic() + seconds, seldom)
    reader.discover()
    for kind in kinds.live() if wanted is None else wanted:
        if previous is None or not reader.reuse(kind, previous):
            reader.read(kind)
    reader.read_scheduler_config()
    return reader.finished()


class _Reader:
    """One reading in the making."""

    def __init__(self, client: Client, deadline: float, seldom: timedelta) -> None:
        self._client = client
        self._deadline = deadline
        self._seldom = seldom
        self._served: dict[str, list[str]] | None = None
        self._reading = Reading(as_of=datetime.now(UTC), source="live")

    def discover(self) -> None:
        """Learn which groups are served in which versions; where that is forbidden each list will tell."""
        try:
            body = self._client.get("API groups", "/apis", {}, deadline=self._deadline)
        except (Forbidden, NotInstalled):
            return
        groups = _decoded("API groups", body, _Groups).groups
        self._served = {g.name: [v.version for v in g.versions] for g in groups} | {"": ["v1"]}

    def reuse(self, kind: Kind, previous: Reading) -> bool:
        """Take over a kind that seldom changes, was read not long ago and is still served."""
        status = previous.statuses.get(kind.name)
        if not kind.seldom or status is None or status.reason or not self._versions(kind):
            return False
        if self._reading.as_of - status.read_at > self._seldom:
            return False
        self._reading.items[kind.name] = previous.items[kind.name]
        self._reading.statuses[kind.name] = status
        return True

    def read(self, kind: Kind) -> None:
        started, asked, received = time.monotonic(), self._client.requests, self._client.received_bytes
        listed, error = self._try(kind)
        if listed is not None:
            self._reading.items[kind.name] = listed.records
            self._reading.oddities += listed.bad
        if error is not None:
            self._reading.not_read[kind.name] = error.reason
        self._reading.statuses[kind.name] = KindStatus(
            kind=kind.name,
            is_required=kind.required,
            read_at=datetime.now(UTC),
            count=None if listed is None else len(listed.records),
            reason=error.reason if error else "",
            detail=error.detail if error else "",
            requests=self._client.requests - asked,
            received_bytes=self._client.received_bytes - received,
            took_ms=round((time.monotonic() - started) * 1000),
        )

    def _try(self, kind: Kind) -> tuple[_Listed | None, KubeError | None]:
        """List the kind in the best version that is served; an older one is tried where that one has not the kind."""
        error: KubeError = NotInstalled(kind.name, "not served")
        for version in self._versions(kind):
            try:
                return self._list(kind, version), None
            except NotInstalled as err:
                error = err
            except KubeError as err:
                return None, err
        return None, error

    def _versions(self, kind: Kind) -> tuple[str, ...]:
        if self._served is None:
            return kind.versions
        served = self._served.get(kind.group, [])
        return tuple(v for v in kind.versions if v in served)

    def _list(self, kind: Kind, version: str) -> _Listed:
        """Page through; a list that grew too old is begun again, and asked for whole the third time."""
        for limit in (PAGE, PAGE, 0):
            try:
                return self._pages(kind, version, limit)
            except Gone as err:
                last = err
        raise last

    def _pages(self, kind: Kind, version: str, limit: int) -> _Listed:
        listed = _Listed()
        query = _query(kind, limit)
        while True:
            page = self._page(kind, version, query)
            for raw in page.items or ():
                _add(listed, kind, version, raw)
            if not page.metadata.continue_:
                return listed
            query["continue"] = page.metadata.continue_
            # A server refuses a version beside the place where a list goes on.
            query.pop("resourceVersion", None)

    def _page(self, kind: Kind, version: str, query: dict[str, str]) -> _Page:
        accept = _METADATA_ONLY if kind.names_only else "application/json"
        body = self._client.get(kind.name, kind.path(version), query, deadline=self._deadline, accept=accept)
        return _decoded(kind.name, body, _Page)

    def read_scheduler_config(self) -> None:
        """Read the ConfigMaps that are schedulers' own configuration, by name; all others stay names.

        One that cannot be read is no loss: SchedulingShard says what the operator wrote into it, and the shard names
        the objects that its configuration was read from.
        """
        config_map = kinds.by_name()["ConfigMap"]
        for namespace, name in self._scheduler_config_names():
            path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
            try:
                body = self._client.get(config_map.name, path, {}, deadline=self._deadline)
                record = decode_object(config_map, body, "v1", name)
            except (KubeError, BadObjectError):
                continue
            records = self._reading.items.get("ConfigMap", [])
            others = [r for r in records if (r.metadata.namespace, r.metadata.name) != (namespace, name)]
            self._reading.items["ConfigMap"] = [*others, record]

    def _scheduler_config_names(self) -> list[tuple[str, str]]:
        """Return namespace and name of each shard's configuration, as the operator names them.

        A role may be allowed to read these and not to list the others, so without a list all are tried.
        """
        items = self._reading.items
        configs = [c.spec for c in items.get("Config", ()) if isinstance(c, kai.Config) and c.spec]
        namespace = next((c.namespace for c in configs if c.namespace), _DEFAULT_NAMESPACE)
        scheduler = next((c.global_.scheduler_name for c in configs if c.global_ and c.global_.scheduler_name), "")
        shards = [s.metadata.name for s in items.get("SchedulingShard", ())] or ["default"]
        names = [(namespace, f"{scheduler or _DEFAULT_SCHEDULER}-{shard}") for shard in shards]
        if "ConfigMap" not in items:
            return names
        present = {(r.metadata.namespace, r.metadata.name) for r in items["ConfigMap"]}
        return [name for name in names if name in present]

    def finished(self) -> Reading:
        """Return the reading, dated after the last answer: no object in it can be younger."""
        for kind in kinds.KINDS:
            if kind.name not in self._reading.items:
                self._reading.not_read.setdefault(kind.name, "not read from a live cluster")
        self._reading.as_of = datetime.now(UTC)
        return self._reading


def _query(kind: Kind, limit: int) -> dict[str, str]:
    """Return the parameters of a list's first page."""
    query = {"limit": str(limit)} if limit else {}
    if kind.seldom:
        # Any version that the server has at hand: its cache answers, not the database behind it.
        query["resourceVersion"] = "0"
    if kind.field_selector:
        query["fieldSelector"] = kind.field_selector
    return query


def _add(listed: _Listed, kind: Kind, version: str, raw: msgspec.Raw) -> None:
    try:
        listed.records.append(decode_object(kind, raw, version, f"items[{len(listed.records)}]"))
    except BadObjectError as err:
        listed.bad.append(err.bad)


T = TypeVar("T")


def _decoded(what: str, body: bytes, type_: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as err:
        raise ServerFault(what, "malformed answer", str(err)) from err
