"""Which moment is analysed when, and that losing, repeating or killing an analysis changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from celery.exceptions import SoftTimeLimitExceeded

from apps.clusters.models import Cluster
from apps.collector.models import Reading
from apps.diagnosis import tasks
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline, Snapshot
from apps.diagnosis.services import analysis, recording
from apps.diagnosis.services.analysis import Due, analyses_due, analysis_claim, analysis_due
from apps.workloads.models import Gang
from tests.apps import raw
from tests.apps.diagnosis.conftest import NOW, Store

WAITING = raw.cluster(raw.gang("wait", pods=3, gpus=8))
RUNNING = raw.cluster(raw.gang("run", gpus=8, on="n1"))


@pytest.fixture(autouse=True)
def clock() -> Iterator[Any]:
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


def diagnose() -> Snapshot:
    """Run the tick and return the newest analysed moment."""
    tasks.diagnose_due()
    return Snapshot.objects.order_by("-as_of", "-pk")[0]


def due_of(cluster: Cluster, now: datetime) -> Due:
    due = analysis_due(cluster=cluster, now=now)
    assert due is not None
    return due


def test_nothing_is_due_before_the_first_reading(east: Cluster) -> None:
    assert analyses_due(now=NOW) == []
    tasks.diagnose_due()
    assert not Snapshot.objects.exists()


def test_a_reading_is_diagnosed_and_every_gang_has_its_explanation(east: Cluster, store: Store) -> None:
    store(WAITING, NOW)
    snapshot = diagnose()
    assert (snapshot.outcome, snapshot.gangs, snapshot.waiting, snapshot.as_of) == ("done", 1, 1, NOW)
    record = ExplanationRecord.objects.get()
    gang = Gang.objects.get()
    assert (gang.verdict, gang.code, gang.sentence) == (record.verdict, record.code, record.data()["sentence"])
    assert record.data()["digest"] == snapshot.digest
    cluster = Cluster.objects.get()
    assert (cluster.diagnosed_as_of, cluster.diagnosed_digest) == (NOW, snapshot.digest)


def test_the_same_reading_is_analysed_once(east: Cluster, store: Store) -> None:
    store(WAITING, NOW)
    diagnose()
    before = _rows()
    tasks.diagnose_due()
    tasks.diagnose_cluster(east.pk)
    assert _rows() == before


def _rows() -> list[Any]:
    models = (Snapshot, ExplanationRecord, ReasonTimeline, Gang, Cluster)
    return [list(model.objects.order_by("pk").values()) for model in models]


def test_an_unchanged_cluster_is_analysed_again_only_while_something_waits(
    east: Cluster, store: Store, clock: Any
) -> None:
    for objects, again in ((WAITING, True), (RUNNING, False)):
        store(objects, NOW)
        diagnose()
        Reading.objects.update(confirmed_at=NOW + timedelta(seconds=29))
        assert analysis_due(cluster=east, now=NOW) is None
        Reading.objects.update(confirmed_at=NOW + timedelta(seconds=31))
        assert (analysis_due(cluster=east, now=NOW) is not None) is again
        Reading.objects.all().delete()
        Snapshot.objects.all().delete()


def test_an_analysis_that_takes_long_is_repeated_less_often(east: Cluster, store: Store) -> None:
    store(WAITING, NOW)
    diagnose()
    Snapshot.objects.update(started_at=NOW, ended_at=NOW + timedelta(minutes=2))
    Reading.objects.update(confirmed_at=NOW + timedelta(minutes=7))
    assert analysis_due(cluster=east, now=NOW) is None
    Reading.objects.update(confirmed_at=NOW + timedelta(minutes=9))
    assert analysis_due(cluster=east, now=NOW) is not None


def test_time_alone_can_change_a_verdict(east: Cluster, store: Store, clock: Any) -> None:
    """A gang that fits and is not placed is late after a while, though no object has changed."""
    store(raw.cluster(raw.gang("fits")), NOW)
    diagnose()
    first = Gang.objects.get()
    assert first.verdict == "WILL_START"
    assert first.placeable_since == NOW
    for minutes in (1, 2):
        moment = NOW + timedelta(minutes=minutes)
        clock.move_to(moment)
        Reading.objects.update(confirmed_at=moment)
        assert diagnose().as_of == moment
    later = Gang.objects.get()
    assert later.verdict == "STUCK"
    assert later.placeable_since == NOW


def test_one_of_two_claims_wins(east: Cluster, store: Store) -> None:
    store(WAITING, NOW)
    due = due_of(east, NOW)
    assert analysis_claim(due=due, now=NOW) is not None
    assert analysis_claim(due=due, now=NOW) is None
    assert analysis_due(cluster=east, now=NOW) is None


def test_a_newer_reading_waits_until_the_running_analysis_ends(east: Cluster, store: Store) -> None:
    store(WAITING, NOW)
    analysis_claim(due=due_of(east, NOW), now=NOW)
    later = NOW + timedelta(seconds=15)
    store(RUNNING, later)
    assert analysis_due(cluster=east, now=later) is None
    assert Reading.objects.count() == 2


def test_a_reading_that_was_overtaken_cannot_be_claimed(east: Cluster, store: Store) -> None:
    store(WAITING, NOW)
    due = due_of(east, NOW)
    store(RUNNING, NOW + timedelta(seconds=15))
    assert analysis_claim(due=due, now=NOW) is None
    assert not Snapshot.objects.exists()


def test_the_newest_moment_wins_over_one_that_took_longer(east: Cluster, store: Store) -> None:
    store(WAITING, NOW)
    slow = analysis_claim(due=due_of(east, NOW), now=NOW)
    assert slow is not None
    later = NOW + timedelta(seconds=15)
    store(RUNNING, later)
    quick = Snapshot.objects.create(cluster=east, as_of=later, engine="0", started_at=later, outcome="done")
    assert analysis.analysis_run(snapshot=slow) == "superseded"
    assert not ExplanationRecord.objects.exists()
    assert Cluster.objects.get().diagnosed_as_of is None
    assert Snapshot.objects.filter(outcome="done").get() == quick


def test_an_analysis_that_is_killed_while_writing_is_done_again_with_the_history_it_had(
    east: Cluster, store: Store, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(WAITING, NOW)
    Gang.objects.update(last_ran_at=NOW - timedelta(hours=1))
    with monkeypatch.context() as patch:
        patch.setattr(recording, "_queues_write", _killed)
        with pytest.raises(KeyboardInterrupt):
            tasks.diagnose_cluster(east.pk)
    held = Snapshot.objects.get()
    assert held.outcome == "running"
    assert not ExplanationRecord.objects.exists()
    assert Gang.objects.get().verdict == ""
    tasks.diagnose_due()
    assert Snapshot.objects.get().outcome == "running"  # still locked
    clock.shift(timedelta(minutes=17))
    Gang.objects.update(last_ran_at=None)
    again = diagnose()
    assert (again.pk, again.outcome, again.attempts) == (held.pk, "done", 2)
    assert again.history == held.history
    assert ExplanationRecord.objects.count() == 1


def _killed(*_arguments: Any) -> None:
    raise KeyboardInterrupt


def broken(*_arguments: Any, **_options: Any) -> None:
    raise ZeroDivisionError("by a fault of ours")


def out_of_time(*_arguments: Any, **_options: Any) -> None:
    raise SoftTimeLimitExceeded


@pytest.mark.parametrize("fault, words", [(broken, "ZeroDivisionError: by a fault"), (out_of_time, "900 s")])
def test_an_analysis_that_breaks_says_why_and_the_next_waits_longer_each_time(
    store: Store, clock: Any, monkeypatch: pytest.MonkeyPatch, fault: Any, words: str
) -> None:
    store(WAITING, NOW)
    monkeypatch.setattr(analysis, "replay", fault)
    waits = []
    for attempt in range(3):
        moment = NOW + timedelta(hours=attempt)
        clock.move_to(moment)
        store(raw.cluster(raw.gang(f"wait-{attempt}")), moment)
        snapshot = diagnose()
        assert snapshot.outcome == "failed"
        assert words in snapshot.detail
        assert snapshot.retry_at is not None
        waits.append((snapshot.retry_at - moment).total_seconds())
        tasks.diagnose_due()
        assert Snapshot.objects.count() == attempt + 1
    assert waits == [30, 60, 120]


def test_a_good_analysis_ends_the_back_off(
    east: Cluster, store: Store, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(WAITING, NOW)
    with monkeypatch.context() as patch:
        patch.setattr(analysis, "replay", broken)
        diagnose()
    clock.shift(31)
    assert diagnose().outcome == "done"


def test_a_cluster_that_is_no_longer_read_is_left_alone(east: Cluster, store: Store) -> None:
    store(WAITING, NOW)
    Cluster.objects.update(is_read=False)
    tasks.diagnose_due()
    tasks.diagnose_cluster(east.pk)
    assert not Snapshot.objects.exists()
