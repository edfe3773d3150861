"""What binds is unmet, what is met is slack, and both say so in numbers."""

from __future__ import annotations

from gangdash.documents.model import BindingEntry
from gangdash.engine.model.podgroup import SubGroupSpec, TopologyConstraint
from tests.engine.builders import HOST, RACK, Cluster
from tests.explain.helpers import explain, recorded_causes, said, scene_causes, waiting

_WEIGHED = {"NO_FIT", "POLICY", "NODE", "STUCK"}


def is_met(entry: BindingEntry) -> bool | None:
    """Whether a numeric constraint holds; None for names."""
    if isinstance(entry.need, str) or isinstance(entry.have, str | None):
        return None
    return entry.need <= entry.have


def test_nothing_that_is_met_binds_and_nothing_unmet_is_slack() -> None:
    for entry in (*recorded_causes(), *scene_causes()):
        assert [item for item in entry.binding if is_met(item)] == [], entry.gang
        assert [item for item in entry.slack if not is_met(item)] == [], entry.gang


def test_nothing_is_told_twice() -> None:
    for entry in (*recorded_causes(), *scene_causes()):
        keys = [(item.id, item.scope) for item in (*entry.binding, *entry.slack)]
        assert len(keys) == len(set(keys)), entry.gang


def test_every_gang_that_nothing_starts_is_bound_by_something() -> None:
    entries = [entry for entry in waiting((*recorded_causes(), *scene_causes())) if entry.verdict != "WILL_START"]
    assert [entry.gang for entry in entries if not entry.binding] == []
    assert len(entries) > 150


def test_most_gangs_that_rules_or_room_keep_waiting_say_what_holds() -> None:
    entries = [entry for entry in recorded_causes() if entry.verdict in _WEIGHED]
    with_slack = [entry for entry in entries if entry.slack]
    assert len(with_slack) / len(entries) > 0.9


def full(cluster: Cluster, node: str, gpus: int) -> None:
    cluster.gang(f"hold-{node}", 1, gpus, kind="build", on=[node])


def numbers(entries: list[BindingEntry]) -> list[tuple[str, object, object]]:
    return [(str(entry.id), entry.need, entry.have) for entry in entries]


def test_gpus_that_are_short_in_all_bind_alone() -> None:
    cluster = Cluster()
    cluster.queue("q", -1, 40)
    for name in ("n1", "n2"):
        cluster.node(name, 8)
    full(cluster, "n1", 6)
    cluster.gang("g", 2, 8)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "GPUS_BUSY")
    assert numbers(entry.binding) == [("cluster.gpu", 16, 10)]
    assert ("queue.limit.gpu", 22, 40) in numbers(entry.slack)
    assert ("node.gpu", 8, 8) in numbers(entry.slack)


def test_scattered_gpus_bind_by_the_pods_that_fit() -> None:
    cluster = Cluster()
    for name in ("n1", "n2", "n3"):
        cluster.node(name, 8)
    full(cluster, "n1", 4)
    full(cluster, "n2", 4)
    cluster.gang("g", 2, 8)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "FRAGMENTED")
    assert numbers(entry.binding) == [("cluster.nodes", 2, 1)]
    assert ("cluster.gpu", 16, 16) in numbers(entry.slack)


def test_free_gpus_beside_full_cpus_are_not_counted_as_free() -> None:
    cluster = Cluster()
    cluster.node("busy-cpu", 8, cpu=64)
    cluster.node("busy-gpu", 8, cpu=64)
    cluster.gang("cpus", 1, 0, cpu=60, kind="build", on=["busy-cpu"])
    full(cluster, "busy-gpu", 5)
    cluster.gang("g", 1, 4, cpu=16)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "GPUS_BUSY")
    assert numbers(entry.binding) == [("cluster.gpu", 4, 3)]
    assert entry.sentence.startswith("Needs 4 GPUs; 11 GPUs are free on the 2 nodes it may use, but only 3 beside")


