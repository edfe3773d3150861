"""Gangs about which nothing changed cost no explanation at the next analysis, and get the same one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine

import gangdash.replay
from apps.clusters.models import Cluster
from apps.collector.models import Reading
from apps.diagnosis import tasks
from apps.diagnosis.models import ExplanationRecord, Snapshot
from tests.apps import raw
from tests.apps.diagnosis.conftest import NOW, Store

LATER = NOW + timedelta(minutes=10)


def full() -> list[raw.Object]:
    """Return a cluster with a gang that is larger than any node."""
    return raw.cluster(raw.gang("wait", gpus=16))


def analysed_at(moment: Any) -> Snapshot:
    """Confirm the newest reading at a moment and analyse it."""
    Reading.objects.update(confirmed_at=moment)
    with time_machine.travel(moment, tick=False):
        tasks.diagnose_due()
    return Snapshot.objects.order_by("-as_of")[0]


def no_explanations(*_: Any, **__: Any) -> list[Any]:
    raise AssertionError("explained again")


def test_unchanged_objects_are_not_explained_again(
    east: Cluster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(full(), NOW)
    first = analysed_at(NOW)
    before = ExplanationRecord.objects.get(is_current=True).data()
    assert before["code"] == "NODE_TOO_SMALL"
    monkeypatch.setattr(gangdash.replay, "explain_in", no_explanations)
    second = analysed_at(LATER)
    assert (second.outcome, second.as_of) == ("done", LATER)
    after = ExplanationRecord.objects.get(is_current=True).data()
    assert (after["as_of"], after["digest"]) == ("2026-11-30T09:10:00Z", second.digest)
    assert {**after, "as_of": before["as_of"], "digest": first.digest} == before


def test_what_turns_with_time_is_explained_again(east: Cluster, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store(raw.cluster(raw.gang("wait", gpus=8)), NOW)
    analysed_at(NOW)
    monkeypatch.setattr(gangdash.replay, "explain_in", no_explanations)
    assert analysed_at(LATER).outcome == "failed"


def test_other_objects_are_explained_again(east: Cluster, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store(full(), NOW)
    analysed_at(NOW)
    store([*full(), raw.node("n3")], LATER)
    monkeypatch.setattr(gangdash.replay, "explain_in", no_explanations)
    assert analysed_at(LATER).outcome == "failed"


def test_answers_that_are_not_all_kept_are_not_taken_over(east: Cluster, store: Store) -> None:
    store(full(), NOW)
    analysed_at(NOW)
    ExplanationRecord.objects.update(is_current=False)
    assert analysed_at(LATER).outcome == "done"
    assert ExplanationRecord.objects.get(is_current=True).data()["code"] == "NODE_TOO_SMALL"
