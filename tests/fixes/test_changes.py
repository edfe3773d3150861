"""Changes that fixes make to nodes without device plugin, to parents of queues, claims and rules of whole workloads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gangdash.engine.changes import ChangeError, apply, change_from_text
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.dra import ResourceClaim
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.observed import ObservedObject
from tests.engine.builders import Cluster

GPU = "nvidia.com/gpu"
COUNT = "nvidia.com/gpu.count"
RULE = {"spec.template.topologyConstraint.packDomain": "rack", "spec.replicas": 1}


def made(snapshot: ClusterSnapshot, *texts: str) -> ClusterSnapshot:
    return apply(snapshot, [change_from_text(text) for text in texts])


@pytest.fixture
def snapshot() -> ClusterSnapshot:
    cluster = Cluster()
    cluster.node("counted", 0, labels={COUNT: "8"})
    cluster.node("plain", 0)
    cluster.node("odd", 0, labels={COUNT: "many"})
    cluster.node("mig", 0, labels={COUNT: "8"}, resources={"nvidia.com/mig-1g.5gb": 7})
    cluster.queue("q", parent="gone")
    cluster.queue("top")
    whole = ObservedObject("grove.io/v1alpha1", "PodCliqueSet", Meta("set", "team"), facts=RULE)
    return replace(cluster.snapshot(), objects={"PodCliqueSet": (whole,)})


def gpus(snapshot: ClusterSnapshot, name: str) -> int:
    return next(node.allocatable.get(GPU, 0) for node in snapshot.nodes if node.name == name)


def test_a_node_without_device_plugin_is_repaired_to_what_discovery_counted(snapshot: ClusterSnapshot) -> None:
    after = made(snapshot, *(f"repair_device:{name}" for name in ("counted", "plain", "odd", "mig")))
    assert [gpus(after, name) for name in ("counted", "plain", "odd", "mig")] == [8, 0, 0, 0]


def test_copies_of_it_have_them_too_or_as_many_as_said(snapshot: ClusterSnapshot) -> None:
    after = made(snapshot, "add_nodes:counted:count=1", "add_nodes:plain:count=2,gpu=4")
    assert [gpus(after, f"{name}-added-1") for name in ("counted", "plain")] == [8, 4]
    assert gpus(after, "plain") == 0


def test_a_queue_is_hung_below_another_parent(snapshot: ClusterSnapshot) -> None:
    after = made(snapshot, "fix_reference:Queue/q:parent=top")
    assert {queue.name: queue.parent for queue in after.queues} == {"q": "top", "top": ""}


def test_a_queue_has_no_reference_but_its_parent(snapshot: ClusterSnapshot) -> None:
    with pytest.raises(ChangeError, match="parent"):
        made(snapshot, "fix_reference:Queue/q:queue=top")


def test_the_rule_of_a_whole_workload_is_taken_off_and_nothing_else(snapshot: ClusterSnapshot) -> None:
    after = made(snapshot, "relax_topology:PodCliqueSet/team/set:required=none")
    assert after.objects["PodCliqueSet"][0].facts == {"spec.replicas": 1}
    assert snapshot.objects["PodCliqueSet"][0].facts == RULE


def test_a_claim_is_labelled(snapshot: ClusterSnapshot) -> None:
    claim = ResourceClaim(Meta("gpu", "team", labels={"a": "1"}))
    after = made(replace(snapshot, resource_claims=(claim,)), "set_label:ResourceClaim/team/gpu:kai.scheduler/queue=q")
    assert after.resource_claims[0].meta.labels == {"a": "1", "kai.scheduler/queue": "q"}
    with pytest.raises(ChangeError, match="no ResourceClaim"):
        made(snapshot, "set_label:ResourceClaim/team/gpu:kai.scheduler/queue=q")


@pytest.mark.parametrize(
    "text", ["relax_topology:PodCliqueSet/team/set:required=block", "relax_topology:PodCliqueSet/team/x:required=none"]
)
def test_what_cannot_be_shown_there_is_refused(snapshot: ClusterSnapshot, text: str) -> None:
    with pytest.raises(ChangeError, match="PodCliqueSet"):
        made(snapshot, text)
