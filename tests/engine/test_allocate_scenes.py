"""What allocate does with small clusters: one scene a rule, after the scheduler's own tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gangdash.engine.actions import allocate
from gangdash.engine.model.config import SchedulerConfig
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.podgroup import BindRequest, SubGroupSpec
from gangdash.engine.plugins import open_session
from tests.engine.builders import HOST, NOW, Cluster, condition, counts, outcome, places, texts

Scene = Callable[[Cluster], None]


def _elastic_pair(cluster: Cluster) -> None:
    cluster.node("n0", 5)
    cluster.gang("old", 4, minimum=1, age=700)
    cluster.gang("young", 4, minimum=1, age=600)


def _two_by_two(kind: str, quota: float, node: int) -> Scene:
    def scene(cluster: Cluster) -> None:
        cluster.node("n0", node)
        cluster.queue("q", quota)
        cluster.gang("g", 2, 2, kind=kind)

    return scene


def _releasing(deleted: float, pods: int, gpus: int) -> Scene:
    def scene(cluster: Cluster) -> None:
        cluster.node("n0", 4)
        cluster.pod("", 0, 1, on="n0", deleted=deleted)
        cluster.gang("g", pods, gpus)

    return scene


def _subgroups(node: int, *parts: tuple[str, int, int, int], running: tuple[str, int] = ("", 0)) -> Scene:
    """Parts are (name, minimum, pods, gpus); ``running`` names one with pods on the node already."""

    def scene(cluster: Cluster) -> None:
        cluster.node("n0", node)
        specs = tuple(SubGroupSpec(name, min_member=minimum) for name, minimum, _, _ in parts)
        cluster.gang("g", 0, sub_groups=specs)
        for name, _, pods, gpus in parts:
            for index in range(pods):
                on = "n0" if name == running[0] and index < running[1] else ""
                cluster.pod("g", index, gpus, sub_group=name, on=on)

    return scene


def _two_optional(node: int, minimum: int | None) -> Scene:
    """Two subgroups of two leaves each, of which ``minimum`` are needed."""

    def scene(cluster: Cluster) -> None:
        cluster.node("n0", node)
        specs = (SubGroupSpec("group-a"), SubGroupSpec("group-b"))
        leaves = tuple(SubGroupSpec(f"{p}{i}", parent=f"group-{p}", min_member=1) for p in "ab" for i in (1, 2))
        cluster.gang("g", 0, sub_groups=(*specs, *leaves), min_sub_group=minimum)
        for leaf in leaves:
            cluster.pod("g", 0, 1, sub_group=leaf.name)

    return scene


def _taken_by_terminating(deleted: float) -> Scene:
    def scene(cluster: Cluster) -> None:
        cluster.node("n0", 1)
        cluster.pod("", 0, 1, on="n0", deleted=deleted)
        cluster.gang("g", 1, 1)

    return scene


def _limited(leaf: float, parent: float) -> Scene:
    def scene(cluster: Cluster) -> None:
        cluster.node("n0", 4)
        cluster.queue("dept", limit=parent)
        cluster.queue("q", limit=leaf, parent="dept")
        cluster.gang("first", 1, 2, age=700)
        cluster.gang("g", 1, 2)

    return scene


def _parent_quota(cluster: Cluster) -> None:
    cluster.node("n0", 4)
    cluster.queue("dept", quota=1)
    cluster.queue("q", quota=2, parent="dept")
    cluster.gang("g", 1, 2, kind="build")


def _negative_idle(cluster: Cluster) -> None:
    cluster.node("n0", 2, cpu=4)
    cluster.pod("", 0, 4, on="n0")
    cluster.gang("g", 1, 0, cpu=1)


def _cordoned(cluster: Cluster) -> None:
    cluster.node("n0", 2, cordoned=True)
    cluster.gang("g", 1, 1)


def _not_ready_node(cluster: Cluster) -> None:
    cluster.node("n0", 2, conditions=(condition("Ready", "Unknown"), condition("MemoryPressure", "Unknown")))
    cluster.gang("g", 1, 1)


def _node_without_conditions(cluster: Cluster) -> None:
    cluster.node("n0", 2, conditions=(condition("Whatever", "True"),))
    cluster.gang("g", 1, 1)


def _greedy(cluster: Cluster) -> None:
    """The first pod takes the node that only the second could use."""
    cluster.node("big", 4, labels={"size": "big"})
    cluster.node("small", 4, labels={"size": "small"})
    cluster.gang("g", 0, minimum=2, group={"min_member": 2})
    cluster.pod("g", 0, 3)
    cluster.pod("g", 1, 2, fields={"node_selector": {"size": "big"}})


def _missing_members(cluster: Cluster) -> None:
    cluster.node("n0", 4)
    cluster.gang("g", 1, 1, minimum=2)


def _gated_members(cluster: Cluster) -> None:
    cluster.node("n0", 4)
    cluster.gang("g", 2, 1, pod={"gates": ("wait",)})


def _other_pool(cluster: Cluster) -> None:
    cluster.node("n0", 4, labels={"kai.scheduler/node-pool": "other"})
    cluster.node("n1", 1)
    cluster.gang("g", 1, 2)


def _no_leaf(cluster: Cluster) -> None:
    cluster.node("n0", 4)
    cluster.queue("q")
    cluster.queue("below", parent="q")
    cluster.gang("g", 1, 1)


def _zero_minimum(cluster: Cluster) -> None:
    cluster.node("n0", 2)
    cluster.gang("g", 3, 1, minimum=0)


SCENES: list[tuple[str, Scene, str, dict[str, int]]] = [
    ("preemptible gangs may exceed the quota", _two_by_two("train", 1, 4), "bound", {"bound": 2}),
    ("a quota that is just enough", _two_by_two("build", 4, 4), "bound", {"bound": 2}),
    (
        "non-preemptible stays in quota though GPUs are free",
        _two_by_two("build", 3, 10),
        "unschedulable",
        {"pending": 2},
    ),
    ("one member waits for a release, so all wait", _releasing(-30, 2, 2), "pipelined", {"pipelined": 2}),
    ("a pod waits for a release", _taken_by_terminating(60), "pipelined", {"pipelined": 1}),
    (
        "two minutes past its grace a pod gives nothing back",
        _taken_by_terminating(121),
        "unschedulable",
        {"pending": 1},
    ),
    ("exactly two minutes past it still does", _taken_by_terminating(120), "pipelined", {"pipelined": 1}),
    ("a pod of every subgroup", _subgroups(2, ("s0", 1, 2, 1), ("s1", 1, 2, 1)), "bound", {"bound": 2, "pending": 2}),
    (
        "unsatisfied subgroups first",
        _subgroups(4, ("s0", 2, 3, 1), ("s1", 2, 2, 1), running=("s0", 2)),
        "bound",
        {"bound": 2, "kept": 2, "pending": 1},
    ),
    ("all or nothing over subgroups", _subgroups(4, ("s0", 1, 2, 3), ("s1", 2, 2, 1)), "unschedulable", {"pending": 4}),
    ("one optional subgroup at a time", _two_optional(2, 1), "bound", {"bound": 2, "pending": 2}),
    ("all subgroups are needed unless said", _two_optional(3, None), "unschedulable", {"pending": 4}),
    ("no subgroup is needed", _two_optional(2, 0), "bound", {"bound": 2, "pending": 2}),
    ("limit of the queue", _limited(2, -1), "unschedulable", {"pending": 1}),
    ("limit of the department", _limited(-1, 2), "unschedulable", {"pending": 1}),
    ("exactly at the limit", _limited(4, 4), "bound", {"bound": 1}),
    ("quota of the department", _parent_quota, "unschedulable", {"pending": 1}),
    ("an over-committed node takes nothing", _negative_idle, "unschedulable", {"pending": 1}),
    ("a cordoned node takes nothing", _cordoned, "unschedulable", {"pending": 1}),
    ("a node that is not ready takes nothing", _not_ready_node, "unschedulable", {"pending": 1}),
    ("a node without conditions is fine", _node_without_conditions, "bound", {"bound": 1}),
    ("no backtracking within a node set", _greedy, "unschedulable", {"pending": 2}),
    ("too few pods", _missing_members, "not_ready", {"pending": 1}),
    ("gated pods do not count", _gated_members, "not_ready", {"gated": 2}),
    ("nodes of another pool are not there", _other_pool, "unschedulable", {"pending": 1}),
    ("a queue with children takes no gangs", _no_leaf, "unschedulable", {"pending": 1}),
    ("a gang of optional pods", _zero_minimum, "bound", {"bound": 2, "pending": 1}),
]


@pytest.mark.parametrize("scene, expected, pods", [s[1:] for s in SCENES], ids=[s[0] for s in SCENES])
def test_scene(scene: Scene, expected: str, pods: dict[str, int]) -> None:
    cluster = Cluster()
    scene(cluster)
    result = cluster.run("allocate")
    assert outcome(result, "g") == expected
    assert counts(result, "g") == pods


def test_elastic_increments_alternate() -> None:
    cluster = Cluster()
    _elastic_pair(cluster)
    result = cluster.run("allocate")
    assert counts(result, "old") == {"bound": 3, "pending": 1}
    assert counts(result, "young") == {"bound": 2, "pending": 2}


def test_task_priority_decides_who_goes_first() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 0, minimum=1, group={"min_member": 1})
    cluster.pod("g", 0, 1, labels={"kai.scheduler/task-priority": "1"})
    cluster.pod("g", 1, 1, labels={"kai.scheduler/task-priority": "2"})
    cluster.pod("g", 2, 1)
    assert places(cluster.run("allocate"), "g") == {"g-0": None, "g-1": "n0", "g-2": None}


@pytest.mark.parametrize("label, value", [("training.kubeflow.org/job-role", "master"), ("ray.io/node-type", "head")])
def test_leader_goes_first(label: str, value: str) -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 0, group={"min_member": 1})
    cluster.pod("g", 0, 1)
    cluster.pod("g", 1, 1, labels={label: value}, age=10)
    assert places(cluster.run("allocate"), "g") == {"g-0": None, "g-1": "n0"}


def test_ratio_of_members_decides_among_satisfied_subgroups() -> None:
    cluster = Cluster()
    cluster.node("n0", 6)
    cluster.gang("g", 0, sub_groups=(SubGroupSpec("a", min_member=1), SubGroupSpec("b", min_member=2)))
    for name in ("a", "b"):
        for index in range(4):
            cluster.pod("g", index, 1, sub_group=name, on="n0" if index < 2 else "")
    waiting = [name for name, node in places(cluster.run("allocate"), "g").items() if node is None]
    assert waiting == ["g-a-2", "g-a-3"]


def test_higher_priority_goes_first() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("early", 1, age=900)
    cluster.gang("urgent", 1, kind="inference", age=100)
    result = cluster.run("allocate")
    assert (outcome(result, "early"), outcome(result, "urgent")) == ("unschedulable", "bound")


def test_queue_that_stays_in_quota_goes_first() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.queue("q0", 2, created=NOW - 10)
    cluster.queue("q1", 2, created=NOW - 5)
    cluster.gang("r0", 1, 1, queue="q0", on=["n0"])
    cluster.gang("r1", 1, 1, queue="q1", on=["n0"])
    cluster.gang("two", 1, 2, queue="q0")
    cluster.gang("one", 1, 1, queue="q1")
    result = cluster.run("allocate")
    assert (outcome(result, "two"), outcome(result, "one")) == ("unschedulable", "bound")


def test_queue_priority_decides_where_quota_does_not() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.queue("q0", 1, created=NOW - 20)
    cluster.queue("q1", 1, priority=200, created=NOW - 10)
    cluster.gang("plain", 1, 1, queue="q0")
    cluster.gang("preferred", 1, 1, queue="q1")
    result = cluster.run("allocate")
    assert (outcome(result, "plain"), outcome(result, "preferred")) == ("unschedulable", "bound")


def test_depth_limits_gangs_per_queue() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    for index in range(3):
        cluster.gang(f"g{index}", 1, 1, age=900 - index)
    cluster.config = SchedulerConfig(queue_depth={"allocate": 1})
    result = cluster.run("allocate")
    assert sorted(outcome(result, f"g{index}") for index in range(3)) == ["bound", "unschedulable", "unschedulable"]


def test_terminating_pod_frees_its_queue_at_once() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.queue("q", limit=2)
    cluster.gang("old", 0, minimum=1)
    cluster.pod("old", 0, 2, on="n0", deleted=-30)
    cluster.gang("g", 1, 2)
    assert outcome(cluster.run("allocate"), "g") == "bound"


def test_pod_with_a_bind_request_holds_its_node() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("bound", 1, 1)
    cluster.bind_requests.append(BindRequest(Meta("bound-0", "team"), "bound-0", "n0"))
    cluster.gang("g", 1, 1)
    result = cluster.run("allocate")
    assert places(result, "bound") == {"bound-0": "n0"}
    assert (outcome(result, "bound"), outcome(result, "g")) == ("kept", "unschedulable")


def test_failed_bind_request_makes_the_pod_pending_again() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 1, 1)
    cluster.bind_requests.append(BindRequest(Meta("g-0", "team"), "g-0", "gone", phase="Pending"))
    cluster.bind_requests.append(BindRequest(Meta("g-0", "team"), "g-0", "n0", phase="Failed"))
    assert outcome(cluster.run("allocate"), "g") == "bound"


def test_messages_of_a_refused_gang() -> None:
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.node("n1", 0)
    cluster.gang("g", 3, 1)
    assert texts(cluster.run("allocate"), "g") == [
        (
            "PodSchedulingErrors",
            (
                "Resources were found for 2 pods while 3 are required for gang scheduling. Additional pods cannot be "
                "scheduled due to: no nodes with enough resources were found: "
                "2 node(s) didn't have enough resources: GPUs."
            ),
        )
    ]


def test_message_of_an_increment_names_the_pod() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 2, 1, minimum=1)
    assert texts(cluster.run("allocate"), "g") == [
        (
            "PodSchedulingErrors",
            (
                "Resources were not found for pod team/g-1 due to: no nodes with enough resources were found: "
                "1 node(s) didn't have enough resources: GPUs."
            ),
        )
    ]


def test_message_of_a_subgroup() -> None:
    cluster = Cluster()
    _subgroups(3, ("s0", 2, 2, 1), ("s1", 2, 2, 1))(cluster)
    assert texts(cluster.run("allocate"), "g") == [
        (
            "PodSchedulingErrors",
            (
                "Resources were found for 1 pods from all sub-groups while sub-group s1 requires 2 pods for gang "
                "scheduling. Additional pods cannot be scheduled in this sub-group due to: no nodes with enough "
                "resources were found: 1 node(s) didn't have enough resources: GPUs."
            ),
        )
    ]


def test_pod_of_an_unknown_subgroup_counts_for_nothing() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.gang("g", 1, 1, minimum=1)
    cluster.pod("g", 5, 1, sub_group="ghost")
    result = cluster.run("allocate")
    assert counts(result, "g") == {"bound": 1, "pending": 1}


def test_fit_tells_how_far_the_best_attempt_came() -> None:
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.queue("q")
    cluster.queue("tight", limit=1)
    cluster.gang("g", 3, 1)
    cluster.gang("refused", 2, 1, queue="tight")
    cluster.gang("short", 1, 1, minimum=2)
    result = cluster.run("allocate")
    assert [gang.fit for gang in result.gangs] == [2, 0, None]


def test_packs_nodes_and_breaks_ties_by_name() -> None:
    cluster = Cluster()
    cluster.node("b", 4)
    cluster.node("a", 4)
    cluster.node("c", 4)
    cluster.pod("", 0, 1, on="c")
    cluster.gang("g", 4, 1)
    assert sorted(str(node) for node in places(cluster.run("allocate"), "g").values()) == ["a", "c", "c", "c"]


def test_spreads_where_the_shard_says_so() -> None:
    cluster = Cluster()
    cluster.node("a", 4)
    cluster.node("b", 4)
    cluster.pod("", 0, 1, on="a")
    cluster.gang("g", 2, 1)
    cluster.plugin("nodeplacement", gpu="spread", cpu="spread")
    assert places(cluster.run("allocate"), "g") == {"g-0": "b", "g-1": "a"}


def test_cpu_pods_keep_off_gpu_nodes() -> None:
    cluster = Cluster()
    cluster.node("a-gpu", 8)
    cluster.node("z-cpu", 0)
    cluster.gang("g", 1, 0, cpu=1)
    assert places(cluster.run("allocate"), "g") == {"g-0": "z-cpu"}


def test_nominated_node_comes_first() -> None:
    cluster = Cluster()
    cluster.node("a", 1)
    cluster.node("z", 8)
    cluster.gang("g", 1, 1, pod={"nominated_node": "z"})
    assert places(cluster.run("allocate"), "g") == {"g-0": "z"}


def test_host_name_selector_finds_its_node() -> None:
    cluster = Cluster()
    for name in ("a", "b", "c"):
        cluster.node(name, 1)
    cluster.gang("g", 1, 1, pod={"node_selector": {HOST: "c"}})
    assert places(cluster.run("allocate"), "g") == {"g-0": "c"}


def test_older_pod_goes_first_whatever_its_name() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 0, group={"min_member": 1})
    cluster.pod("g", 0, 1, age=10)
    cluster.pod("g", 1, 1, age=900)
    assert places(cluster.run("allocate"), "g") == {"g-0": None, "g-1": "n0"}


def test_gpus_that_are_being_released_count_as_free_where_nodes_are_packed() -> None:
    """Two GPUs are idle on each; one node gets two more back, so the other is the fuller one."""
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.node("n1", 4)
    cluster.pod("", 0, 2, on="n0", deleted=-20)
    cluster.pod("", 1, 2, on="n1")
    cluster.gang("g", 1, 1)
    assert places(cluster.run("allocate"), "g") == {"g-0": "n1"}
    cluster = Cluster()
    cluster.node("n0", 6)
    cluster.node("n1", 6)
    cluster.pod("", 0, 1, on="n0", deleted=-20)
    cluster.pod("", 1, 2, on="n0")
    cluster.pod("", 2, 4, on="n1")
    cluster.gang("g", 1, 1)
    assert places(cluster.run("allocate"), "g") == {"g-0": "n1"}


def test_start_is_noted_for_gangs_that_begin_to_run_now() -> None:
    """Not for one that has to wait for a pod to go, nor for one that ran before and only grows."""
    cluster = Cluster()
    cluster.node("n0", 3)
    cluster.node("n1", 1, labels={"pool": "x"})
    cluster.gang("grows", 2, minimum=1, on=["n0"])
    cluster.gang("starts")
    cluster.pod("", 0, on="n1", deleted=-20)
    cluster.gang("waits", pod={"node_selector": {"pool": "x"}})
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    allocate.execute(session)
    assert {job.name: job.last_start for job in session.jobs.values()} == {"grows": None, "starts": NOW, "waits": None}


def test_step_asks_only_for_what_is_missing_to_the_minimum() -> None:
    cluster = Cluster()
    cluster.node("n0", 3)
    cluster.gang("g", 4, minimum=3, on=["n0"])
    assert counts(cluster.run("allocate"), "g") == {"kept": 1, "bound": 2, "pending": 1}