def test_cpu_that_suffices_on_one_node_binds_by_pods() -> None:
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.node(name, 0, cpu=96)
    cluster.gang("hold", 1, 0, cpu=40, kind="build", on=["n1"])
    cluster.gang("g", 2, 0, cpu=95)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "RESOURCE_SHORT")
    assert numbers(entry.binding) == [("cluster.nodes", 2, 1)]
    assert ("node.cpu", 95000, 96000) in numbers(entry.slack)


def test_subgroup_that_finds_no_domain_is_named_and_not_the_whole_gang() -> None:
    cluster = Cluster()
    for name, rack in (("n1", "r1"), ("n2", "r1"), ("n3", "r2"), ("n4", "r2")):
        cluster.node(name, 8, labels={RACK: rack})
    cluster.topology(RACK, HOST)
    parts = (
        SubGroupSpec("lead", min_member=1),
        SubGroupSpec("work", min_member=3, topology=TopologyConstraint("topo", required_level=HOST)),
    )
    cluster.gang("g", 0, topology=TopologyConstraint("topo", required_level=RACK), sub_groups=parts)
    cluster.pod("g", 0, 0, cpu=1, sub_group="lead")
    for index in range(1, 4):
        cluster.pod("g", index, 4, sub_group="work")
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "DOMAIN_TOO_SMALL")
    assert numbers(entry.binding) == [("domain.gpu", 12, 8)]
    assert entry.sentence == "Subgroup work needs 12 GPUs in one node; the largest (n4) has 8, even empty."


def test_pods_of_two_sizes_that_only_together_are_too_many() -> None:
    cluster = Cluster()
    cluster.node("n1", 6)
    cluster.node("n2", 6)
    cluster.gang("g", 0, minimum=3)
    for index, gpus in enumerate((5, 5, 2)):
        cluster.pod("g", index, gpus)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "CLUSTER_TOO_SMALL")
    assert "3 pods of different sizes" in entry.sentence
    assert numbers(entry.binding) == [("cluster.nodes", 3, 2)]
    assert ("cluster.gpu", 12, 12) in numbers(entry.slack)


def test_two_things_in_the_way_bind_together() -> None:
    cluster = Cluster()
    cluster.node("n1", 8, labels={"kind": "a"})
    cluster.node("n2", 4, labels={"kind": "b"})
    cluster.gang("g", 1, 16, pod={"node_selector": {"kind": "c"}})
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "SELECTOR_MISMATCH")
    assert [str(item.id) for item in entry.binding] == ["node.selector", "node.gpu"]
    assert "NODE_TOO_SMALL" in {str(other.code) for other in entry.also}


def queues(*, shares: tuple[int, int]) -> Cluster:
    """Return two nodes of 8 GPUs, all held by queue a, and leaf queues a and q by quota."""
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.node("n2", 8)
    cluster.queue("top")
    cluster.queue("a", shares[0], -1, parent="top")
    cluster.queue("q", shares[1], -1, parent="top")
    for node in ("n1", "n2"):
        cluster.gang(f"theirs-{node}", 1, 8, queue="a", on=[node])
    cluster.gang("g", 1, 8, queue="q")
    return cluster


def test_own_share_is_never_that_of_a_queue_both_are_below() -> None:
    entry = explain(queues(shares=(16, 0)))
    assert said(entry) == ("POLICY", "FAIR_SHARE_REACHED")
    assert [(item.scope, item.need, item.have) for item in entry.binding] == [("q", 8, 0)]


def test_no_more_nodes_are_to_be_repaired_than_it_takes() -> None:
    cluster = Cluster()
    for name, gpus in (("n1", 4), ("n2", 8), ("n3", 8), ("n4", 8)):
        cluster.node(name, gpus, cordoned=True)
    cluster.node("n5", 8)
    cluster.gang("g", 3, 8)
    entry = explain(cluster)
    assert said(entry) == ("NODE", "NODES_CORDONED")
    assert [item.scope for item in entry.binding] == ["n2", "n3"]
    assert entry.sentence.startswith("Would fit with n2 and n3 uncordoned (16 GPUs free there)")
