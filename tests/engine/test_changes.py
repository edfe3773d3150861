"""Changes make a new snapshot and say clearly what they cannot do."""

from __future__ import annotations

import pytest

from gangdash.engine import changes
from gangdash.engine.changes import Change, ChangeError, change_from_mapping, change_from_text
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.meta import Condition, Meta
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Container, Pod
from gangdash.engine.model.podgroup import BindRequest, PodGroup, SubGroupSpec, TopologyConstraint
from gangdash.engine.model.queue import Queue, QueueResource
from gangdash.engine.model.selectors import Taint
from gangdash.engine.verdict import FixKind


def _pod(name: str, gang: str, *, node: str = "", gpus: int = 1, created: float = 0.0) -> Pod:
    meta = Meta(name=name, namespace="team", uid=name, created=created, annotations={"pod-group-name": gang})
    requests = {"nvidia.com/gpu": gpus, "cpu": 4000}
    phase = "Running" if node else "Pending"
    return Pod(meta=meta, node_name=node, phase=phase, containers=(Container("main", requests=requests),))


@pytest.fixture
def cluster() -> ClusterSnapshot:
    node = Node(
        Meta(name="n1", labels={"kubernetes.io/hostname": "n1", "rack": "r1"}),
        allocatable={"nvidia.com/gpu": 6, "cpu": 96000},
        capacity={"nvidia.com/gpu": 8, "cpu": 96000},
        taints=(Taint("node.kubernetes.io/unschedulable", effect="NoSchedule"), Taint("team", "a", "NoSchedule")),
        unschedulable=True,
        conditions=(Condition("Ready", "False"), Condition("DiskPressure", "True")),
    )
    group = PodGroup(
        Meta(name="g", namespace="team", uid="g"),
        queue="a",
        min_member=3,
        topology=TopologyConstraint("t", required_level="rack"),
        sub_groups=(),
    )
    tree = PodGroup(Meta(name="tree", namespace="team"), queue="a", sub_groups=(SubGroupSpec("w", min_member=2),))
    holder = PodGroup(Meta(name="h", namespace="team", uid="h"), queue="a", min_member=1)
    queue = Queue(Meta(name="a"), gpu=QueueResource(quota=2.0, limit=4.0, over_quota_weight=1.0))
    pods = (*(_pod(f"g-{i}", "g", created=float(i)) for i in range(3)), _pod("h-0", "h", node="n1", gpus=2))
    requests = (BindRequest(Meta(name="h-0", namespace="team"), pod_name="h-0", node="n1", phase="Succeeded"),)
    return ClusterSnapshot(
        as_of=1000.0,
        nodes=(node,),
        podgroups=(group, tree, holder),
        queues=(queue,),
        pods=pods,
        bind_requests=requests,
    )


def _apply(snapshot: ClusterSnapshot, text: str) -> ClusterSnapshot:
    return changes.apply(snapshot, [change_from_text(text)])


def test_a_change_reads_the_same_from_text_and_from_json() -> None:
    text = change_from_text("raise_limit:a:gpu=24,cpu=1000")
    assert text == change_from_mapping({"kind": "raise_limit", "object": "a", "gpu": 24, "cpu": 1000})
    assert text.describe() == {"kind": "raise_limit", "object": "a", "gpu": "24", "cpu": "1000"}


@pytest.mark.parametrize(
    "text, words",
    [
        ("explode:n1", "unknown change 'explode'"),
        ("uncordon:nope", "no node 'nope'"),
        ("raise_limit:a", "say gpu="),
        ("raise_limit:a:gpu=many", "gpu='many' is not a number"),
        ("raise_limit:a:disk=3", "say gpu="),
        ("raise_limit:a:gpu=3,disk=3", "no key 'disk'"),
        ("raise_limit:a:gpu", "not KEY=VALUE"),
        ("restart_component:scheduler", "the replay cannot show"),
        ("remove_taint:n1:key=zz", "no taint 'zz'"),
        ("shrink_gang:team/g:pods=-1", "whole number"),
        ("move_queue:team/g:queue=zz", "no queue 'zz'"),
        ("evict_gang:team/g", "no pod of 'team/g' holds a node"),
        ("submit:team/g:queue=a", "exists already"),
        ("create_object:Secret/x", "cannot create a Secret"),
    ],
)
def test_a_change_that_cannot_be_made_says_why(cluster: ClusterSnapshot, text: str, words: str) -> None:
    with pytest.raises(ChangeError, match=words):
        _apply(cluster, text)


