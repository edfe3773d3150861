"""How a resource is divided among queues, and what counts as a queue's use."""

from __future__ import annotations

import pytest

from gangdash.engine.model.meta import Condition, Meta
from gangdash.engine.model.queue import Queue, QueueResource
from gangdash.engine.plugins import open_session
from gangdash.engine.rules.fairshare import share_resource
from gangdash.engine.session import QueueState, Session
from tests.engine.builders import GIB, NOW, Cluster

Asks = tuple[str, float, float, float, float]
"""Name, quota, limit, weight, request."""


def _queues(
    *asks: Asks, priorities: dict[str, int] | None = None, created: dict[str, float] | None = None
) -> list[QueueState]:
    queues = []
    for name, quota, limit, weight, request in asks:
        meta = Meta(name, created=(created or {}).get(name, 1.0))
        state = QueueState(Queue(meta, gpu=QueueResource(quota, limit, weight), priority=(priorities or {}).get(name)))
        state.deserved, state.limit, state.weight = (0, 0, quota), (0, 0, limit), (0, 0, weight)
        state.request = (0, 0, request)
        queues.append(state)
    return queues


DIVISIONS: list[tuple[str, float, list[Asks], list[float]]] = [
    ("quota first", 10, [("a", 4, -1, 0, 9), ("b", 4, -1, 0, 9)], [4, 4]),
    ("no more than asked", 10, [("a", 4, -1, 1, 2), ("b", 4, -1, 1, 9)], [2, 8]),
    ("no more than the limit", 10, [("a", 4, 5, 1, 9), ("b", 0, -1, 1, 9)], [5, 5]),
    ("a limit below the quota", 10, [("a", 4, 3, 1, 9), ("b", 0, -1, 0, 9)], [3, 0]),
    ("an unlimited quota takes the total", 10, [("a", -1, -1, 1, 20)], [10]),
    ("quotas beyond the total are not cut", 4, [("a", 4, -1, 1, 9), ("b", 4, -1, 1, 9)], [4, 4]),
    ("the rest goes by weight", 12, [("a", 0, -1, 1, 20), ("b", 0, -1, 2, 20)], [4, 8]),
    ("weight 0 gets nothing over its quota", 12, [("a", 2, -1, 0, 20), ("b", 0, -1, 2, 20)], [2, 10]),
    ("in whole units, the largest rest first", 10, [("a", 0, -1, 1, 20), ("b", 0, -1, 2, 20)], [3, 7]),
    ("equal rests: the older, then the name", 5, [("a", 0, -1, 1, 9), ("b", 0, -1, 1, 9)], [3, 2]),
    ("what one leaves goes round again", 12, [("a", 0, -1, 1, 2), ("b", 0, -1, 1, 9), ("c", 0, -1, 1, 9)], [2, 5, 5]),
    ("a part of a unit that is asked for is given", 2, [("a", 0, -1, 1, 0.5), ("b", 0, -1, 1, 9)], [0.5, 1.5]),
    ("nothing to give", 0, [("a", 0, -1, 1, 3)], [0]),
    ("nobody asks", 8, [("a", 2, -1, 1, 0)], [0]),
]


@pytest.mark.parametrize("total, asks, shares", [d[1:] for d in DIVISIONS], ids=[d[0] for d in DIVISIONS])
def test_division(total: float, asks: list[Asks], shares: list[float]) -> None:
    assert share_resource(total, 1.0, 2, _queues(*asks)) == shares


def test_higher_priority_takes_the_rest_first() -> None:
    queues = _queues(("a", 0, -1, 1, 6), ("b", 0, -1, 1, 6), priorities={"b": 200})
    assert share_resource(8, 1.0, 2, queues) == [2, 6]


def test_older_queue_gets_the_odd_unit() -> None:
    queues = _queues(("a", 0, -1, 1, 9), ("b", 0, -1, 1, 9), created={"a": 5.0, "b": 4.0})
    assert share_resource(5, 1.0, 2, queues) == [2, 3]


@pytest.mark.parametrize("k, shares", [(0.0, [6, 6]), (1.0, [3, 9]), (2.0, [0, 12])])
def test_historic_use_counts_against_a_weight(k: float, shares: list[float]) -> None:
    queues = _queues(("a", 0, -1, 1, 20), ("b", 0, -1, 1, 20))
    queues[0].usage = (0, 0, 0.75)
    queues[1].usage = (0, 0, 0.25)
    assert share_resource(12, k, 2, queues) == shares


def _open(cluster: Cluster) -> Session:
    snapshot = cluster.snapshot()
    return open_session(snapshot, snapshot.shards[0])


def test_total_leaves_out_nodes_that_take_no_pods_and_pods_of_others() -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.node("n1", 8, cordoned=True)
    cluster.node("n2", 8, conditions=(Condition("Ready", "False"),))
    cluster.pod("", 0, 3, on="n0", scheduler="default-scheduler", cpu=4, memory=1)
    cluster.pod("", 1, 1, on="n0", scheduler="default-scheduler", labels={"app": "kai-resource-reservation"})
    cluster.pod("", 2, 1, on="n0", scheduler="default-scheduler", labels={"app": "scaling-pod"})
    assert _open(cluster).total == (60_000, 511 * GIB, 5)


