"""Consolidation on small clusters: what is moved, and when nothing is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gangdash.engine.actions import allocate, consolidation
from gangdash.engine.model.podgroup import TopologyConstraint
from gangdash.engine.plugins import open_session
from tests.engine.builders import RACK, ZONE, Cluster, counts, gang_of, outcome

Scene = Callable[[Cluster], None]


def _two_halves(kind: str = "train", asker: str = "train", gpus: int = 2) -> Scene:
    """Two nodes of two GPUs, one held on each, and a pod that needs a whole node."""

    def scene(cluster: Cluster) -> None:
        for index in range(2):
            cluster.node(f"n{index}", 2)
            cluster.gang(f"old-{index}", on=[f"n{index}"], kind=kind, age=900 - index)
        cluster.gang("new", 1, gpus, kind=asker)

    return scene


def _too_full(cluster: Cluster) -> None:
    for index in range(2):
        cluster.node(f"n{index}", 4)
        cluster.gang(f"old-{index}", 1, 3, on=[f"n{index}"])
    cluster.gang("new", 1, 3)


def _unready_room(cluster: Cluster) -> None:
    _two_halves()(cluster)
    cluster.nodes[1] = replace(cluster.nodes[1], unschedulable=True)


@pytest.mark.parametrize(
    "scene, moved, new",
    [
        pytest.param(_two_halves(), 1, "pipelined", id="one moves to the other"),
        pytest.param(_two_halves("build"), 0, "unschedulable", id="non-preemptible gangs stay"),
        pytest.param(_two_halves(asker="build"), 0, "unschedulable", id="only for preemptible gangs"),
        pytest.param(_too_full, 0, "unschedulable", id="not enough in sum"),
        pytest.param(_unready_room, 0, "unschedulable", id="free GPUs of a cordoned node do not count"),
    ],
)
def test_consolidation_moves_only_what_finds_a_place(scene: Scene, moved: int, new: str) -> None:
    cluster = Cluster()
    scene(cluster)
    result = cluster.run("allocate", "consolidation")
    assert [str(gang.outcome) for gang in result.gangs].count("moved") == moved
    assert outcome(result, "new") == new
    assert not any(str(gang.outcome) == "evicted" for gang in result.gangs)


def test_a_topology_gang_gets_nodes_of_one_zone_emptied() -> None:
    cluster = Cluster()
    for zone in range(2):
        for rack in range(3):
            name = f"z{zone}-r{rack}"
            cluster.node(name, 3, labels={ZONE: f"z{zone}", RACK: f"z{zone}-r{rack}"})
            cluster.gang(f"old-{name}", on=[name])
    cluster.topology(ZONE, RACK)
    cluster.gang("new", 2, 3, topology=TopologyConstraint("topo", required_level=ZONE))
    result = cluster.run("allocate", "consolidation")
    zones = {(pod.node or "")[:2] for pod in gang_of(result, "new").pods}
    assert outcome(result, "new") == "pipelined"
    assert len(zones) == 1
    assert [str(gang.outcome) for gang in result.gangs].count("moved") == 2


def test_surplus_pods_of_an_elastic_gang_find_no_place_again() -> None:
    """A simulation places one step of a victim only, so two surplus pods on the node keep it from being emptied."""
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.node("n1", 4)
    cluster.gang("old", 2, minimum=1, on=["n0", "n0"])
    cluster.gang("hold", 1, 2, on=["n1"], kind="build")
    cluster.gang("new", 1, 2)
    # Two GPUs are free on n1 already, so the gang is made to need n0.
    pods = [
        p if p.meta.name != "new-0" else replace(p, node_selector={"kubernetes.io/hostname": "n0"})
        for p in cluster.pods
    ]
    cluster.pods[:] = pods
    result = cluster.run("allocate", "consolidation")
    assert outcome(result, "new") == "unschedulable"
    assert counts(result, "old") == {"kept": 2}


@pytest.mark.parametrize(
    "maximum, new, several",
    [
        pytest.param(0, "unschedulable", False, id="switched off"),
        pytest.param(-1, "pipelined", False, id="no maximum"),
        pytest.param(16, "pipelined", False, id="fewer than the maximum"),
        pytest.param(0 + 1, "pipelined", True, id="some drawn of many"),
    ],
)
def test_the_maximum_of_victims(*, maximum: int, new: str, several: bool) -> None:
    cluster = Cluster()
    for index in range(4):
        cluster.node(f"n{index}", 2)
        cluster.gang(f"old-{index}", on=[f"n{index}"])
    cluster.gang("new", 1, 2)
    cluster.params(max_consolidation_preemptees=maximum)
    result = cluster.run("allocate", "consolidation")
    assert outcome(result, "new") == new
    assert gang_of(result, "new").one_of_several is several


def test_pod_without_gpus_is_not_moved_to_a_node_that_the_gang_could_not_use() -> None:
    """Room is sought on nodes with GPUs to give, and on those that victims leave: cpu elsewhere is not looked at."""
    cluster = Cluster()
    cluster.node("n0", 1, cpu=4)
    cluster.node("n1", 0, cpu=64)
    cluster.gang("plain", 1, 0, cpu=4, on=["n0"])
    cluster.gang("new", 1, 1, cpu=2)
    result = cluster.run("allocate", "consolidation")
    assert (outcome(result, "plain"), outcome(result, "new")) == ("kept", "unschedulable")


@pytest.mark.parametrize("shortcuts", [True, False])
def test_gang_placed_before_is_not_told_what_a_trial_to_move_it_met(*, shortcuts: bool) -> None:
    """Placed whole by allocate, then tried as a victim in vain: no pod of it waits, so nobody is shown a reason."""
    cluster = Cluster()
    for index in range(2):
        cluster.node(f"n{index}", 3)
        cluster.gang(f"old-{index}", 1, 2, on=[f"n{index}"], kind="build")
    cluster.gang("early", 1, 1, age=900)
    cluster.gang("new", 1, 2)
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    session.shortcuts = shortcuts
    allocate.execute(session)
    consolidation.execute(session)
    assert session.jobs["early"].errors == []
    assert session.jobs["new"].errors != []
