"""Reclaim on small clusters: shares, quotas, protection and what moves, one scene a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gangdash.engine.actions import reclaim
from gangdash.engine.actions.solver_trial import Ask
from gangdash.engine.actions.solver_views import part_of
from gangdash.engine.plugins import open_session
from tests.engine.builders import NOW, Cluster, counts, outcome

Scene = Callable[[Cluster], None]


def _two_queues(
    quotas: tuple[float, float], held: tuple[int, int], asked: tuple[int, int], *, node: int = 4, kind: str = "train",
    victim: str = "train",
) -> Scene:  # fmt: skip
    """One node; q0 runs ``held`` pods of so many GPUs, a gang of q1 asks."""

    def scene(cluster: Cluster) -> None:
        cluster.node("n0", node)
        cluster.queue("q0", quotas[0])
        cluster.queue("q1", quotas[1])
        for index in range(held[0]):
            cluster.gang(f"old-{index}", 1, held[1], queue="q0", on=["n0"], kind=victim, age=900 - index)
        cluster.gang("new", asked[0], asked[1], queue="q1", kind=kind)

    return scene


def _departments(quotas: tuple[float, float], asked: int) -> Scene:
    """Two departments; the second one already runs one GPU and asks for more."""

    def scene(cluster: Cluster) -> None:
        cluster.node("n0", 4)
        for name, quota in zip(("d0", "d1"), quotas, strict=True):
            cluster.queue(name, quota)
            cluster.queue(f"{name}-leaf", quota, parent=name)
        for index in range(3):
            cluster.gang(f"old-{index}", queue="d0-leaf", on=["n0"], age=900 - index)
        cluster.gang("own", queue="d1-leaf", on=["n0"])
        cluster.gang("new", 1, asked, queue="d1-leaf")

    return scene


@pytest.mark.parametrize(
    "scene, evicted, new",
    [
        pytest.param(_two_queues((2, 2), (4, 1), (2, 1)), 2, "pipelined", id="back to the quotas"),
        pytest.param(_two_queues((2, 2), (4, 1), (1, 3)), 0, "unschedulable", id="not beyond the own fair share"),
        pytest.param(_two_queues((4, 0), (4, 1), (1, 1)), 0, "unschedulable", id="a queue within its quota is left"),
        pytest.param(_two_queues((0, 4), (4, 1), (4, 1)), 4, "pipelined", id="a queue without quota gives all"),
        pytest.param(_two_queues((2, 2), (1, 4), (1, 2)), 1, "pipelined", id="the last victim may bring it below"),
        pytest.param(
            _two_queues((0, 2), (4, 1), (1, 1), victim="build"),
            0,
            "unschedulable",
            id="not from a non-preemptible gang",
        ),
        pytest.param(_two_queues((0, 1), (2, 1), (1, 2), node=2), 0, "unschedulable", id="beyond the own quota"),
        pytest.param(_two_queues((0, 1), (4, 1), (1, 1), kind="build"), 1, "pipelined", id="non-preemptible in quota"),
        pytest.param(_departments((2, 2), 1), 1, "pipelined", id="between departments"),
        pytest.param(_departments((2, 2), 2), 0, "unschedulable", id="not beyond the department's quota"),
    ],
)
def test_reclaim_follows_shares(scene: Scene, evicted: int, new: str) -> None:
    cluster = Cluster()
    scene(cluster)
    result = cluster.run("allocate", "reclaim")
    gone = [gang.name for gang in result.gangs if str(gang.outcome) == "evicted"]
    assert (len(gone), outcome(result, "new")) == (evicted, new)


def test_the_latest_gang_of_the_richest_queue_goes_first() -> None:
    cluster = Cluster()
    _two_queues((2, 2), (4, 1), (1, 1))(cluster)
    result = cluster.run("allocate", "reclaim")
    assert [outcome(result, f"old-{index}") for index in range(4)] == ["kept", "kept", "kept", "evicted"]


def test_a_whole_gang_goes_even_below_the_quota() -> None:
    cluster = Cluster()
    cluster.node("n0", 16)
    cluster.node("n1", 16)
    cluster.queue("q0", 10)
    cluster.queue("q1", 10)
    cluster.gang("old", 2, 10, queue="q0", on=["n0", "n1"])
    cluster.gang("new", 1, 10, queue="q1")
    result = cluster.run("allocate", "reclaim")
    assert counts(result, "old") == {"evicted": 2}
    assert outcome(result, "new") == "pipelined"


def test_an_elastic_gang_gives_only_what_is_asked() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.queue("q0", 1)
    cluster.queue("q1", 2)
    cluster.gang("old", 4, minimum=1, queue="q0", on=["n0"] * 4)
    cluster.gang("new", 1, 2, queue="q1")
    result = cluster.run("allocate", "reclaim")
    assert counts(result, "old") == {"evicted": 2, "kept": 2}


def _protected(reclaim_minimum: float, started: float, *, elastic: bool) -> Cluster:
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.queue("q0", 0)
    cluster.queues[0] = replace(cluster.queues[0], reclaim_min_runtime=reclaim_minimum)
    cluster.queue("q1", 2)
    cluster.gang("old", 2, minimum=1 if elastic else 2, queue="q0", on=["n0", "n0"])
    when = datetime.fromtimestamp(NOW - started, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    meta = replace(cluster.podgroups[0].meta, annotations={"kai.scheduler/last-start-timestamp": when})
    cluster.podgroups[0] = replace(cluster.podgroups[0], meta=meta)
    return cluster


@pytest.mark.parametrize(
    "elastic, started, asked, evicted",
    [
        pytest.param(False, 60, 1, 0, id="young gang"),
        pytest.param(False, 3600, 1, 2, id="old gang"),
        pytest.param(True, 60, 1, 1, id="young elastic gang loses its surplus"),
        pytest.param(True, 60, 2, 0, id="but not its minimum"),
        pytest.param(True, 3600, 2, 2, id="old elastic gang"),
    ],
)
def test_minimum_runtime_protects(*, elastic: bool, started: float, asked: int, evicted: int) -> None:
    cluster = _protected(600, started, elastic=elastic)
    cluster.gang("new", 1, asked, queue="q1")
    result = cluster.run("allocate", "reclaim")
    assert counts(result, "old").get("evicted", 0) == evicted


def test_moved_pods_do_not_count_as_reclaimed_unless_told() -> None:
    """A queue within its quota may be asked to move aside, where that is allowed."""

    def cluster() -> Cluster:
        made = Cluster()
        made.node("n0", 2)
        made.node("n1", 2)
        made.queue("q0", 1)
        made.queue("q1", 2)
        made.gang("big", queue="q0", on=["n0"], age=900)
        made.gang("small", queue="q0", on=["n1"], age=800)
        made.gang("new", 1, 2, queue="q1")
        return made

    allowed = cluster()
    result = allowed.run("allocate", "reclaim")
    assert outcome(result, "new") == "pipelined"
    assert sorted(outcome(result, name) for name in ("big", "small")) == ["kept", "moved"]
    strict = cluster()
    strict.params(allow_consolidating_reclaim=False)
    strict.queues[0] = replace(strict.queues[0], gpu=replace(strict.queues[0].gpu, quota=2))  # type: ignore[type-var]
    assert outcome(strict.run("allocate", "reclaim"), "new") == "unschedulable"


def test_reclaim_needs_the_rule_of_shares() -> None:
    cluster = Cluster()
    _two_queues((0, 4), (4, 1), (4, 1))(cluster)
    cluster.config = replace(cluster.config, plugins=tuple(p for p in cluster.config.plugins if p.name != "proportion"))
    assert outcome(cluster.run("allocate", "reclaim"), "new") == "unschedulable"


def test_without_a_generator_nobody_is_evicted() -> None:
    cluster = Cluster()
    _two_queues((0, 4), (4, 1), (4, 1))(cluster)
    cluster.config = replace(
        cluster.config, plugins=tuple(p for p in cluster.config.plugins if not p.name.startswith("sg-"))
    )
    assert outcome(cluster.run("allocate", "reclaim"), "new") == "unschedulable"


def test_a_gang_bound_in_the_cycle_may_be_evicted_in_it() -> None:
    """Allocate gives the free GPUs to the queue served first; reclaim takes them for the one with the claim."""
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.queue("q0", 0)
    cluster.queue("q1", 2)
    cluster.gang("small", 1, 1, queue="q0")
    cluster.gang("big", 1, 2, queue="q1", group={"preemptibility": "preemptible"})
    cluster.gang("hold", 1, 1, queue="q0", on=["n0"])
    result = cluster.run("allocate", "reclaim")
    assert outcome(result, "big") == "pipelined"
    assert outcome(result, "small") == "evicted"
    assert outcome(result, "hold") == "evicted"


def test_queues_compete_with_their_siblings_only() -> None:
    """Department d0 holds twice its share; that one of its queues takes from the other is its own affair."""
    cluster = Cluster()
    cluster.node("n0", 4)
    for name, quota, parent in (("d0", 2, ""), ("d1", 2, ""), ("a", 2, "d0"), ("b", 1, "d0"), ("c", 2, "d1")):
        cluster.queue(name, quota, parent=parent)
    for index in range(4):
        cluster.gang(f"old-{index}", queue="a", on=["n0"], age=900 - index)
    cluster.gang("elsewhere", 2, queue="c", pod={"node_selector": {"no": "where"}})
    cluster.gang("new", queue="b")
    result = cluster.run("reclaim")
    assert (outcome(result, "new"), outcome(result, "old-3")) == ("pipelined", "evicted")


def test_own_queue_is_never_reclaimed_from() -> None:
    """Its unlimited quota would leave its own gangs open as victims."""
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.queue("own")
    cluster.queue("other", 0)
    for queue in ("own", "other"):
        cluster.gang(f"{queue}-old", queue=queue, on=["n0"])
    cluster.gang("new", queue="own")
    session = open_session(cluster.snapshot(), cluster.snapshot().shards[0])
    victims = reclaim._Reclaim(session).victims(session.jobs["new"])
    assert [job.name for job in victims.candidates()] == ["other-old"]


def test_the_strictest_limit_of_losses_holds() -> None:
    cluster = Cluster()
    _two_queues((2, 2), (4, 1), (2, 1))(cluster)
    session = open_session(cluster.snapshot(), cluster.snapshot().shards[0])
    session.hooks.solution_start[0]()
    job = session.jobs["new"]
    ask = Ask.of(session, job, part_of(job, job.tasks.values()))
    victims = [task for task in session.tasks.values() if task.node_name]
    action = reclaim._Reclaim(session)
    alone = action.limit_for(ask)
    session.hooks.reclaim_limits.append(lambda *_: lambda *_: 1.0)
    both = action.limit_for(ask)
    assert alone is not None
    assert both is not None
    assert (alone(victims, victims), both(victims, victims)) == (3.0, 1.0)


def test_only_gangs_within_their_fair_share_are_tried_and_none_without_the_rule() -> None:
    cluster = Cluster()
    _two_queues((2, 2), (4, 1), (1, 3))(cluster)
    cluster.gang("fair", 1, 1, queue="q1")
    session = open_session(cluster.snapshot(), cluster.snapshot().shards[0])
    action = reclaim._Reclaim(session)
    assert [action.may_try(session.jobs[name]) for name in ("new", "fair")] == [False, True]
    session.hooks.can_reclaim.clear()
    assert not action.may_try(session.jobs["fair"])
