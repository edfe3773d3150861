"""What one analysis after the other leaves behind: current explanations, timelines, the columns of gangs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from apps.clusters.models import Cluster
from apps.collector.rows import found_rows
from apps.collector.sync import rows_sync
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline, Snapshot
from apps.diagnosis.services.recording import results_record
from apps.inventory.models import Queue
from apps.workloads.models import Gang
from gangdash.documents import Amounts, CycleQueue, Diagnosis, ExplanationDocument
from tests.apps import facts
from tests.apps.answers import diagnosis, document
from tests.apps.diagnosis.conftest import NOW


@pytest.fixture
def gangs(east: Cluster) -> None:
    """Two gangs with a waiting pod each, and a queue."""
    found: list[Any] = [facts.queue("q")]
    for name in ("a", "b"):
        found += [facts.podgroup(name), facts.pod(f"{name}-0", name, gpus=4)]
    rows_sync(cluster=east, found=found_rows(facts.snapshot(*found)), now=NOW)


def record(cluster: Cluster, answer: Diagnosis, seconds: int = 0) -> str:
    """Record an answer for a moment so many seconds after the first one."""
    moment = NOW + timedelta(seconds=seconds)
    snapshot = Snapshot.objects.create(cluster=cluster, as_of=moment, engine="1", started_at=moment)
    return results_record(snapshot=snapshot, diagnosis=answer, now=moment)


def say(cluster: Cluster, *documents: ExplanationDocument, seconds: int = 0) -> str:
    return record(cluster, diagnosis(*documents), seconds)


def timeline(name: str) -> list[tuple[str, int, int | None]]:
    """Return code, opening and closing of each row of a gang, in seconds after the first moment."""
    rows = ReasonTimeline.objects.filter(gang__name=name).order_by("opened_at")
    return [
        (row.code, _seconds(row.opened_at), None if row.closed_at is None else _seconds(row.closed_at)) for row in rows
    ]


def _seconds(moment: datetime) -> int:
    return round((moment - NOW).total_seconds())


@pytest.mark.usefixtures("gangs")
def test_a_document_is_stored_letter_by_letter(east: Cluster) -> None:
    answer = document("a", sentence='Needs <b>"8"</b> GPUs — no more.')
    say(east, answer)
    assert ExplanationRecord.objects.get().document == msgspec.json.encode(answer).decode()


@pytest.mark.usefixtures("gangs")
def test_a_row_stays_open_while_the_cause_stays(east: Cluster) -> None:
    for seconds in (0, 15, 30):
        say(east, document("a", sentence=f"{seconds} s later"), seconds=seconds)
    assert timeline("a") == [("GPUS_BUSY", 0, None)]
    assert ReasonTimeline.objects.get().sentence == "0 s later"


@pytest.mark.usefixtures("gangs")
def test_another_code_closes_the_row_and_opens_the_next(east: Cluster) -> None:
    say(east, document("a"), document("b"))
    say(east, document("a", "QUEUE_LIMIT"), document("b"), seconds=15)
    say(east, document("a", "RUNNING"), document("b"), seconds=30)
    assert timeline("a") == [("GPUS_BUSY", 0, 15), ("QUEUE_LIMIT", 15, 30), ("RUNNING", 30, None)]
    assert timeline("b") == [("GPUS_BUSY", 0, None)]


@pytest.mark.usefixtures("gangs")
def test_a_gang_that_is_gone_closes_its_row_when_it_went(east: Cluster) -> None:
    say(east, document("a"), document("b"))
    Gang.objects.filter(name="a").update(gone_at=NOW + timedelta(seconds=20))
    say(east, document("b"), seconds=30)
    assert timeline("a") == [("GPUS_BUSY", 0, 20)]
    assert timeline("b") == [("GPUS_BUSY", 0, None)]


@pytest.mark.usefixtures("gangs")
def test_one_explanation_is_current_and_those_that_opened_a_row_are_kept(east: Cluster) -> None:
    for seconds, code in ((0, "GPUS_BUSY"), (15, "GPUS_BUSY"), (30, "QUEUE_LIMIT"), (45, "QUEUE_LIMIT")):
        say(east, document("a", code), seconds=seconds)
    kept = ExplanationRecord.objects.order_by("snapshot__as_of").values_list("code", "is_current", "opens_timeline")
    assert list(kept) == [("GPUS_BUSY", False, True), ("QUEUE_LIMIT", False, True), ("QUEUE_LIMIT", True, False)]


@pytest.mark.usefixtures("gangs")
def test_the_columns_of_a_gang_are_its_document(east: Cluster) -> None:
    say(east, document("a", source="Queue/q"))
    gang = Gang.objects.get(name="a")
    assert (gang.verdict, gang.code, gang.who) == ("NO_FIT", "GPUS_BUSY", "cluster_admin")
    assert (gang.certainty, gang.sentence, gang.stage) == ("proved", "a is GPUS_BUSY.", "S18")
    assert (gang.subject, gang.shard, gang.state) == ("Queue/q", "default", "waits")
    assert gang.waiting_since == datetime(2026, 11, 30, 8, 10, tzinfo=UTC)
    assert gang.diagnosed_as_of == NOW


@pytest.mark.usefixtures("gangs")
@pytest.mark.parametrize(
    "code, waiting, state",
    [
        ("RUNNING", 0, "fine"),
        ("COMPLETED", 0, "fine"),
        ("STATUS_STALE", 0, "tells"),
        ("TOPOLOGY_NOT_KEPT", 0, "tells"),
        ("IMAGE_PULL", 0, "tells"),
        ("BELOW_MINIMUM", 0, "tells"),
        ("BELOW_MINIMUM", 1, "waits"),
        ("NOT_READ", 0, "tells"),
        ("NOT_READ", 1, "waits"),
        ("RECLAIMED", 1, "waits"),
        ("FITS_NOW", 1, "waits"),
    ],
)
def test_a_gang_waits_or_tells_or_is_fine(east: Cluster, code: str, waiting: int, state: str) -> None:
    Gang.objects.filter(name="a").update(pods_total=1, pods_waiting=waiting)
    say(east, document("a", code))
    assert Gang.objects.get(name="a").state == state


@pytest.mark.usefixtures("gangs")
def test_since_when_it_could_be_placed_is_kept_until_it_cannot(east: Cluster) -> None:
    seen = []
    for step, code in enumerate(("FITS_NOW", "PLACEABLE_NOT_PLACED", "GPUS_BUSY", "FITS_NOW", "WAITS_FOR_RELEASE")):
        say(east, document("a", code), seconds=15 * step)
        since = Gang.objects.get(name="a").placeable_since
        seen.append(None if since is None else _seconds(since))
    assert seen == [0, 0, None, 45, None]


@pytest.mark.usefixtures("gangs")
def test_a_gang_first_seen_stuck_did_not_become_placeable_just_now(east: Cluster) -> None:
    say(east, document("a", "SCHEDULER_DOWN"))
    assert Gang.objects.get(name="a").placeable_since is None


@pytest.mark.usefixtures("gangs")
def test_a_workload_without_a_podgroup_is_a_gang_while_it_is_told(east: Cluster) -> None:
    loose = document("loose", "NO_PODGROUP", kind="Job", uid="job-1")
    say(east, document("a"), loose)
    gang = Gang.objects.get(uid="job-1")
    assert (gang.kind, gang.name, gang.state, gang.gpus) == ("Job", "loose", "waits", None)
    say(east, document("a"), seconds=15)
    gang.refresh_from_db()
    assert gang.gone_at == NOW + timedelta(seconds=15)
    assert timeline("loose") == [("NO_PODGROUP", 0, 15)]
    say(east, document("a"), loose, seconds=30)
    assert Gang.objects.get(uid="job-1", gone_at=None).pk == gang.pk
    assert timeline("loose") == [("NO_PODGROUP", 0, 15), ("NO_PODGROUP", 30, None)]


@pytest.mark.usefixtures("gangs")
def test_queues_carry_what_the_cycle_gave_them(east: Cluster) -> None:
    nothing, eight = Amounts(0, 0, 0), Amounts(-1, -1, 8)
    use = CycleQueue("q", "default", eight, nothing, nothing)
    record(east, diagnosis(document("a"), queues=[use]))
    queue = Queue.objects.get()
    assert queue.cycle[0]["fair_share"] == {"cpu": -1, "memory": -1, "gpu": 8}
    assert (queue.cycle[0]["shard"], queue.cycle_as_of) == ("default", NOW)
    record(east, diagnosis(document("a")), 15)
    assert Queue.objects.get().cycle == []


@pytest.mark.usefixtures("gangs")
def test_recording_the_same_moment_twice_changes_nothing(east: Cluster) -> None:
    moment = Snapshot.objects.create(cluster=east, as_of=NOW, engine="1", started_at=NOW)
    answer = diagnosis(document("a"))
    assert results_record(snapshot=moment, diagnosis=answer, now=NOW) == "done"
    before = list(ExplanationRecord.objects.values()), list(ReasonTimeline.objects.values())
    assert results_record(snapshot=moment, diagnosis=diagnosis(document("a", "QUEUE_LIMIT")), now=NOW) == "done"
    assert before == (list(ExplanationRecord.objects.values()), list(ReasonTimeline.objects.values()))


@pytest.mark.usefixtures("gangs")
def test_an_older_moment_does_not_overwrite_a_newer_one(east: Cluster) -> None:
    older = Snapshot.objects.create(cluster=east, as_of=NOW, engine="1", started_at=NOW, outcome="failed")
    say(east, document("a"), seconds=15)
    Snapshot.objects.filter(pk=older.pk).update(outcome="running")
    answer = diagnosis(document("a", "QUEUE_LIMIT"))
    assert results_record(snapshot=older, diagnosis=answer, now=NOW) == "superseded"
    assert Gang.objects.get(name="a").code == "GPUS_BUSY"


@pytest.mark.usefixtures("gangs")
def test_two_clusters_with_the_same_gangs_stay_apart(east: Cluster) -> None:
    west = Cluster.objects.create(name="west", source="folder")
    rows_sync(cluster=west, found=found_rows(facts.snapshot(facts.podgroup("a"))), now=NOW)
    say(east, document("a"))
    say(west, document("a", "QUEUE_LIMIT"))
    assert set(Gang.objects.filter(name="a").values_list("cluster__name", "code")) == {
        ("east", "GPUS_BUSY"),
        ("west", "QUEUE_LIMIT"),
    }
    assert ReasonTimeline.objects.filter(closed_at=None).count() == 2