def test_total_of_restricted_nodes() -> None:
    cluster = Cluster()
    cluster.node("gpu", 8, labels={"node-role.kubernetes.io/gpu-worker": ""})
    cluster.node("cpu", 4, labels={"node-role.kubernetes.io/cpu-worker": ""})
    cluster.node("other", 4)
    cluster.params(restrict_node_scheduling=True)
    session = _open(cluster)
    assert session.total[2] == 8
    assert sorted(session.nodes) == ["cpu", "gpu"]


def test_usage_of_a_queue_and_all_above() -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.queue("dept")
    cluster.queue("q", parent="dept")
    cluster.gang("run", 1, 2, on=["n0"])
    cluster.gang("firm", 1, 1, kind="build", on=["n0"])
    cluster.gang("wait", 2, 1)
    cluster.gang("gated", 1, 1, pod={"gates": ("x",)})
    cluster.pod("run", 7, 1, on="n0", deleted=-5)
    cluster.pod("run", 8, 1, on="elsewhere")
    session = _open(cluster)
    for name in ("dept", "q"):
        queue = session.queues[name]
        assert (queue.allocated[2], queue.allocated_non_preemptible[2], queue.request[2]) == (3, 1, 5)


def test_gpu_memory_is_asked_as_a_share_of_the_smallest_gpu() -> None:
    cluster = Cluster()
    cluster.node("small", 1, gpu_memory=10_050)
    cluster.node("large", 1, gpu_memory=20_000)
    cluster.node("unknown", 1, gpu_memory=None)
    cluster.gang("g", 0, group={"min_member": 1})
    cluster.pod("g", 0, 0, annotations={"gpu-memory": "2500", "gpu-fraction-num-devices": "2"})
    session = _open(cluster)
    assert (session.min_gpu_memory, session.max_gpu_memory) == (10_000, 20_000)
    assert session.queues["q"].request[2] == 0.5


def test_children_share_what_their_parent_has() -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.queue("d1", 2)
    cluster.queue("d2", 6)
    cluster.queue("a", 1, parent="d1")
    cluster.queue("b", 1, parent="d1")
    cluster.queue("q", 6, parent="d2")
    cluster.gang("ga", 4, 1, queue="a")
    cluster.gang("gb", 4, 1, queue="b")
    cluster.gang("gq", 8, 1)
    shares = {use.name: use.fair_share for use in cluster.run("allocate").queues}
    assert {name: share[2] for name, share in shares.items() if share} == {"d1": 2, "d2": 6, "a": 1, "b": 1, "q": 6}


def test_share_is_reported_in_whole_gpus_from_one_on() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.queue("q0", 0)
    cluster.queue("q1", 0)
    cluster.gang("a", 3, 0.5, queue="q0")
    cluster.gang("b", 1, 0.25, queue="q1")
    shares = {use.name: use.fair_share for use in cluster.run("allocate").queues}
    assert {name: share[2] for name, share in shares.items() if share} == {"q0": 1, "q1": 0.25}


def test_without_proportion_there_is_no_share() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.queue("q", limit=1)
    cluster.gang("g", 1, 2)
    plugins = tuple(plugin for plugin in cluster.config.plugins if plugin.name != "proportion")
    cluster.config = type(cluster.config)(plugins=plugins)
    result = cluster.run("allocate")
    assert [use.fair_share for use in result.queues] == [None]
    assert str(result.gangs[0].outcome) == "bound"


def test_orphans_and_all_below_them_are_no_queues() -> None:
    cluster = Cluster()
    cluster.queue("lost", parent="nowhere")
    cluster.queue("below", parent="lost")
    cluster.queue("q")
    assert sorted(_open(cluster).queues) == ["q"]


def test_flat_fairness_hangs_every_child_below_one_queue() -> None:
    cluster = Cluster()
    cluster.queue("dept", 3, 3)
    cluster.queue("q", 2, parent="dept")
    cluster.params(full_hierarchy_fairness=False)
    session = _open(cluster)
    assert sorted(session.queues) == ["default", "q"]
    assert [queue.name for queue in session.queues["q"].ancestors] == ["q", "default"]
    assert session.queues["default"].limit == (-1, -1, -1)


def test_parents_in_a_circle_end_somewhere() -> None:
    cluster = Cluster()
    cluster.queue("a", parent="b")
    cluster.queue("b", parent="a")
    assert [queue.name for queue in _open(cluster).queues["a"].ancestors] == ["a", "b"]


def test_absent_numbers_are_zero() -> None:
    cluster = Cluster()
    cluster.queues.append(Queue(Meta("q", created=NOW), gpu=QueueResource(quota=4)))
    cluster.node("n0", 8)
    cluster.gang("g", 1, 1)
    queue = _open(cluster).queues["q"]
    assert (queue.limit, queue.deserved, queue.weight, queue.priority) == ((0, 0, 0), (0, 0, 4), (0, 0, 0), 100)
