"""No placement exists: which thing is in the way, and is it in the way for ever?"""

from __future__ import annotations

from dataclasses import replace

from gangdash.engine.model.meta import Condition
from gangdash.engine.model.podgroup import SubGroupSpec, TopologyConstraint
from gangdash.engine.model.selectors import Taint
from tests.engine.builders import HOST, RACK, Cluster
from tests.explain.helpers import explain, said

IN_ONE_RACK = TopologyConstraint("topo", required_level=RACK)


def full(cluster: Cluster, *nodes: str, gpus: int = 8) -> None:
    """Fill nodes with gangs that nothing can evict."""
    for node in nodes:
        cluster.gang(f"hold-{node}", 1, gpus, kind="build", on=[node])


def test_pod_larger_than_any_node_never_fits() -> None:
    cluster = Cluster()
    cluster.node("n1", 4)
    cluster.node("n2", 8)
    cluster.gang("g", 1, 9)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "NODE_TOO_SMALL")
    assert entry.sentence == "Pod g-0 needs 9 GPUs; the largest node it may use (n2) has 8, even empty."
    assert entry.certainty == "proved"
    assert entry.waiting.helps == "no"


def test_resources_that_no_single_node_has_together_are_told_so() -> None:
    cluster = Cluster()
    cluster.node("gpus", 8, cpu=16)
    cluster.node("cpus", 0, cpu=128)
    cluster.gang("g", 1, 8, cpu=32)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "NODE_TOO_SMALL")
    assert "gpus" in entry.sentence
    assert "16" in entry.sentence


def test_gang_larger_than_the_cluster_never_fits() -> None:
    cluster = Cluster()
    for name in ("n1", "n2", "n3", "n4"):
        cluster.node(name, 8)
    full(cluster, "n1")
    cluster.gang("g", 5, 8)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "CLUSTER_TOO_SMALL")
    assert entry.sentence.startswith("Needs 5 pods of 8 GPUs at once; the 4 nodes it may use can hold 4 pods")


def test_domain_too_small_even_when_empty() -> None:
    cluster = Cluster()
    cluster.racks({"r1": {"n1": 8, "n2": 8}, "r2": {"n3": 8, "n4": 8}})
    cluster.gang("g", 3, 8, topology=IN_ONE_RACK)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "DOMAIN_TOO_SMALL")
    assert "24 GPUs in one rack" in entry.sentence
    assert (entry.binding[0].need, entry.binding[0].have) == (24, 16)


def test_domain_busy_says_how_many_domains_could_hold_it() -> None:
    cluster = Cluster()
    cluster.racks({"r1": {"n1": 8, "n2": 8}, "r2": {"n3": 8, "n4": 8}})
    full(cluster, "n1", "n3")
    cluster.gang("g", 2, 8, topology=IN_ONE_RACK)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "DOMAIN_BUSY")
    assert "2 domains could hold it if empty" in entry.sentence


def test_running_members_tie_the_rest_to_their_domain() -> None:
    cluster = Cluster()
    cluster.racks({"r1": {"n1": 8}, "r2": {"n2": 8}})
    cluster.gang("g", 2, 8, topology=IN_ONE_RACK, on=["n1"])
    entry = explain(cluster)
    assert said(entry)[0] == "NO_FIT"
    assert "r1" in entry.sentence


def test_gpus_busy_names_who_holds_them_and_why_they_stay() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    full(cluster, "n1", gpus=6)
    cluster.gang("g", 1, 4)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "GPUS_BUSY")
    assert [(holder.gang, holder.gpus, holder.evictable) for holder in entry.holders] == [
        ("team/hold-n1", 6, "no: non-preemptible")
    ]


def test_fragmented_gpus_are_enough_in_sum_only() -> None:
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.node(name, 8)
        full(cluster, name, gpus=4)
    cluster.gang("g", 1, 8)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "FRAGMENTED")
    assert "8 GPUs are free, but scattered" in entry.sentence


def test_cpu_short_says_by_how_much() -> None:
    cluster = Cluster()
    cluster.node("n1", 8, cpu=8)
    cluster.gang("hold", 1, 0, cpu=6, kind="build", on=["n1"])
    cluster.gang("g", 1, 1, cpu=4)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "RESOURCE_SHORT")
    assert "short by 2 CPUs" in entry.sentence


def test_pod_slots_are_an_amount_like_any_other() -> None:
    cluster = Cluster()
    cluster.node("n1", 8, pods=1)
    cluster.gang("hold", 1, 0, kind="build", on=["n1"])
    cluster.gang("g", 1, 1)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "POD_SLOTS")
    assert "1 of 1" in entry.sentence


