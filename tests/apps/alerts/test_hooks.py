"""What alerts rest on in the apps below: an analysis that tells when it is done, and reasons that name their object."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.clusters.models import Cluster
from apps.diagnosis.models import ReasonTimeline, Snapshot
from apps.diagnosis.services.recording import results_record
from apps.diagnosis.signals import diagnosis_done
from tests.apps.answers import diagnosis, document

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


@pytest.fixture
def east() -> Cluster:
    return Cluster.objects.create(name="east", source="folder")


@pytest.fixture
def told() -> Iterator[list[Any]]:
    """Return what a receiver of the signal was told."""
    heard: list[Any] = []

    def hear(cluster: Cluster, snapshot: Snapshot, **_signal: Any) -> None:
        heard.append((cluster.name, snapshot.as_of))

    diagnosis_done.connect(hear)
    yield heard
    diagnosis_done.disconnect(hear)


def record(cluster: Cluster, at: datetime) -> None:
    snapshot = Snapshot.objects.create(cluster=cluster, as_of=at, engine="1", started_at=NOW)
    results_record(snapshot=snapshot, diagnosis=diagnosis(document("big", source="Topology/t")), now=NOW)


def test_an_analysis_tells_when_its_answers_are_in_the_store(
    east: Cluster, told: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        record(east, NOW)
        assert told == []
    assert told == [("east", NOW)]


def test_an_overtaken_analysis_tells_nothing(
    east: Cluster, told: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    record(east, NOW)
    with django_capture_on_commit_callbacks(execute=True):
        record(east, NOW - timedelta(minutes=1))
    assert told == []


def test_a_stretch_of_reason_names_the_object_of_its_beginning(east: Cluster) -> None:
    record(east, NOW)
    assert ReasonTimeline.objects.get().subject == "Topology/t"
