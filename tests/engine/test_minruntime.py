"""Whose minimum run time counts, for preempt and for reclaim, and how durations are written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gangdash.engine.plugins import open_session
from gangdash.engine.rules.minruntime import MinRuntime, duration_seconds, keeps_minimum
from gangdash.engine.rules.scenario import Victim
from gangdash.engine.session import Session
from tests.engine.builders import Cluster


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("10m", 600.0),
        ("1h30m", 5400.0),
        ("1.5s", 1.5),
        ("250ms", 0.25),
        ("0", 0.0),
        ("2m0s", 120.0),
        ("", None),
        ("10", None),
        ("-5m", None),
        ("5 m", None),
        ("soon", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert duration_seconds(text) == seconds


def _session(preempt: dict[str, float], reclaim: dict[str, float], **arguments: str) -> Session:
    """Two departments of two queues each, with some minimums, one gang per leaf."""
    cluster = Cluster()
    cluster.node("n0", 4)
    for name, parent in (("d0", ""), ("d1", ""), ("a", "d0"), ("b", "d0"), ("c", "d1"), ("mid", "d0"), ("e", "mid")):
        made = cluster.queue(name, parent=parent)
        cluster.queues[-1] = replace(made, preempt_min_runtime=preempt.get(name), reclaim_min_runtime=reclaim.get(name))
    for name in ("a", "b", "c", "e"):
        cluster.gang(f"in-{name}", queue=name)
    cluster.plugin("minruntime", **arguments)
    snapshot = cluster.snapshot()
    return open_session(snapshot, snapshot.shards[0])


@pytest.mark.parametrize(
    "minimums, expected",
    [
        ({}, 5.0),
        ({"a": 60.0}, 60.0),
        ({"d0": 30.0}, 30.0),
        ({"a": 0.0, "d0": 30.0}, 0.0),
        ({"d1": 30.0}, 5.0),
    ],
)
def test_preempt_takes_the_nearest_minimum_upward(minimums: dict[str, float], expected: float) -> None:
    session = _session(minimums, {}, defaultPreemptMinRuntime="5s")
    assert MinRuntime(session).preempt_minimum(session.jobs["in-a"]) == expected


@pytest.mark.parametrize(
    "asker, victim, minimums, expected",
    [
        pytest.param("a", "b", {"b": 60.0, "d0": 30.0}, 60.0, id="siblings: the victim's own queue"),
        pytest.param("a", "b", {"d0": 30.0}, 30.0, id="then the common parent"),
        pytest.param("a", "c", {"c": 60.0, "d1": 30.0}, 30.0, id="other department: its top queue only"),
        pytest.param("a", "c", {"c": 60.0}, 5.0, id="not the leaf below it"),
        pytest.param("a", "e", {"e": 60.0, "mid": 40.0}, 40.0, id="just below the common ancestor"),
        pytest.param("a", "e", {"e": 60.0}, 5.0, id="not further down"),
        pytest.param("e", "a", {"mid": 40.0}, 5.0, id="never the asker's side"),
        pytest.param("a", "b", {}, 5.0, id="the shard's default"),
    ],
)
def test_reclaim_asks_below_the_common_ancestor(
    asker: str, victim: str, minimums: dict[str, float], expected: float
) -> None:
    session = _session({}, minimums, defaultReclaimMinRuntime="5s")
    rules = MinRuntime(session)
    assert rules.reclaim_minimum(session.jobs[f"in-{asker}"], session.jobs[f"in-{victim}"]) == expected


def test_reclaim_can_go_by_the_victims_queue() -> None:
    session = _session({}, {"e": 60.0, "mid": 40.0}, reclaimResolveMethod="queue")
    assert MinRuntime(session).reclaim_minimum(session.jobs["in-a"], session.jobs["in-e"]) == 60.0


def test_a_gang_without_a_start_is_not_protected() -> None:
    session = _session({"a": 1e9}, {"b": 1e9})
    rules = MinRuntime(session)
    assert rules.protected_until_preempt(session.jobs["in-a"]) is None
    assert rules.allows_preempt(session.jobs["in-b"], session.jobs["in-a"])
    assert rules.allows_reclaim(session.jobs["in-a"], session.jobs["in-b"])


def test_protection_ends_at_its_moment() -> None:
    session = _session({"a": 60.0}, {})
    job = session.jobs["in-a"]
    job.last_start = session.as_of - 60.0
    assert MinRuntime(session).allows_preempt(session.jobs["in-b"], job)
    job.last_start = session.as_of - 59.0
    assert not MinRuntime(session).allows_preempt(session.jobs["in-b"], job)


def test_a_missing_queue_leaves_the_default() -> None:
    session = _session({"a": 60.0}, {"b": 60.0}, defaultReclaimMinRuntime="7s", defaultPreemptMinRuntime="8s")
    job, other = session.jobs["in-a"], session.jobs["in-b"]
    job.queue = "gone"
    assert MinRuntime(session).reclaim_minimum(job, other) == 7.0
    assert MinRuntime(session).preempt_minimum(job) == 8.0


@pytest.mark.parametrize("lost, kept", [(1, True), (2, False), (3, False)])
def test_the_minimum_is_kept_pod_set_by_pod_set(lost: int, *, kept: bool) -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.gang("g", 3, minimum=2, on=["n0"] * 3)
    snapshot = cluster.snapshot()
    job = open_session(snapshot, snapshot.shards[0]).jobs["g"]
    assert keeps_minimum(Victim(job, list(job.tasks.values())[:lost])) is kept
