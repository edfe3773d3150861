"""One kept connection per cluster and worker process: setting one up may run an exec plugin and a TLS handshake.

It lives as long as the kubeconfig file stays what it was, and at most ten minutes, so that a rotated credential is
followed; any error ends it. Also lends the kinds that seldom change from one poll to the next.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import timedelta

import msgspec
from django.conf import settings

from apps.clusters.sources import ClusterSource
from gangdash.kube import kinds
from gangdash.kube.client import Client, open_client
from gangdash.kube.errors import KubeconfigError, KubeError
from gangdash.kube.listing import READING_SECONDS, read_cluster
from gangdash.kube.reading import Reading

KEPT_SECONDS = 600.0
VERSION_SECONDS = 10.0
SLOW_POLLS = 10
"""Kinds that seldom change are asked for once in so many polls."""

Stamp = tuple[int, int, int]


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


@dataclass(slots=True)
class _Kept:
    source: ClusterSource
    stamp: Stamp | None
    opened_at: float
    client: Client
    version: str
    seldom: Reading | None = None


@dataclass(frozen=True, slots=True)
class LiveReading:
    """A reading with what it cost."""

    reading: Reading
    version: str
    requests: int
    received_bytes: int
    skew_seconds: float | None
    """How far the cluster's clock is ahead; None where it does not tell the time."""


_kept: dict[str, _Kept] = {}


def cluster_read(source: ClusterSource) -> LiveReading:
    """Read a cluster; raise what ``gangdash.kube`` raises, and begin anew with the next poll then."""
    try:
        kept = _connection(source)
        requests, received = kept.client.requests, kept.client.received_bytes
        reading = read_cluster(kept.client, previous=kept.seldom, seldom=SLOW_POLLS * _poll_interval())
    except KubeError:
        forget(source.name)
        raise
    kept.seldom = _seldom(reading)
    return LiveReading(
        reading=reading,
        version=kept.version,
        requests=kept.client.requests - requests,
        received_bytes=kept.client.received_bytes - received,
        skew_seconds=kept.client.skew_seconds,
    )


def _poll_interval() -> timedelta:
    return timedelta(seconds=settings.GANGDASH_POLL_SECONDS)


def forget(name: str) -> None:
    """Close the kept connection of a cluster, if there is one."""
    kept = _kept.pop(name, None)
    if kept is not None:
        kept.client.close()


def _connection(source: ClusterSource) -> _Kept:
    stamp = _stamp(source)
    kept = _kept.get(source.name)
    if kept is not None and kept.source == source and kept.stamp == stamp and not _is_old(kept):
        return kept
    forget(source.name)
    client = open_client(source.kubeconfig, source.context)
    kept = _Kept(source, stamp, time.monotonic(), client, _server_version(client))
    _kept[source.name] = kept
    return kept


def _is_old(kept: _Kept) -> bool:
    return time.monotonic() - kept.opened_at > KEPT_SECONDS


def _stamp(source: ClusterSource) -> Stamp | None:
    """Return what changes when the file is written or replaced; None for the pod's own account."""
    if source.kubeconfig is None:
        return None
    try:
        found = source.kubeconfig.stat()
    except OSError as error:
        raise KubeconfigError(str(source.kubeconfig), "kubeconfig cannot be used", error.strerror or "") from error
    return found.st_mtime_ns, found.st_size, found.st_ino


def _server_version(client: Client) -> str:
    """Return the server's version, empty where it does not say: nothing depends on it."""
    deadline = time.monotonic() + min(VERSION_SECONDS, READING_SECONDS)
    try:
        return msgspec.json.decode(client.get("version", "/version", {}, deadline=deadline), type=_Version).git_version
    except (KubeError, msgspec.DecodeError):
        return ""


def _seldom(reading: Reading) -> Reading:
    """Return only what the next poll may take over, so that nothing else stays in memory."""
    names = [kind.name for kind in kinds.live() if kind.seldom and kind.name in reading.items]
    return replace(
        reading,
        items={name: reading.items[name] for name in names},
        statuses={name: reading.statuses[name] for name in names},
    )
