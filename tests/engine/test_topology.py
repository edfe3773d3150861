"""Where a gang may be placed under topology constraints, in which order, and what it is told."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from gangdash.engine.actions import allocate
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.podgroup import SubGroupSpec, TopologyConstraint
from gangdash.engine.model.topology import Topology, TopologyLevel
from gangdash.engine.plugins import open_session
from gangdash.engine.rules.topology import Topologies
from gangdash.engine.rules.topology_tree import Tree
from gangdash.engine.statement.vectors import added
from tests.engine.builders import HOST, RACK, ZONE, Cluster, outcome, places, texts
from tests.engine.worlds import clusters

ERRORS = "PodSchedulingErrors"
NOT_ENOUGH = "Not enough resources for the workload"


def _required(level: str = RACK, preferred: str = "", name: str = "topo") -> TopologyConstraint:
    return TopologyConstraint(name, level, preferred)


def _racks(layout: dict[str, dict[str, int]], used: dict[str, int] | None = None) -> Cluster:
    cluster = Cluster()
    cluster.racks(layout)
    for node, gpus in (used or {}).items():
        cluster.pod("", len(cluster.pods), gpus, on=node)
    return cluster


def _nodes(cluster: Cluster, name: str = "g") -> list[str | None]:
    return list(places(cluster.run("allocate"), name).values())


def test_gang_goes_to_the_rack_that_holds_it() -> None:
    cluster = _racks({"r1": {"n0": 1, "n1": 1}, "r2": {"n2": 1, "n3": 1}}, {"n0": 1})
    cluster.gang("g", 2, 1, topology=_required())
    assert _nodes(cluster) == ["n2", "n3"]


def test_tightest_rack_first() -> None:
    cluster = _racks({"r1": {"n0": 8}, "r2": {"n1": 8}, "r3": {"n2": 8}}, {"n0": 2, "n1": 4, "n2": 6})
    cluster.gang("g", 4, 1, topology=_required())
    assert set(_nodes(cluster)) == {"n1"}


def test_rack_that_passes_the_sums_but_not_the_selectors_is_left_again() -> None:
    cluster = Cluster()
    cluster.topology(RACK)
    for name, rack, mark in (("n0", "r1", "x"), ("n1", "r1", "x"), ("n2", "r2", "y"), ("n3", "r2", "x")):
        cluster.node(name, 1, labels={RACK: rack, "mark": mark})
    cluster.gang("g", 0, group={"min_member": 2, "topology": _required()})
    cluster.pod("g", 0, 1, fields={"node_selector": {"mark": "y"}})
    cluster.pod("g", 1, 1)
    assert _nodes(cluster) == ["n2", "n3"]


def test_no_rack_is_large_enough() -> None:
    cluster = _racks({"r1": {"n0": 2, "n1": 2}, "r2": {"n2": 2, "n3": 2}}, {"n0": 1, "n2": 1})
    cluster.gang("g", 4, 1, topology=_required())
    assert texts(cluster.run("allocate"), "g") == [
        (NOT_ENOUGH, "node-group r1 can allocate only 3 of 4 required pods"),
        (NOT_ENOUGH, "node-group r2 can allocate only 3 of 4 required pods"),
        (ERRORS, f"topology topo, requirement {RACK} couldn't be satisfied for job <team/g>"),
    ]


def test_the_whole_cluster_is_too_small() -> None:
    cluster = _racks({"r1": {"n0": 1, "n1": 1}, "r2": {"n2": 2}})
    cluster.gang("g", 2, 2, topology=_required())
    assert texts(cluster.run("allocate"), "g") == [
        (
            ERRORS,
            (
                f"topology topo, requirement {RACK} couldn't be satisfied for job <team/g>: "
                "not enough resources in the cluster to allocate the job"
            ),
        )
    ]


def test_the_only_domain_is_named_when_it_is_too_small() -> None:
    cluster = _racks({"r1": {"n0": 1, "n1": 1}})
    cluster.gang("g", 3, 1, topology=_required("", RACK))
    assert texts(cluster.run("allocate"), "g")[0][1].endswith("not enough resources in r1 to allocate the job")


def test_preferred_level_may_be_left() -> None:
    cluster = _racks({"r1": {"n0": 2}, "r2": {"n1": 2}}, {"n0": 1, "n1": 1})
    cluster.gang("g", 2, 1, topology=_required("", RACK))
    assert sorted(str(node) for node in _nodes(cluster)) == ["n0", "n1"]


def test_constrained_pods_keep_to_labelled_nodes() -> None:
    cluster = _racks({"r1": {"n0": 1}, "r2": {"n1": 1}})
    cluster.node("free", 8)
    cluster.gang("g", 3, 1, topology=_required("", RACK))
    assert outcome(cluster.run("allocate"), "g") == "unschedulable"


def test_tightest_domain_of_the_preferred_level_first() -> None:
    cluster = Cluster()
    cluster.topology(ZONE, RACK)
    for index in range(4):
        cluster.node(f"a{index}", 1, labels={ZONE: "z", RACK: "s1"})
        cluster.node(f"b{index}", 1, labels={ZONE: "z", RACK: "s2"})
    for index in range(3):
        cluster.pod("", index, 1, on=f"a{index}")
    cluster.gang("g", 1, 1, topology=_required("", RACK))
    assert _nodes(cluster) == ["a3"]


def test_parents_are_sorted_before_children() -> None:
    cluster = Cluster()
    cluster.topology(ZONE, RACK)
    for index in range(3):
        cluster.node(f"a{index}", 1, labels={ZONE: "s1", RACK: f"r{index}"})
    cluster.node("b", 2, labels={ZONE: "s2", RACK: "r4"})
    cluster.gang("g", 1, 1, topology=_required("", RACK))
    assert _nodes(cluster) == ["b"]


def test_running_pods_pin_the_domain() -> None:
    cluster = _racks({"r1": {"n0": 8}, "r2": {"n1": 8}}, {"n1": 4})
    cluster.gang("g", 3, 1, minimum=3, on=["n0"], topology=_required())
    assert set(_nodes(cluster)) == {"n0"}


def test_preferred_level_pins_nothing() -> None:
    cluster = _racks({"r1": {"n0": 8}, "r2": {"n1": 8}}, {"n1": 5})
    cluster.gang("g", 3, 1, minimum=3, on=["n0"], topology=_required("", RACK))
    assert _nodes(cluster) == ["n0", "n1", "n1"]


def test_pods_of_a_subgroup_pin_only_its_own_step() -> None:
    cluster = _racks({"r1": {"n0": 8}, "r2": {"n1": 8}}, {"n1": 5})
    parts = (SubGroupSpec("a", min_member=1), SubGroupSpec("b", min_member=2))
    cluster.gang("g", 0, sub_groups=parts, topology=_required())
    cluster.pod("g", 0, 1, sub_group="a", on="n0")
    for index in range(2):
        cluster.pod("g", index, 1, sub_group="b")
    assert _nodes(cluster) == ["n0", "n1", "n1"]


def test_required_level_above_the_common_domain_fits_nothing() -> None:
    """All nodes share a rack, so the search starts there and the zone counts as having nothing."""
    cluster = Cluster()
    cluster.topology(ZONE, RACK)
    cluster.node("n0", 8, labels={ZONE: "z", RACK: "r"})
    cluster.gang("g", 2, 1, topology=_required(ZONE))
    errors = texts(cluster.run("allocate"), "g")
    assert errors[0] == (
        NOT_ENOUGH,
        "node-group(s) didn't have enough resources: GPUs | node-group(s) didn't have enough resources: pods",
    )
    cluster.podgroups.clear()
    cluster.pods.clear()
    cluster.gang("g", 2, 1, topology=_required(ZONE, ZONE))
    assert outcome(cluster.run("allocate"), "g") == "bound"


def test_unlike_pods_are_compared_by_their_sum() -> None:
    cluster = _racks({"r1": {"n0": 1}, "r2": {"n1": 1}})
    cluster.gang("g", 0, group={"min_member": 2, "topology": _required()})
    cluster.pod("g", 0, 1, cpu=40)
    cluster.pod("g", 1, 0, cpu=40)
    told = (NOT_ENOUGH, "node-group(s) didn't have enough resources: CPU cores")
    unmet = (ERRORS, f"topology topo, requirement {RACK} couldn't be satisfied for job <team/g>")
    assert texts(cluster.run("allocate"), "g") == [told, unmet]


def test_missing_topology_is_named() -> None:
    cluster = _racks({"r1": {"n0": 8}})
    cluster.gang("g", 1, 1, topology=_required(name="other"))
    assert texts(cluster.run("allocate"), "g") == [(ERRORS, "Requested topology other does not exist")]


@pytest.mark.parametrize(
    "constraint",
    [_required("no/such-level"), _required(RACK, "no/such-level"), _required("", ""), _required(HOST, RACK)],
    ids=["required", "preferred", "none", "preferred above required"],
)
def test_levels_that_make_no_sense_fail_without_a_word(constraint: TopologyConstraint) -> None:
    cluster = Cluster()
    cluster.topology(RACK, HOST)
    cluster.node("n0", 8, labels={RACK: "r1"})
    cluster.node("n1", 8, labels={RACK: "r2"})
    cluster.gang("g", 1, 1, topology=constraint)
    result = cluster.run("allocate")
    assert (outcome(result, "g"), texts(result, "g")) == ("unschedulable", [])


def test_aliases_stand_for_labels() -> None:
    cluster = _racks({"r1": {"n0": 1, "n1": 1}, "r2": {"n2": 1, "n3": 1}}, {"n0": 1})
    cluster.topologies[0] = Topology(Meta("topo"), (TopologyLevel(RACK, "rack"),))
    cluster.gang("g", 2, 1, topology=_required("rack"))
    assert _nodes(cluster) == ["n2", "n3"]


def test_each_subgroup_chooses_its_own_rack() -> None:
    cluster = _racks({"r1": {"n0": 2}, "r2": {"n1": 2}, "r3": {"n2": 1}})
    parts = tuple(SubGroupSpec(name, min_member=2, topology=_required()) for name in ("a", "b"))
    cluster.gang("g", 0, sub_groups=parts)
    for name in ("a", "b"):
        for index in range(2):
            cluster.pod("g", index, 1, sub_group=name)
    assert _nodes(cluster) == ["n0", "n0", "n1", "n1"]


def test_child_is_placed_inside_its_parents_domain() -> None:
    cluster = Cluster()
    cluster.topology(ZONE, RACK)
    for zone, rack, gpus in (("z1", "r1", 2), ("z1", "r2", 1), ("z2", "r3", 2), ("z2", "r4", 2)):
        cluster.node(f"n-{rack}", gpus, labels={ZONE: zone, RACK: rack})
    parts = tuple(SubGroupSpec(name, min_member=2, topology=_required()) for name in ("a", "b"))
    cluster.gang("g", 0, sub_groups=parts, topology=_required(ZONE))
    for name in ("a", "b"):
        for index in range(2):
            cluster.pod("g", index, 1, sub_group=name)
    assert set(_nodes(cluster)) == {"n-r3", "n-r4"}


def test_shared_gpus_count_in_a_domains_room() -> None:
    cluster = _racks({"r1": {"n0": 1}, "r2": {"n1": 1}})
    cluster.gang("old", 0, minimum=1)
    cluster.pod("old", 0, 0.5, on="n0", labels={"runai-gpu-group": "g0"})
    cluster.gang("g", 1, 0.5, topology=_required())
    assert _nodes(cluster) == ["n0"]


def test_best_effort_pods_always_have_room() -> None:
    cluster = _racks({"r1": {"n0": 0}, "r2": {"n1": 0}})
    cluster.gang("g", 2, 0, topology=_required())
    assert len(set(_nodes(cluster))) == 1


@given(cluster=clusters())
@settings(max_examples=60)
def test_sums_that_follow_changes_equal_fresh_ones(cluster: Cluster) -> None:
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    topologies = next(scorer for scorer in session.hooks.node_scorers if isinstance(scorer, Topologies))
    tree = topologies.trees["topo"]
    largest: list[float] = [1000, 0, 1, 1, *[0] * (len(session.layout.names) - 4)]
    tree.rooms(largest, 1)
    allocate.execute(session)
    tree.refresh()
    fresh = Tree(snapshot.topologies[0], session)
    assert tree.rooms(largest, 1) == fresh.rooms(largest, 1)
    for level, domains in tree.levels.items():
        for id_, domain in domains.items():
            assert domain.free == fresh.levels[level][id_].free
    total = [0.0] * len(session.layout.names)
    for node in session.all_nodes:
        total = added(total, added(node.idle, node.releasing))
    assert tree.root.free == total


@pytest.mark.parametrize("shortcuts", [True, False])
def test_gang_larger_than_any_rack_fills_the_racks_one_after_the_other(*, shortcuts: bool) -> None:
    """Names of nodes alternate between the racks, so that only the preference keeps pods together."""
    cluster = Cluster()
    cluster.topology(RACK)
    for index in range(6):
        cluster.node(f"n{index}", 1, labels={RACK: f"r{index % 2}"})
    cluster.gang("g", 4, 1, topology=TopologyConstraint("topo", "", RACK))
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    session.shortcuts = shortcuts
    allocate.execute(session)
    assert [task.node_name for task in session.jobs["g"].tasks.values()] == ["n1", "n3", "n5", "n0"]
