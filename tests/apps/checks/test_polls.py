"""Checks and workloads over a real HTTP API server: they come with the poll and cost it nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from apps.chains.models import ChainLink, TopObject
from apps.checks.models import ClusterCheck
from apps.checks.rules import CHECKS
from apps.clusters.models import PollRun
from apps.collector import connections, services, tasks
from apps.collector.signals import reading_done
from gangdash.simulator.server import FakeApiServer
from tests.apps import raw
from tests.chain import world as w

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApiServer]:
    settings.GANGDASH_CLUSTERS_DIR, settings.GANGDASH_KUBECONFIG = tmp_path, None
    monkeypatch.setattr(services, "diagnosis_ask", lambda: None)
    with FakeApiServer([*raw.cluster(), *w.served()]) as server:
        server.kubeconfig(tmp_path / "east.yaml")
        yield server
    connections.forget("east")


def _poll(commit: DjangoCaptureOnCommitCallbacks) -> PollRun:
    with commit(execute=True):
        tasks.poll_clusters()
    return PollRun.objects.order_by("-pk")[0]


def test_poll_brings_checks_and_workloads(
    api: FakeApiServer, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    run = _poll(django_capture_on_commit_callbacks)

    assert run.outcome == "read"
    assert ClusterCheck.objects.count() == len(CHECKS)
    assert TopObject.objects.get().name == "llm"
    assert ChainLink.objects.filter(kind="PodClique", gangs=["pg-llm-0"]).exists()


def test_kind_that_may_not_be_read_makes_checks_that_cannot_tell(
    api: FakeApiServer, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    api.faults.forbid("deployments")
    _poll(django_capture_on_commit_callbacks)
    row = ClusterCheck.objects.get(check_id="V10")

    assert (row.state, row.evidence) == ("unknown", "Deployment was not read (403)")


def test_receiver_that_fails_costs_the_poll_nothing(
    api: FakeApiServer, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    def broken(**_: object) -> None:
        raise RuntimeError("broken")

    others = reading_done.receivers
    reading_done.receivers = []
    reading_done.connect(broken)
    reading_done.receivers = [*reading_done.receivers, *others]
    reading_done.sender_receivers_cache.clear()
    try:
        assert _poll(django_capture_on_commit_callbacks).outcome == "read"
    finally:
        reading_done.disconnect(broken)
    assert ClusterCheck.objects.count() == len(CHECKS), "the other receivers go on"