def test_selector_that_no_node_has() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("g", 1, 1, pod={"node_selector": {"gpu-type": "h100"}})
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "SELECTOR_MISMATCH")
    assert "gpu-type=h100" in entry.sentence


def test_taint_that_the_pods_do_not_tolerate() -> None:
    cluster = Cluster()
    cluster.node("n1", 8, taints=(Taint("dedicated", "infra", "NoSchedule"),))
    cluster.gang("g", 1, 1)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "TAINT_NOT_TOLERATED")
    assert "dedicated=infra:NoSchedule" in entry.sentence


def test_fraction_finds_no_device_with_room() -> None:
    cluster = Cluster()
    cluster.node("n1", 1)
    cluster.gang("hold", 1, 0.5, kind="build", on=["n1"], pod={})
    cluster.pods[-1] = replace(cluster.pods[-1], meta=replace(cluster.pods[-1].meta, labels={"runai-gpu-group": "0"}))
    cluster.gang("g", 1, 0.7)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "GPU_SHAPE")
    assert "0.7 GPUs on one device" in entry.sentence


def test_subgroups_with_domains_of_their_own_each_need_one() -> None:
    cluster = Cluster()
    cluster.racks({f"r{index}": {f"n{index}": 4} for index in range(4)})
    parts = tuple(SubGroupSpec(name, min_member=2, topology=IN_ONE_RACK) for name in ("a", "b"))
    cluster.gang("g", 0, sub_groups=parts)
    for part in ("a", "b"):
        for index in range(2):
            cluster.pod("g", index, 4, sub_group=part)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "DOMAIN_TOO_SMALL")


# States of nodes


def test_cordoned_node_is_what_it_would_fit_on() -> None:
    cluster = Cluster()
    cluster.node("n1", 8, cordoned=True)
    cluster.gang("g", 1, 8)
    entry = explain(cluster)
    assert said(entry) == ("NODE", "NODES_CORDONED")
    assert entry.binding[0].id == "node.cordon"
    assert [(group.reason, group.count) for group in entry.nodes] == [("cordoned", 1)]


def test_node_that_is_not_ready() -> None:
    cluster = Cluster()
    cluster.node("n1", 8, conditions=(Condition("Ready", "False"),))
    cluster.gang("g", 1, 8)
    assert said(explain(cluster)) == ("NODE", "NODES_NOT_READY")


def test_taint_of_a_repair_is_a_state() -> None:
    cluster = Cluster()
    cluster.node("n1", 8, taints=(Taint("repair", "true", "NoExecute"),))
    cluster.gang("g", 1, 8)
    assert said(explain(cluster)) == ("NODE", "NODES_TAINTED_BY_STATE")


def test_unhealthy_device_is_counted_against_capacity() -> None:
    cluster = Cluster()
    made = cluster.node("n1", 8)
    cluster.nodes[-1] = replace(made, allocatable={**made.allocatable, "nvidia.com/gpu": 7})
    cluster.gang("g", 1, 8)
    entry = explain(cluster)
    assert said(entry) == ("NODE", "DEVICES_UNHEALTHY")
    assert "n1 offers 7 of its 8 GPUs" in entry.sentence


def test_node_without_device_plugin_offers_nothing() -> None:
    cluster = Cluster()
    made = cluster.node("n1", 8)
    cluster.nodes[-1] = replace(made, allocatable={**made.allocatable, "nvidia.com/gpu": 0})
    cluster.gang("g", 1, 8)
    assert said(explain(cluster)) == ("NODE", "DEVICE_PLUGIN_MISSING")


def test_cordon_that_does_not_matter_is_not_the_cause() -> None:
    cluster = Cluster()
    cluster.node("n1", 8, cordoned=True)
    cluster.node("n2", 8)
    cluster.gang("g", 1, 16)
    assert said(explain(cluster)) == ("NO_FIT", "NODE_TOO_SMALL")


def test_what_is_in_the_way_next_is_told_too() -> None:
    cluster = Cluster()
    cluster.node("n1", 8, cordoned=True)
    cluster.node("n2", 8)
    full(cluster, "n2")
    cluster.gang("g", 1, 8)
    entry = explain(cluster)
    assert said(entry) == ("NODE", "NODES_CORDONED")
    assert [str(other.code) for other in entry.also] == ["GPUS_BUSY"]


def test_no_domain_has_all_labels() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.topology(RACK, HOST)
    cluster.gang("g", 1, 1, topology=IN_ONE_RACK)
    entry = explain(cluster)
    assert said(entry) == ("CONFIG", "TOPOLOGY_LABEL_MISSING")
    assert RACK in entry.sentence