def test_limits_and_quotas_change_alone(cluster: ClusterSnapshot) -> None:
    queue = _apply(cluster, "raise_limit:a:gpu=unlimited").queues[0]
    assert queue.gpu == QueueResource(quota=2.0, limit=-1.0, over_quota_weight=1.0)
    queue = _apply(cluster, "raise_quota:Queue/a:cpu=5000").queues[0]
    assert queue.cpu == QueueResource(quota=5000.0)
    assert queue.gpu == cluster.queues[0].gpu


def test_uncordon_removes_the_flag_and_its_taint_only(cluster: ClusterSnapshot) -> None:
    node = _apply(cluster, "uncordon:n1").nodes[0]
    assert not node.unschedulable
    assert [t.key for t in node.taints] == ["team"]
    again = _apply(changes.apply(cluster, [Change(FixKind.UNCORDON, "n1")]), "cordon:n1").nodes[0]
    assert again.unschedulable


def test_repair_brings_devices_and_readiness_back_but_not_the_cordon(cluster: ClusterSnapshot) -> None:
    node = _apply(cluster, "repair_device:n1").nodes[0]
    assert node.allocatable["nvidia.com/gpu"] == 8
    assert {c.type: c.status for c in node.conditions} == {"Ready": "True", "DiskPressure": "False"}
    assert node.unschedulable


def test_added_nodes_are_empty_healthy_and_named_apart(cluster: ClusterSnapshot) -> None:
    added = _apply(cluster, "add_nodes:n1:count=2,label.rack=r9").nodes[1:]
    assert [n.name for n in added] == ["n1-added-1", "n1-added-2"]
    assert [n.meta.labels["rack"] for n in added] == ["r9", "r9"]
    assert [n.meta.labels["kubernetes.io/hostname"] for n in added] == ["n1-added-1", "n1-added-2"]
    assert not any(n.unschedulable for n in added)


def test_an_evicted_gang_waits_again_unless_it_ends(cluster: ClusterSnapshot) -> None:
    after = _apply(cluster, "evict_gang:team/h")
    assert [(p.meta.name, p.node_name, p.phase) for p in after.pods if p.meta.name == "h-0"] == [("h-0", "", "Pending")]
    assert after.bind_requests == ()
    gone = _apply(cluster, "evict_gang:team/h:ends=true")
    assert "h-0" not in {p.meta.name for p in gone.pods}


def test_topology_can_be_moved_and_dropped(cluster: ClusterSnapshot) -> None:
    group = _apply(cluster, "relax_topology:team/g:required=none,preferred=rack").podgroups[0]
    assert group.topology == TopologyConstraint("t", preferred_level="rack")
    with pytest.raises(ChangeError, match="no subgroup 'x'"):
        _apply(cluster, "relax_topology:team/g:required=none,subgroup=x")


def test_shrinking_drops_the_youngest_waiting_pods(cluster: ClusterSnapshot) -> None:
    after = _apply(cluster, "shrink_gang:team/g:pods=2")
    assert after.podgroups[0].min_member == 2
    assert sorted(p.meta.name for p in after.pods) == ["g-0", "g-1", "h-0"]


def test_shrunk_pods_never_ask_for_more(cluster: ClusterSnapshot) -> None:
    after = _apply(cluster, "shrink_pod:team/g:gpu=0,cpu=100")
    assert after.pods[0].containers[0].requests == {"cpu": 4000}
    assert after.pods[3] is cluster.pods[3]


def test_a_submitted_gang_arrives_now_with_its_pods(cluster: ClusterSnapshot) -> None:
    after = _apply(cluster, "submit:team/new:queue=a,pods=2,gpu=8,required=rack,topology=t")
    group = after.podgroups[-1]
    assert (group.min_member, group.queue, group.meta.created) == (2, "a", 1000.0)
    assert group.topology == TopologyConstraint("t", required_level="rack")
    new = [p for p in after.pods if p.meta.annotations.get("pod-group-name") == "new"]
    assert [p.containers[0].requests for p in new] == [{"nvidia.com/gpu": 8}] * 2


def test_several_changes_apply_in_order(cluster: ClusterSnapshot) -> None:
    wanted = [change_from_text("create_object:Queue/b:gpu=4"), change_from_text("move_queue:team/g:queue=b")]
    after = changes.apply(cluster, wanted)
    assert after.podgroups[0].queue == "b"
    assert cluster.podgroups[0].queue == "a"


def test_every_modelled_kind_is_one_of_the_contract() -> None:
    assert not changes.is_modelled(FixKind.UPGRADE)
    assert changes.is_modelled(FixKind.RAISE_LIMIT)
