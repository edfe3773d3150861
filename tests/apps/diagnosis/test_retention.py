"""What is kept is what answers rest on; the rest goes when its time is over."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from apps.accounts.models import User
from apps.clusters.models import Cluster
from apps.collector.models import Reading
from apps.diagnosis import tasks
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline, Snapshot, Upload
from apps.diagnosis.services.retention import readings_prune
from apps.workloads.models import Gang
from tests.apps import raw
from tests.apps.diagnosis.conftest import NOW, Store


@pytest.fixture
def clock() -> Iterator[Any]:
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


def read(store: Store, clock: Any, minutes: float, *gangs: Any) -> None:
    clock.move_to(NOW + timedelta(minutes=minutes))
    store(raw.cluster(*gangs), NOW + timedelta(minutes=minutes))
    tasks.diagnose_due()


def minutes_kept() -> list[int]:
    moments = Reading.objects.order_by("as_of").values_list("as_of", flat=True)
    return [round((moment - NOW).total_seconds() / 60) for moment in moments]


def test_of_each_minute_one_reading_is_kept_and_each_that_changed_a_reason(
    east: Cluster, store: Store, clock: Any
) -> None:
    waits = raw.gang("wait", pods=3, gpus=8)
    read(store, clock, 0, waits)
    read(store, clock, 0.25, waits, raw.node("n3", gpus=0))
    read(store, clock, 0.5, waits, raw.node("n4", gpus=0))
    read(store, clock, 0.75, waits, raw.node("n5", gpus=0))
    read(store, clock, 1, waits)
    # 0 opened the timeline row, 0.75 is the last of its minute, 1 is current.
    assert seconds_kept() == [0, 45, 60]
    assert Snapshot.objects.count() == 5


def test_after_a_day_one_reading_of_each_hour_is_kept(east: Cluster, store: Store, clock: Any) -> None:
    waits = raw.gang("wait", pods=3, gpus=8)
    for minutes in (0, 10, 20, 50, 60, 70):
        read(store, clock, minutes, waits, raw.node(f"n{minutes}", gpus=0))
    clock.move_to(NOW + timedelta(hours=26))
    tasks.prune()
    # 0 opened the timeline row, 50 is the last of its hour, 70 is current and the last of the next.
    assert minutes_kept() == [0, 50, 70]


def test_what_replays_may_take_is_bounded_by_size_and_the_newest_stay(
    east: Cluster, store: Store, clock: Any, settings: Any
) -> None:
    settings.GANGDASH_KEEP_SNAPSHOT_MEGABYTES = 3
    for minutes in range(6):
        read(store, clock, minutes, raw.gang("wait", pods=3, gpus=8), raw.node(f"n{minutes}", gpus=0))
    Reading.objects.update(packed_bytes=1_000_000)
    tasks.prune()
    assert minutes_kept() == [3, 4, 5]


def test_what_was_known_before_a_moment_goes_with_its_objects(
    east: Cluster, store: Store, clock: Any, settings: Any
) -> None:
    settings.GANGDASH_KEEP_SNAPSHOT_HOURS = 6
    read(store, clock, 0, raw.gang("wait", pods=3, gpus=8))
    read(store, clock, 10, raw.gang("wait", pods=3, gpus=8), raw.node("n3", gpus=0))
    clock.move_to(NOW + timedelta(hours=7))
    tasks.prune()
    first, second = Snapshot.objects.order_by("as_of")
    assert (first.reading, first.history) == (None, {})
    assert second.history


def seconds_kept() -> list[int]:
    moments = Reading.objects.order_by("as_of").values_list("as_of", flat=True)
    return [round((moment - NOW).total_seconds()) for moment in moments]


def test_dumps_of_old_changes_go_and_their_explanations_stay(
    east: Cluster, store: Store, clock: Any, settings: Any
) -> None:
    settings.GANGDASH_KEEP_SNAPSHOT_HOURS = 6
    read(store, clock, 0, raw.gang("wait", pods=3, gpus=8))
    read(store, clock, 10, raw.gang("wait", pods=1))
    clock.move_to(NOW + timedelta(hours=5))
    tasks.prune()
    assert minutes_kept() == [0, 10]
    clock.move_to(NOW + timedelta(hours=7))
    tasks.prune()
    tasks.prune()
    assert minutes_kept() == [10]  # the current one is needed, however old
    assert ExplanationRecord.objects.count() == 2
    assert ReasonTimeline.objects.count() == 2


def test_a_reading_that_is_being_analysed_or_waits_for_it_is_never_pruned(
    east: Cluster, store: Store, clock: Any
) -> None:
    store(raw.cluster(), NOW)
    reading = Reading.objects.get()
    Snapshot.objects.create(cluster=east, reading=reading, as_of=NOW, engine="1", started_at=NOW)
    Reading.objects.update(claimed_at=NOW)
    store(raw.cluster(raw.gang("a")), NOW + timedelta(minutes=1))
    assert readings_prune(cluster=east, now=NOW + timedelta(minutes=2)) == 0
    assert readings_prune(cluster=east, now=NOW + timedelta(days=100)) == 0


def test_history_of_gangs_that_are_long_gone_goes(east: Cluster, store: Store, clock: Any, settings: Any) -> None:
    settings.GANGDASH_KEEP_HISTORY_DAYS = 30
    read(store, clock, 0, raw.gang("a"), raw.gang("b"))
    read(store, clock, 1, raw.gang("b"))
    clock.move_to(NOW + timedelta(days=29))
    tasks.prune()
    assert Gang.objects.count() == 2
    clock.move_to(NOW + timedelta(days=31))
    tasks.prune()
    assert [gang.name for gang in Gang.objects.all()] == ["b"]
    assert ReasonTimeline.objects.filter(gang__name="b").exists()


def test_uploads_go_after_their_time(alice: User, clock: Any, settings: Any) -> None:
    settings.GANGDASH_KEEP_UPLOAD_HOURS = 24
    Upload.objects.create(user=alice, file_name="x", state="done", packed=b"objects")
    tasks.prune()
    assert bytes(Upload.objects.get().packed) == b""
    clock.move_to(NOW + timedelta(hours=25))
    tasks.prune()
    assert not Upload.objects.exists()
