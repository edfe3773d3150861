"""Preempt on small clusters: one scene a rule, after the scheduler's own tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gangdash.engine.actions import preempt
from gangdash.engine.model.podgroup import SubGroupSpec
from gangdash.engine.model.selectors import Affinity, NodeSelectorTerm, Requirement
from gangdash.engine.plugins import open_session
from gangdash.engine.session import Status
from tests.engine.builders import NOW, Cluster, counts, outcome, texts

Scene = Callable[[Cluster], None]


def _full_node(victim: str, taker: str, *, victim_queue: str = "q", gpus: int = 1, pods: int = 1) -> Scene:
    """A node of one GPU held by one gang while another of some class waits for it."""

    def scene(cluster: Cluster) -> None:
        cluster.node("n0", 1)
        cluster.queue("q")
        cluster.queue("other")
        cluster.gang("old", kind=victim, queue=victim_queue, on=["n0"])
        cluster.gang("new", pods, gpus, kind=taker)

    return scene


def _delayed(delay: float) -> Scene:
    def scene(cluster: Cluster) -> None:
        cluster.node("n0", 1)
        cluster.gang("old", on=["n0"])
        cluster.gang("new", kind="build", age=600, group={"preemption_delay": delay})

    return scene


def _limited(cluster: Cluster) -> None:
    cluster.node("n0", 2)
    cluster.queue("q", 1, 1)
    cluster.gang("old", on=["n0"])
    cluster.gang("new", kind="build")


def _over_quota(cluster: Cluster) -> None:
    cluster.node("n0", 2)
    cluster.queue("q", 1)
    cluster.gang("old", 1, 2, on=["n0"])
    cluster.gang("new", 1, 2, kind="build")


def _stuck_victim(cluster: Cluster) -> None:
    cluster.node("n0", 1)
    cluster.gang("old", 0)
    cluster.pod("old", 0, on="n0", deleted=300)
    cluster.gang("new", kind="build")


def _young_victim(started: float, minimum: float) -> Scene:
    def scene(cluster: Cluster) -> None:
        cluster.node("n0", 1)
        cluster.queues[0] = replace(cluster.queue("q"), preempt_min_runtime=minimum)
        cluster.gang("old", on=["n0"])
        _started(cluster, "old", started)
        cluster.gang("new", kind="build")

    return scene


def _started(cluster: Cluster, name: str, ago: float) -> None:
    """Give a gang the annotation that says when it last started."""
    from dataclasses import replace
    from datetime import UTC, datetime

    index = next(i for i, group in enumerate(cluster.podgroups) if group.meta.name == name)
    group = cluster.podgroups[index]
    when = datetime.fromtimestamp(NOW - ago, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    meta = replace(group.meta, annotations={"kai.scheduler/last-start-timestamp": when})
    cluster.podgroups[index] = replace(group, meta=meta)


@pytest.mark.parametrize(
    "scene, old, new",
    [
        pytest.param(_full_node("train", "build"), "evicted", "pipelined", id="higher priority takes the place"),
        pytest.param(_full_node("train", "train"), "kept", "unschedulable", id="equal priority does not"),
        pytest.param(_full_node("build", "inference"), "kept", "unschedulable", id="a non-preemptible gang stays"),
        pytest.param(
            _full_node("train", "build", victim_queue="other"), "kept", "unschedulable", id="only in the same queue"
        ),
        pytest.param(_full_node("train", "build", pods=2), "kept", "unschedulable", id="the gang must fit whole"),
        pytest.param(_delayed(900), "kept", "unschedulable", id="not within the preemption delay"),
        pytest.param(_delayed(300), "evicted", "pipelined", id="after the preemption delay"),
        pytest.param(_limited, "evicted", "pipelined", id="the limit is looked at with the victim gone"),
        pytest.param(_over_quota, "kept", "unschedulable", id="a non-preemptible gang stays within its quota"),
        pytest.param(_stuck_victim, "kept", "unschedulable", id="a pod that does not go away is no victim"),
        pytest.param(_young_victim(60, 600), "kept", "unschedulable", id="too young to be preempted"),
        pytest.param(_young_victim(900, 600), "evicted", "pipelined", id="old enough to be preempted"),
    ],
)
def test_preempt_takes_only_what_the_rules_leave_open(scene: Scene, old: str, new: str) -> None:
    cluster = Cluster()
    scene(cluster)
    result = cluster.run("allocate", "preempt")
    assert (outcome(result, "old"), outcome(result, "new")) == (old, new)


def test_a_gang_within_its_delay_is_told_until_when() -> None:
    cluster = Cluster()
    _delayed(900)(cluster)
    result = cluster.run("allocate", "preempt")
    assert texts(result, "new")[-1] == (
        "PreemptionDelayNotElapsed",
        (
            "Workload is within its preemption delay window (15m0s) and may not trigger evictions before "
            "2027-01-15T08:05:00Z"
        ),
    )


@pytest.mark.parametrize(
    "minimum, evicted",
    [
        pytest.param(1, 2, id="surplus pods go first"),
        pytest.param(2, 4, id="a gang at its minimum goes whole"),
    ],
)
def test_elastic_victims_lose_pods_one_by_one(minimum: int, evicted: int) -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    specs = tuple(SubGroupSpec(f"sub-{i}", min_member=minimum) for i in range(2))
    cluster.gang("old", 0, sub_groups=specs)
    for spec in specs:
        for index in range(2):
            cluster.pod("old", index, on="n0", sub_group=spec.name)
    cluster.gang("new", 1, 2, kind="build")
    result = cluster.run("allocate", "preempt")
    assert counts(result, "old").get("evicted") == evicted
    assert outcome(result, "new") == "pipelined"


def test_the_youngest_least_important_gang_goes_first() -> None:
    cluster = Cluster()
    cluster.node("n0", 3)
    cluster.gang("old", on=["n0"], age=900)
    cluster.gang("young", on=["n0"], age=100)
    cluster.gang("middle", on=["n0"], age=500, kind="build-preemptible")
    cluster.gang("new", kind="build")
    result = cluster.run("allocate", "preempt")
    assert [outcome(result, name) for name in ("old", "young", "middle")] == ["kept", "evicted", "kept"]


def test_a_victim_moves_where_it_finds_room() -> None:
    """The waiting gang needs a node of its own; what stood in its way is promised the free GPU elsewhere."""
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.node("n1", 1)
    cluster.gang("old", on=["n0"])
    cluster.gang("new", 1, 2, kind="build")
    result = cluster.run("allocate", "preempt")
    assert counts(result, "old") == {"moved": 1}
    assert [pod.node for pod in result.gangs[1].pods] == ["n1"]


def test_what_cannot_be_cured_by_eviction_is_told_and_not_searched() -> None:
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.gang("old", 1, 2, on=["n0"])
    cluster.gang("new", 1, 4, kind="build")
    result = cluster.run("allocate", "preempt")
    assert outcome(result, "old") == "kept"
    reason, message = texts(result, "new")[-1]
    assert reason == "PodSchedulingErrors"
    assert "topped at 2" in message


def test_a_gang_like_one_that_failed_is_not_tried_again() -> None:
    """Both want what no victim can give; the second is passed over by its signature, with signatures off it is not."""
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.node("n1", 1)
    cluster.gang("old", kind="train", on=["n0"])
    cluster.gang("fixed", kind="build", on=["n1"])
    cluster.gang("first", 2, kind="build", age=900)
    cluster.gang("second", 2, kind="build", age=800)
    result = cluster.run("allocate", "preempt")
    assert {outcome(result, name) for name in ("first", "second")} == {"unschedulable"}


@pytest.mark.parametrize("shortcuts", [True, False])
def test_gang_that_lost_its_pod_in_this_action_searches_for_nothing(*, shortcuts: bool) -> None:
    """Its step still names the pod just evicted, which can be placed again only in the next cycle."""
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("low", on=["n0"], age=900)
    cluster.gang("old", 2, minimum=1, on=["n0"], kind="build-preemptible")
    cluster.nodes[0] = replace(cluster.nodes[0], allocatable={**cluster.nodes[0].allocatable, "nvidia.com/gpu": 2})
    cluster.gang("new", 1, 2, kind="build")
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    session.shortcuts = shortcuts
    preempt.execute(session)
    status = {task.name: task.status for task in session.tasks.values()}
    assert status == {
        "low-0": Status.RELEASING,
        "old-0": Status.RELEASING,
        "old-1": Status.PENDING,
        "new-0": Status.PIPELINED,
    }


def test_pod_that_no_eviction_helps_is_told_before_any_search() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("old", on=["n0"])
    cluster.gang("new", 1, 9, kind="build")
    result = cluster.run("preempt")
    assert outcome(result, "old") == "kept"
    assert [reason for reason, _ in texts(result, "new")] == ["PodSchedulingErrors"]
    assert "Resources were not found for pod team/new-0 due to:" in texts(result, "new")[0][1]


def test_node_names_that_exclude_each_other_are_told_only_where_pods_are_placed() -> None:
    names = tuple(Requirement("metadata.name", "In", (name,)) for name in ("n0", "n1"))
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("old", on=["n0"])
    cluster.gang("new", kind="build", pod={"affinity": Affinity(node_required=(NodeSelectorTerm(match_fields=names),))})
    assert texts(cluster.run("preempt"), "new") == []
    assert "pod affinity terms conflict" in texts(cluster.run("allocate"), "new")[0][1]


def test_preempt_needs_no_rule_about_minimum_runtimes() -> None:
    cluster = Cluster()
    _full_node("train", "build")(cluster)
    plugins = tuple(plugin for plugin in cluster.config.plugins if plugin.name != "minruntime")
    cluster.config = replace(cluster.config, plugins=plugins)
    assert outcome(cluster.run("allocate", "preempt"), "new") == "pipelined"
