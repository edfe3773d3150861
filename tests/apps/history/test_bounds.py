"""The database does not grow without bound: neither with time nor with how often things change."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db.models import QuerySet

from apps.clusters.models import Cluster
from apps.collector import tasks as collector
from apps.collector import thinning
from apps.diagnosis import tasks as diagnosis
from apps.diagnosis.models import ReasonTimeline
from apps.diagnosis.services import retention
from apps.inventory.models import CapacitySample, StateChange
from apps.workloads.models import Gang
from tests.apps import raw
from tests.apps.diagnosis.conftest import NOW, Store


def rows() -> dict[str, int]:
    """Return how many rows each table of the project has."""
    ours = (model for model in apps.get_models() if model.__module__.startswith("apps."))
    return {model.__name__: QuerySet(model).count() for model in ours}


def test_a_week_in_which_everything_changes_all_the_time_stays_bounded(
    east: Cluster, store: Store, clock: Any, settings: Any
) -> None:
    settings.GANGDASH_KEEP_SNAPSHOT_HOURS, settings.GANGDASH_KEEP_HISTORY_DAYS = 12, 1
    settings.GANGDASH_KEEP_POLL_DAYS = 1
    counts = []
    for step in range(7 * 4 + 1):
        moment = NOW + timedelta(hours=6 * step)
        clock.move_to(moment)
        again = raw.gang("again", pods=1 + step % 3, gpus=8, uid=f"uid-{step}")
        store(raw.cluster(raw.node("n3", cordoned=bool(step % 2)), again, raw.gang("same", pods=3, gpus=8)), moment)
        diagnosis.diagnose_due()
        if step % 4 == 0:
            collector.prune()
            diagnosis.prune()
            counts.append(rows())
    # What changes comes round every three days.
    assert counts[4] == counts[7]
    assert counts[7]["Reading"] <= 4
    assert counts[7]["Attempt"] == counts[7]["Gang"] <= 7


def test_of_old_samples_one_an_hour_stays(east: Cluster, clock: Any) -> None:
    for minutes in range(0, 180, 20):
        CapacitySample.objects.create(cluster=east, at=NOW + timedelta(minutes=minutes))
    assert thinning.capacity_thin(now=NOW + timedelta(hours=26)) == 4
    left = CapacitySample.objects.order_by("at").values_list("at", flat=True)
    assert [(at - NOW).total_seconds() / 60 for at in left] == [0, 60, 120, 140, 160]


def test_a_flapping_node_keeps_its_newest_changes_and_each_subject_its_state(
    east: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thinning, "STATE_CHANGES_MAX", 3)
    change = {"cluster": east, "kind": "Node"}
    StateChange.objects.create(**change, subject="steady", at=NOW - timedelta(days=99), state="ready")
    for minute in range(10):
        at = NOW + timedelta(minutes=minute)
        StateChange.objects.create(**change, subject="flaps", at=at, state="ready" if minute % 2 else "cordoned")
    assert thinning.states_prune(now=NOW) == 6
    left = StateChange.objects.filter(subject="flaps").order_by("at").values_list("at", flat=True)
    assert [(at - NOW).total_seconds() / 60 for at in left] == [6, 7, 8, 9]
    assert StateChange.objects.filter(subject="steady").exists()


def test_gone_gangs_and_closed_reasons_have_a_number_beside_their_age(
    east: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "GONE_GANGS_MAX", 2)
    monkeypatch.setattr(retention, "TIMELINE_ROWS_MAX", 3)
    for number in range(4):
        moment = NOW + timedelta(minutes=number)
        row = {"cluster": east, "namespace": "a", "first_seen_at": moment, "last_seen_at": moment}
        Gang.objects.create(**row, uid=f"gone-{number}", name="gone", gone_at=moment)
    stays = Gang.objects.create(**row, uid="stays", name="stays")
    for number in range(5):
        opened = NOW + timedelta(minutes=number)
        ReasonTimeline.objects.create(gang=stays, opened_at=opened, closed_at=opened + timedelta(seconds=30))
    retention.history_prune(now=NOW)
    assert set(Gang.objects.values_list("uid", flat=True)) == {"gone-2", "gone-3", "stays"}
    assert ReasonTimeline.objects.count() == 3
