"""Shares at every level of the queue tree: who may take from whom, and how much may be lost."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from gangdash.engine.plugins import open_session
from gangdash.engine.rules.reclaim_limit import levels, minus, plus, saturation
from gangdash.engine.rules.reclaimable import Reclaimable, split_victim
from gangdash.engine.rules.scenario import Scenario, Victim, demand_of
from gangdash.engine.session import JobState, Session, TaskState
from tests.engine.builders import Cluster


def _session(cluster: Cluster) -> Session:
    snapshot = cluster.snapshot()
    return open_session(snapshot, snapshot.shards[0])


@pytest.mark.parametrize(
    "held, share, expected", [(3, 2, 1.5), (0, 0, 0.0), (1, 0, math.inf), (9, -1, 0.0), (2, 4, 0.5)]
)
def test_saturation(held: float, share: float, expected: float) -> None:
    assert saturation(held, share) == expected


def test_queues_compete_where_their_paths_part() -> None:
    cluster = Cluster()
    cluster.node("n0")
    for name, parent in (
        ("top", ""),
        ("d0", "top"),
        ("d1", "top"),
        ("a", "d0"),
        ("b", "d0"),
        ("c", "d1"),
        ("lone", ""),
    ):
        cluster.queue(name, parent=parent)
    queues = _session(cluster).queues

    def pair(mine: str, theirs: str) -> tuple[str, str]:
        found = levels(queues[mine], queues[theirs])
        return found[0].name, found[1].name

    assert pair("a", "b") == ("a", "b")
    assert pair("a", "c") == ("d0", "d1")
    assert pair("a", "lone") == ("top", "lone")
    assert pair("a", "a") == ("a", "a")


def _two_queues(mine: float, theirs: float, held: int, asked: int, *, nodes: int = 8, kind: str = "train") -> Session:
    cluster = Cluster()
    cluster.node("n0", nodes)
    cluster.queue("q0", theirs)
    cluster.queue("q1", mine)
    cluster.gang("old", held, queue="q0", on=["n0"] * held)
    cluster.gang("new", 1, asked, queue="q1", kind=kind)
    return _session(cluster)


@pytest.mark.parametrize(
    "mine, asked, kind, expected",
    [
        pytest.param(2, 2, "train", True, id="within the fair share"),
        pytest.param(2, 5, "train", False, id="beyond the fair share"),
        pytest.param(2, 2, "build", True, id="non-preemptible within quota"),
        pytest.param(0, 1, "build", False, id="non-preemptible beyond quota"),
    ],
)
def test_who_may_reclaim(mine: float, asked: int, kind: str, *, expected: bool) -> None:
    session = _two_queues(mine, 6, 6, asked, kind=kind)
    assert Reclaimable(session).may_reclaim(session.jobs["new"]) is expected


@pytest.mark.parametrize(
    "mine, theirs, held, asked, expected",
    [
        pytest.param(2, 2, 4, 2, True, id="asker in quota, holder above"),
        pytest.param(2, 4, 3, 2, False, id="holder below its quota"),
        pytest.param(2, 4, 4, 2, True, id="holder exactly at its quota is looked at"),
        pytest.param(2, -1, 8, 2, True, id="holder with no limit to its quota"),
        pytest.param(1, 2, 8, 2, True, id="asker above quota, holder above its share"),
        pytest.param(1, 7, 7, 2, False, id="asker above quota, holder within its share"),
    ],
)
def test_whose_gangs_are_candidates(mine: float, theirs: float, held: int, asked: int, *, expected: bool) -> None:
    session = _two_queues(mine, theirs, held, asked)
    assert Reclaimable(session).is_candidate(session.jobs["new"], session.jobs["old"]) is expected


def test_a_gang_of_no_queue_is_not_held_back_here() -> None:
    session = _two_queues(2, 4, 3, 2)
    session.jobs["old"].queue = "gone"
    assert Reclaimable(session).is_candidate(session.jobs["new"], session.jobs["old"])


def _judge(session: Session, job: str, *victims: tuple[JobState, Sequence[TaskState]]) -> bool:
    """Evict the victims and ask the rule, as a search would."""
    rules = Reclaimable(session)
    rules.remember_queues()
    asker = session.jobs[job]
    demand = demand_of(session, asker)
    statement = session.statement()
    for _, tasks in victims:
        for task in tasks:
            statement.evict(task)
    answer = rules.accepts(Scenario(asker, demand, [Victim(gang, tasks) for gang, tasks in victims]))
    statement.discard()
    return answer


@pytest.mark.parametrize(
    "theirs, lost, accepted",
    [
        pytest.param(2, 2, True, id="down to its quota"),
        pytest.param(4, 1, False, id="a queue at its quota gives nothing"),
        pytest.param(3, 1, True, id="above its quota it gives"),
    ],
)
def test_the_holder_keeps_its_share(theirs: float, lost: int, *, accepted: bool) -> None:
    session = _two_queues(2, theirs, 4, 2, nodes=4)
    old = session.jobs["old"]
    assert _judge(session, "new", (old, list(old.tasks.values())[:lost])) is accepted


def test_surplus_pods_are_judged_one_by_one() -> None:
    """The gang's core may bring its queue below its share, a surplus pod after that may not be taken."""
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.queue("q0", 3)
    cluster.queue("q1", 3)
    cluster.gang("old", 4, minimum=1, queue="q0", on=["n0"] * 4)
    cluster.gang("new", 1, 1, queue="q1")
    session = _session(cluster)
    old = session.jobs["old"]
    tasks = list(old.tasks.values())
    surplus, core = split_victim(Victim(old, tasks[:3]))
    assert (len(surplus), len(core)) == (2, 1)
    assert _judge(session, "new", (old, tasks[:1]))
    assert not _judge(session, "new", (old, tasks[:3]))


