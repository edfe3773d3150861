"""A store with two clusters, Alice who sees both, and Bob who sees the namespace team-a of the cluster east."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.cache import cache
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.clusters.models import Cluster
from apps.clusters.services import poll_run_finish, poll_run_start
from apps.collector.rows import found_rows
from apps.collector.sync import rows_sync
from apps.diagnosis.models import Snapshot
from apps.diagnosis.services.recording import results_record
from gangdash.documents import HolderEntry
from gangdash.kube.reading import KindStatus
from tests.apps import facts
from tests.apps.answers import diagnosis, document
from tests.apps.conftest import alice, bob

__all__ = ["alice", "bob"]

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_throttle_left_over() -> None:
    """Forget who asked how often in the test before."""
    cache.clear()


def asking(user: User | None) -> APIClient:
    """Return a client with the session of this user."""
    client = APIClient()
    if user is not None:
        client.force_login(user)
    return client


@pytest.fixture
def as_alice(alice: User) -> APIClient:
    return asking(alice)


@pytest.fixture
def as_bob(bob: User) -> APIClient:
    return asking(bob)


@pytest.fixture
def scene(db: None) -> dict[str, Cluster]:
    """Store two clusters with waiting and running gangs of two teams, diagnosed a moment ago."""
    return {name: _cluster(name) for name in ("east", "west")}


def _cluster(name: str) -> Cluster:
    cluster = Cluster.objects.create(name=name, source="folder")
    found: list[Any] = [facts.queue("q"), facts.queue("r"), facts.node("n1")]
    for team in ("team-a", "team-b"):
        for gang, gpus, on in (("big", 8, ""), ("small", 1, ""), ("runs", 4, "n1")):
            found += [facts.podgroup(gang, namespace=team, queue="q" if team == "team-a" else "r")]
            found += [facts.pod(gang, gang, namespace=team, gpus=gpus, on=on)]
    rows_sync(cluster=cluster, found=found_rows(facts.snapshot(*found)), now=NOW)
    kinds = [KindStatus("Pod", True, NOW, 6), KindStatus("Event", False, NOW, None, "403", "not allowed")]
    run = poll_run_start(cluster=cluster, now=NOW)
    poll_run_finish(run=run, kinds=kinds, now=NOW, as_of=NOW, server_version="v1.34.1", skew_seconds=0.0)
    _say(cluster, NOW, "GPUS_BUSY")
    _say(cluster, NOW + timedelta(seconds=15), "QUEUE_LIMIT")
    cluster.refresh_from_db()
    return cluster


def _say(cluster: Cluster, moment: datetime, code: str) -> None:
    documents = []
    for team in ("team-a", "team-b"):
        holders = [HolderEntry("team-b/runs", 4, "no: non-preemptible"), HolderEntry("team-a/runs", 4, "yes")]
        documents += [
            document("big", code, namespace=team, holders=holders, sentence=f"Held by team-b/runs, {code}."),
            document("small", namespace=team, waiting_since=None),
            document("runs", "RUNNING", namespace=team, waiting_since=None),
        ]
    snapshot = Snapshot.objects.create(cluster=cluster, as_of=moment, engine="1", started_at=moment)
    results_record(snapshot=snapshot, diagnosis=diagnosis(*documents), now=moment)
