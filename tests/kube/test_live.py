"""The same reading against a real API server, named by GANGDASH_LIVE_KUBECONFIG; it only reads."""

from __future__ import annotations

import os

import pytest

from gangdash.engine.model.digest import snapshot_digest
from gangdash.kube import kinds
from gangdash.kube.client import open_client
from gangdash.kube.listing import read_cluster
from gangdash.kube.reading import Reading
from gangdash.snapshot.archive import FILE_LIMITS, load_bytes, snapshot_of, write_dump

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def reading() -> Reading:
    path = os.environ.get("GANGDASH_LIVE_KUBECONFIG", "")
    if not path:
        pytest.skip("GANGDASH_LIVE_KUBECONFIG names no kubeconfig")
    return read_cluster(open_client(path, os.environ.get("GANGDASH_LIVE_CONTEXT", "")))


def test_each_kind_is_read_or_says_why_not(reading: Reading) -> None:
    assert reading.statuses.keys() == {kind.name for kind in kinds.live()}
    assert reading.items.keys() | reading.not_read.keys() == kinds.by_name().keys()
    assert {status.reason for status in reading.statuses.values()} <= {"", "403", "not served"}


def test_nodes_and_pods_are_read_without_an_oddity(reading: Reading) -> None:
    snapshot = snapshot_of(reading)

    assert {"Node", "Pod"} <= snapshot.read
    assert [node.name for node in snapshot.nodes if not node.allocatable] == []
    assert snapshot.oddities == ()


def test_saved_reading_of_a_real_server_comes_back(reading: Reading) -> None:
    saved = load_bytes(write_dump(reading), name="saved", limits=FILE_LIMITS)

    assert snapshot_digest(snapshot_of(saved)) == snapshot_digest(snapshot_of(reading))
