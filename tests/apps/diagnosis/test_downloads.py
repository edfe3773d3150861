"""The dump of a moment: the command line says on it what the store says, history included."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import call_command

from apps.clusters.models import Cluster
from apps.collector.models import Reading, ReadingContent
from apps.diagnosis import tasks
from apps.diagnosis.models import ExplanationRecord, Snapshot
from apps.diagnosis.services.downloads import dump_name, snapshot_dump
from apps.errors import ApplicationError
from apps.workloads.models import Gang
from gangdash.engine.model.digest import snapshot_digest
from gangdash.snapshot.archive import load_snapshot
from tests.apps import raw
from tests.apps.diagnosis.conftest import NOW, Store

OBJECTS = raw.cluster(
    raw.gang("fits"),
    raw.gang("huge", pods=3, gpus=8),
    raw.gang("runs", gpus=4, on="n1"),
    raw.gang("lost", queue="no-such-queue"),
)


def moments(store: Store) -> Snapshot:
    """Diagnose the same objects twice, so that the second moment has a history."""
    for minutes in (0, 2):
        with time_machine.travel(NOW + timedelta(minutes=minutes), tick=False):
            store(OBJECTS, NOW)
            Reading.objects.update(confirmed_at=NOW + timedelta(minutes=minutes))
            tasks.diagnose_due()
    return Snapshot.objects.order_by("-as_of")[0]


def cli(path: Path) -> dict[str, Any]:
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("diagnose", str(path), format="json", all=True, stdout=out)
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def test_the_command_line_says_the_same_on_the_dump(east: Cluster, store: Store, tmp_path: Path) -> None:
    snapshot = moments(store)
    file = tmp_path / dump_name(snapshot=snapshot)
    file.write_bytes(snapshot_dump(snapshot=snapshot))
    said = cli(file)
    stored = {record.gang.uid: record for record in ExplanationRecord.objects.filter(is_current=True)}
    assert len(stored) == 4
    assert said["digest"] == snapshot.digest
    for explanation in said["explanations"]:
        assert json.dumps(explanation) == json.dumps(stored[explanation["gang"]["uid"]].data())
    # Without the history the gang that fits would only be about to start.
    assert stored["gang-team-a-fits"].verdict == "STUCK"


def test_the_history_is_part_of_the_dump_and_of_its_digest(east: Cluster, store: Store, tmp_path: Path) -> None:
    snapshot = moments(store)
    content = json.loads(gzip.decompress(snapshot_dump(snapshot=snapshot)))
    since = content["history"]["gang-team-a-fits"]["placeable_since"]
    assert since.startswith("2026-11-30T09:00:00")
    assert content["history"]["gang-team-a-fits"]["last_verdict"] == "WILL_START"
    content["history"] = {}
    other = tmp_path / "other.json"
    other.write_text(json.dumps(content))
    assert snapshot_digest(load_snapshot(other)) != snapshot.digest


def test_the_same_moment_gives_the_same_bytes(east: Cluster, store: Store) -> None:
    snapshot = moments(store)
    assert snapshot_dump(snapshot=snapshot) == snapshot_dump(snapshot=snapshot)


@pytest.mark.parametrize("model", [Reading, ReadingContent])
def test_a_moment_whose_objects_are_gone_says_so(east: Cluster, store: Store, model: Any) -> None:
    moments(store)
    model.objects.all().delete()
    with pytest.raises(ApplicationError) as refusal:
        snapshot_dump(snapshot=Snapshot.objects.order_by("-as_of")[0])
    assert refusal.value.code == "dump_expired"
    assert Gang.objects.get(name="huge").sentence
