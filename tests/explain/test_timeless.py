"""Answers that are kept while only time passes are those that would have been worked out again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gangdash import timeless
from gangdash.documents import ExplanationDocument
from gangdash.documents.times import stamp
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.replay import replay
from tests.engine.builders import Cluster
from tests.explain.helpers import causes, recorded, scenes

MINUTE = 60.0


def later(snapshot: ClusterSnapshot, seconds: float) -> ClusterSnapshot:
    return replace(snapshot, as_of=snapshot.as_of + seconds)


def kept(documents: list[ExplanationDocument], snapshot: ClusterSnapshot, digest: str) -> list[ExplanationDocument]:
    return timeless.restamped(documents, as_of=stamp(snapshot.as_of) or "", digest=digest)


@pytest.mark.parametrize("seconds", [MINUTE, 3 * 86_400])
def test_kept_causes_are_those_of_the_later_moment(seconds: float) -> None:
    held = 0
    for snapshot in (*recorded(), *scenes()):
        before, then = causes(snapshot), later(snapshot, seconds)
        if timeless.holds(then, before):
            held += 1
            assert causes(then) == kept(before, then, "")
    assert held > 50


def test_kept_answers_with_their_fixes_are_those_of_the_later_moment() -> None:
    held = 0
    for snapshot in recorded()[::9]:
        before, then = replay(snapshot, include_all=True), later(snapshot, 10 * MINUTE)
        again = replay(then, include_all=True)
        assert replay(then, include_all=True, known=before.explanations) == again
        held += timeless.holds(then, before.explanations)
    assert held > 3


def full() -> Cluster:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("hold", 1, 8, kind="build", on=["n1"])
    cluster.gang("g", 1, 8)
    return cluster


def waiting(cluster: Cluster) -> list[ExplanationDocument]:
    return [entry for entry in causes(cluster.snapshot()) if entry.gang.name == "g"]


def test_full_cluster_stays_full() -> None:
    cluster = full()
    assert timeless.holds(cluster.snapshot(), waiting(cluster))


def test_gang_with_a_preemption_delay_turns_with_time() -> None:
    cluster = full()
    cluster.gang("late", 1, 1, group={"preemption_delay": 300.0})
    assert not timeless.holds(cluster.snapshot(), waiting(cluster))


def test_terminating_pod_turns_with_time() -> None:
    cluster = full()
    cluster.pod("", 5, 1, on="n1", deleted=5)
    assert not timeless.holds(cluster.snapshot(), waiting(cluster))


def test_minimum_run_time_turns_with_time() -> None:
    cluster = full()
    cluster.queue("q")
    cluster.queues[-1] = replace(cluster.queues[-1], reclaim_min_runtime=60.0)
    assert not timeless.holds(cluster.snapshot(), waiting(cluster))


def test_gang_that_fits_may_become_stuck() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("g", 1, 8, age=5)
    assert not timeless.holds(cluster.snapshot(), waiting(cluster))