def _departments(multiplier: str = "") -> Session:
    """Both departments hold their share of 4; the asking one would come to 5 of 4 against 3 of 4 left."""
    cluster = Cluster()
    cluster.node("n0", 9)
    for name, quota in (("d0", 4), ("d1", 4)):
        cluster.queue(name, quota, weight=0)
        cluster.queue(f"{name}-a", quota, parent=name, weight=0)
        cluster.queue(f"{name}-b", 0, parent=name, weight=0)
    cluster.gang("own", 4, queue="d1-b", on=["n0"] * 4)
    cluster.gang("old", 5, minimum=1, queue="d0-b", on=["n0"] * 5)
    cluster.gang("new", 1, 1, queue="d1-a")
    if multiplier:
        cluster.plugin("proportion", relcaimerSaturationMultiplier=multiplier)
    return _session(cluster)


@pytest.mark.parametrize("multiplier", ["", "1.5", "0.1", "much"])
def test_saturation_must_stay_below_that_of_the_others(multiplier: str) -> None:
    session = _departments(multiplier)
    old = session.jobs["old"]
    assert not _judge(session, "new", (old, list(old.tasks.values())[:1]))
    own = session.jobs["own"]
    assert _judge(session, "new", (own, list(own.tasks.values())))


def test_pods_placed_again_are_not_lost() -> None:
    session = _two_queues(2, 4, 4, 2, nodes=4)
    old = session.jobs["old"]
    rules = Reclaimable(session)
    rules.remember_queues()
    demand = demand_of(session, session.jobs["new"])
    scenario = Scenario(session.jobs["new"], demand, [Victim(old, list(old.tasks.values()))])
    assert rules.accepts(scenario)
    cluster = Cluster()
    cluster.params(allow_consolidating_reclaim=False)
    strict = _two_queues(2, 4, 4, 2, nodes=4)
    strict.shard = type(strict.shard)(config=cluster.config)
    counting = Reclaimable(strict)
    counting.remember_queues()
    victim = Victim(strict.jobs["old"], list(strict.jobs["old"].tasks.values()))
    assert not counting.accepts(Scenario(strict.jobs["new"], demand, [victim]))


@pytest.mark.parametrize(
    "theirs, taken, most",
    [
        pytest.param(4, 4, 0.0, id="nothing above its share"),
        pytest.param(2, 1, 1.0, id="not more than there is"),
        pytest.param(3, 4, 4.0, id="the last gang may bring it below"),
    ],
)
def test_the_bound_on_losses(theirs: float, taken: int, most: float) -> None:
    session = _two_queues(2, theirs, 4, 2, nodes=4)
    rules = Reclaimable(session)
    rules.remember_queues()
    limit = rules.loss_limit(session.jobs["new"], demand_of(session, session.jobs["new"]))
    tasks = list(session.jobs["old"].tasks.values())[:taken]
    assert limit(tasks, tasks) == most


def test_the_bound_follows_saturation_level_by_level() -> None:
    session = _departments()
    rules = Reclaimable(session)
    rules.remember_queues()
    limit = rules.loss_limit(session.jobs["new"], demand_of(session, session.jobs["new"]))
    old, own = list(session.jobs["old"].tasks.values()), list(session.jobs["own"].tasks.values())
    assert limit(old, old) == 0.0
    assert limit(old, [*old, *own]) > 0.0


@pytest.mark.parametrize(
    "memory, gpu_memory, involved",
    [("4000", 10_000, {2}), ("4000", None, set()), ("", 10_000, set())],
    ids=["a part of a GPU of known size", "no size is known", "cpu alone"],
)
def test_memory_of_gpus_is_asked_where_some_node_says_how_much_one_has(
    memory: str, gpu_memory: int | None, involved: set[int]
) -> None:
    cluster = Cluster()
    cluster.node("n0", 2, gpu_memory=gpu_memory)
    cluster.gang("g", 0, group={"min_member": 1})
    cluster.pod("g", 0, 0, cpu=1, annotations={"gpu-memory": memory} if memory else {})
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    assert demand_of(session, session.jobs["g"]).involved - {0} == involved


def test_amounts_are_added_and_taken_off_resource_by_resource() -> None:
    assert plus((3, 2, 1), (1, 1, 1)) == (4, 3, 2)
    assert minus((3, 2, 1), (1, 1, 1)) == (2, 1, 0)
