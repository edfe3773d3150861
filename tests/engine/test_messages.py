"""What the scheduler would write on PodGroups and pods, short and detailed."""

from __future__ import annotations

from gangdash.engine.model.podgroup import SubGroupSpec, TopologyConstraint
from tests.engine.builders import RACK, Cluster, gang_of

SHORT = "node(s) didn't have enough resources: GPUs"


def test_one_error_gives_its_reason_and_several_the_general_one() -> None:
    cluster = Cluster()
    cluster.queue("q", limit=1)
    cluster.node("n0", 4)
    cluster.gang("g", 1, 2)
    gang = gang_of(cluster.run("allocate"), "g")
    assert gang.message == (
        "OverLimit: q quota has reached the allowable limit of GPUs. "
        "Limit is 1 GPUs, currently 0 GPUs allocated and workload requested 2 GPUs."
    )
    assert gang.pods[0].message == gang.message


def test_texts_that_repeat_are_counted() -> None:
    cluster = Cluster()
    cluster.racks({f"r{index}": {f"n{index}": 2} for index in range(2)})
    cluster.gang("g", 0, group={"min_member": 2, "topology": TopologyConstraint("topo", RACK)})
    for index in range(2):
        cluster.pod("g", index, 1, fields={"node_selector": {"no": "where"}})
    gang = gang_of(cluster.run("allocate"), "g")
    assert gang.message.startswith("Unable to schedule podgroup: Resources were found for 0 pods while 2 are required")
    assert gang.pods[0].message == (
        "no nodes with enough resources were found: 2 node(s) didn't match Pod's node affinity/selector."
    )
    assert gang.pods[1].message == gang.message


def test_nothing_recorded_gives_the_general_words() -> None:
    cluster = Cluster()
    cluster.queue("q")
    cluster.queue("below", parent="q")
    cluster.node("n0", 4)
    cluster.gang("g", 1, 1)
    gang = gang_of(cluster.run("allocate"), "g")
    assert (gang.message, gang.pods[0].message) == ("Unable to schedule podgroup", "Unable to schedule pod")


def test_nothing_is_written_on_gangs_that_are_placed_or_not_ready() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.gang("placed", 1, 1)
    cluster.gang("short", 1, 1, minimum=2)
    for gang in cluster.run("allocate").gangs:
        assert (gang.message, [pod.message for pod in gang.pods]) == ("", [""])


def test_pool_is_named_for_gangs_that_back_off() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 1, 2, group={"scheduling_backoff": 1})
    gang = gang_of(cluster.run("allocate"), "g")
    assert gang.message.startswith(
        "Node-Pool 'default': PodSchedulingErrors: Resources were not found for pod team/g-0"
    )
    assert gang.pods[0].message.startswith("Node-Pool 'default': Scheduling conditions were not met for pod team/g-0")


def test_detailed_texts_name_nodes_and_domains() -> None:
    cluster = Cluster()
    cluster.params(detailed_fit_errors=True)
    cluster.racks({"r1": {"n1": 4}, "r2": {"n2": 4}})
    cluster.pod("", 0, 2, on="n1")
    cluster.pod("", 1, 1, on="n2")
    cluster.gang("racked", 4, 1, topology=TopologyConstraint("topo", RACK))
    parts = (SubGroupSpec("a", min_member=4, topology=TopologyConstraint("topo", RACK)),)
    cluster.gang("parted", 0, sub_groups=parts)
    for index in range(4):
        cluster.pod("parted", index, 1, sub_group="a")
    cluster.gang("single", 1, 4)
    result = cluster.run("allocate")
    assert gang_of(result, "racked").message == (
        "\nUnable to schedule podgroup."
        "\n<r1>: node-group r1 can allocate only 2 of 4 required pods."
        "\n<r2>: node-group r2 can allocate only 3 of 4 required pods."
        f"\ntopology topo, requirement {RACK} couldn't be satisfied for job <team/racked>."
    )
    assert "\n<r1>: subgroup a: node-group r1 can allocate only 2 of 4" in gang_of(result, "parted").message
    assert gang_of(result, "single").pods[0].message == (
        "\n<n1>: Node didn't have enough resources: GPUs, requested: 4, used: 2, capacity: 4."
        "\n<n2>: Node didn't have enough resources: GPUs, requested: 4, used: 1, capacity: 4."
        "\nno nodes with enough resources were found."
    )


def test_detailed_text_of_a_pod_that_no_node_was_asked_for() -> None:
    cluster = Cluster()
    cluster.params(detailed_fit_errors=True)
    cluster.node("n0", 1, cordoned=True)
    cluster.gang("large", 1, 2)
    cluster.gang("cordoned", 1, 1)
    result = cluster.run("allocate")
    assert (
        gang_of(result, "large").pods[0].message.startswith("\nScheduling conditions were not met for pod team/large-0")
    )
    assert gang_of(result, "cordoned").pods[0].message == (
        "\n<n0>: node is unschedulable.\nno nodes with enough resources were found."
    )


def test_gated_pods_and_pods_of_unknown_subgroups() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 2, 2, minimum=1)
    cluster.pod("g", 5, 1, fields={"gates": ("x",)})
    cluster.pod("g", 6, 1, sub_group="ghost")
    told = {pod.name: pod.message for pod in gang_of(cluster.run("allocate"), "g").pods}
    assert told["g-5"] == ""
    assert told["g-ghost-6"] == 'Pod references subgroup "ghost", which does not exist in PodGroup team/g'


def test_node_that_others_have_filled_since_names_no_reason_in_detail() -> None:
    """The pod was refused by a selector; by now a promise makes the node too full for it, though it is idle."""
    cluster = Cluster()
    cluster.params(detailed_fit_errors=True)
    cluster.node("n0", 2)
    cluster.node("n1", 2)
    cluster.gang("first", 1, 2, pod={"node_selector": {"kubernetes.io/hostname": "n0"}})
    cluster.gang("late", 1, 2, age=60, pod={"node_selector": {"kubernetes.io/hostname": "n0"}})
    gang = gang_of(cluster.run("allocate"), "late")
    assert gang.pods[0].message == (
        "\n<n0>: Node didn't have enough resources: GPUs, requested: 2, used: 2, capacity: 2."
        "\n<n1>: node(s) didn't match Pod's node affinity/selector."
        "\nno nodes with enough resources were found."
    )


def test_single_subgroup_with_a_name_is_named() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 0, sub_groups=(SubGroupSpec("a", min_member=2),))
    for index in range(2):
        cluster.pod("g", index, 1, sub_group="a")
    message = gang_of(cluster.run("allocate"), "g").message
    assert "1 pods from all sub-groups while sub-group a requires 2 pods for gang scheduling" in message
