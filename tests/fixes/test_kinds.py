"""Which kind of change is found for which cause."""

from __future__ import annotations

import pytest

from gangdash.engine.model.podgroup import TopologyConstraint
from gangdash.engine.verdict import Fix, FixKind
from gangdash.reasons.fixes import fix_sentence
from tests.engine.builders import RACK, Cluster
from tests.fixes.helpers import fixed, fixes_of, kinds


def fix_of(cluster: Cluster, kind: FixKind, gang: str = "team/g") -> Fix:
    return next(fix for fix in fixes_of(cluster, gang) if fix.kind is kind)


def test_a_limit_in_the_way_is_raised_by_what_is_short() -> None:
    cluster = Cluster()
    cluster.queue("q", -1, 4)
    cluster.node("n", 8)
    cluster.gang("run", 1, 3, on=["n"])
    cluster.gang("g", 1, 2)
    fix = fix_of(cluster, FixKind.RAISE_LIMIT)
    assert (dict(fix.change), fix.starts) == ({"object": "q", "gpu": "5"}, ("team/g",))
    assert fix_sentence(fix) == "Raise the GPU limit of queue q from 4 to 5 GPUs."


def test_a_quota_in_the_way_of_a_non_preemptible_gang_is_raised_or_the_gang_made_preemptible() -> None:
    cluster = Cluster()
    cluster.queue("q", 1)
    cluster.node("n", 8)
    cluster.gang("g", 1, 2, kind="build")
    assert {"raise_quota", "make_preemptible"} <= kinds(fixes_of(cluster))


def test_a_full_cluster_offers_to_wait_to_stop_and_to_add_the_fewest_nodes() -> None:
    cluster = Cluster()
    for index in range(2):
        cluster.node(f"n{index}", 8)
        cluster.gang(f"run-{index}", 1, 8, kind="build", on=[f"n{index}"])
    cluster.gang("g", 2, 8, kind="build")
    assert {"wait_for", "evict_gang", "add_nodes"} <= kinds(fixes_of(cluster))
    assert fix_of(cluster, FixKind.ADD_NODES).change["count"] == "2"


def test_a_rack_that_is_full_is_left_for_a_wider_domain() -> None:
    cluster = Cluster()
    cluster.racks({"r1": {"n1": 8}, "r2": {"n2": 8}})
    cluster.gang("g", 2, 8, topology=TopologyConstraint("topo", RACK))
    assert "relax_topology" in kinds(fixes_of(cluster))


def test_nodes_that_are_kept_away_are_uncordoned_together() -> None:
    cluster = Cluster()
    for index in range(3):
        cluster.node(f"n{index}", 8, cordoned=index > 0)
    cluster.gang("g", 3, 8)
    fix = fix_of(cluster, FixKind.UNCORDON)
    assert fix.facts["nodes"] == ("n1", "n2")
    assert fix.change["also"] == ("uncordon:n2",)


def test_a_node_like_one_without_device_plugin_has_the_gpus_that_discovery_counted() -> None:
    cluster = Cluster()
    cluster.node("n", 0, labels={"nvidia.com/gpu.count": "8", "nvidia.com/gpu.present": "true"})
    cluster.gang("g", 1, 8)
    assert {"repair_device", "add_nodes"} <= kinds(fixes_of(cluster))


def test_where_no_node_has_a_gpu_nodes_with_some_are_offered() -> None:
    cluster = Cluster()
    cluster.node("n", 0)
    cluster.gang("g", 2, 4)
    fix = fix_of(cluster, FixKind.ADD_NODES)
    assert (fix.change["count"], fix.change["gpu"]) == ("1", "8")
    assert fix_sentence(fix) == "Add 1 node like n but with 8 GPUs."


def over_limit() -> Cluster:
    cluster = Cluster()
    cluster.queue("q", -1, 4)
    cluster.queue("roomy")
    cluster.node("n", 8)
    cluster.gang("a", 1, 4, on=["n"], age=900)
    cluster.gang("g", 1, 2, on=["n"], age=600)
    return cluster


def test_a_gang_that_runs_above_a_limit_names_what_brings_it_within() -> None:
    cluster = over_limit()
    assert {"raise_limit", "move_queue", "evict_gang"} <= kinds(fixes_of(cluster))
    assert fix_of(cluster, FixKind.RAISE_LIMIT).change["gpu"] == "6"
    assert fix_of(cluster, FixKind.MOVE_QUEUE).change["queue"] == "roomy"


def test_raising_a_limit_too_little_for_a_placed_gang_is_no_fix() -> None:
    """The move to a queue that is too small itself does not end the violation, so it is not told."""
    cluster = over_limit()
    cluster.queues[1] = cluster.queues[0].__class__(
        meta=cluster.queues[1].meta, gpu=cluster.queues[0].gpu.__class__(-1, 1, 1) if cluster.queues[0].gpu else None
    )
    assert "move_queue" not in kinds(fixes_of(cluster))


def spread() -> Cluster:
    cluster = Cluster()
    cluster.racks({"r1": {"n1": 4, "n2": 4}, "r2": {"n3": 4}})
    cluster.gang("g", 2, 4, on=["n1", "n3"], topology=TopologyConstraint("topo", RACK))
    return cluster


def test_a_gang_that_runs_in_two_racks_is_placed_anew_where_one_rack_has_room() -> None:
    fix = fix_of(spread(), FixKind.EVICT_GANG)
    assert (dict(fix.change), fix_sentence(fix)) == (
        {"object": "team/g"},
        "Stop g, so that its pods are placed anew.",
    )


def test_a_gang_that_no_rack_can_hold_is_not_told_to_be_placed_anew() -> None:
    cluster = Cluster()
    cluster.racks({"r1": {"n1": 4}, "r2": {"n3": 4}})
    cluster.gang("g", 2, 4, on=["n1", "n3"], topology=TopologyConstraint("topo", RACK))
    found = fixes_of(cluster)
    assert all(fix.change.get("ends") or fix.kind is not FixKind.EVICT_GANG for fix in found)


def test_nothing_is_re_run_for_a_gang_that_runs(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.node("n", 8)
    cluster.gang("g", 1, 2, on=["n"])
    (item,) = fixed(cluster.snapshot())
    assert [fix for fix in item.fixes if fix.verified] == []
    assert (item.fixes_refused, item.fixes_untried, caplog.records) == (0, 0, [])
