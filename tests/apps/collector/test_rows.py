"""What is counted out of one reading."""

from __future__ import annotations

import pytest

from apps.collector import rows
from apps.inventory.choices import NodeState
from apps.inventory.models import Node
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.pod import Container
from gangdash.engine.model.selectors import Taint
from tests.apps import facts


def amounts(snapshot: ClusterSnapshot) -> dict[str, float]:
    memory = rows.smallest_gpu_memory(snapshot.nodes)
    return {pod.meta.uid: rows.pod_gpus(pod, gpu_memory=memory) for pod in snapshot.pods}


def nodes_of(snapshot: ClusterSnapshot) -> dict[str, Node]:
    return rows.node_rows(snapshot, rows.gpu_use(snapshot, amounts(snapshot)))


GPU = "nvidia.com/gpu"


@pytest.mark.parametrize(
    "containers, expected",
    [
        ((Container("a", requests={GPU: 2}), Container("b", requests={GPU: 1})), 3),
        ((Container("a", requests={GPU: 2}), Container("i", role="init", requests={GPU: 4})), 4),
        ((Container("a", requests={GPU: 2}), Container("i", role="init", requests={GPU: 1})), 2),
        ((Container("a", requests={GPU: 2}), Container("s", role="sidecar", requests={GPU: 1})), 3),
        ((Container("a", requests={"amd.com/gpu": 4}),), 4),
        ((Container("a", requests={"cpu": 4000}),), 0),
    ],
)
def test_gpus_of_a_pod_are_what_its_containers_need_at_once(containers: tuple[Container, ...], expected: int) -> None:
    assert rows.pod_gpus(facts.pod("p", containers=containers), gpu_memory=None) == expected


@pytest.mark.parametrize(
    "annotations, expected",
    [
        ({"gpu-fraction": "0.25"}, 0.25),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, 1.0),
        ({"gpu-memory": "20480"}, 0.25),
        ({"gpu-fraction": "a lot"}, 0.0),
    ],
)
def test_gpus_of_a_pod_may_be_shares(annotations: dict[str, str], expected: float) -> None:
    pod = facts.pod("p", gpus=0, annotations=annotations)
    assert rows.pod_gpus(pod, gpu_memory=81920) == expected


def test_every_gpu_of_a_node_is_used_free_or_lost() -> None:
    snapshot = facts.snapshot(
        facts.node("ok"),
        facts.node("cordoned", unschedulable=True),
        facts.node("down", ready="Unknown"),
        facts.node("tainted", taints=(Taint("node.kubernetes.io/disk-pressure", "", "NoSchedule"),)),
        facts.node("dedicated", taints=(Taint("team", "a", "NoSchedule"),)),
        facts.node("broken", offered=6),
        *(facts.pod(f"p-{name}", gpus=3, on=name) for name in ("ok", "cordoned", "broken")),
        facts.pod("done", gpus=4, on="ok", phase="Succeeded"),
        facts.pod("pending", gpus=8),
    )
    seen = {name: (n.state, n.gpus_used, n.gpus_free, n.gpus_lost) for name, n in nodes_of(snapshot).items()}
    assert seen == {
        "ok": (NodeState.READY, 3, 5, 0),
        "cordoned": (NodeState.CORDONED, 3, 0, 5),
        "down": (NodeState.NOT_READY, 0, 0, 8),
        "tainted": (NodeState.TAINTED, 0, 0, 8),
        "dedicated": (NodeState.READY, 0, 8, 0),
        "broken": (NodeState.READY, 3, 3, 2),
    }
    assert all(n.gpus == n.gpus_used + n.gpus_free + n.gpus_lost == 8 for n in nodes_of(snapshot).values())


def test_reservation_pods_do_not_count_beside_the_pods_they_stand_for() -> None:
    snapshot = facts.snapshot(
        facts.node("n"),
        facts.pod("reservation", on="n", labels={"app": "kai-resource-reservation"}),
        facts.pod("half", gpus=0, on="n", annotations={"gpu-fraction": "0.5"}),
    )
    assert nodes_of(snapshot)["n"].gpus_used == 0.5


def test_node_labels_are_only_those_that_something_shows() -> None:
    labels = {"rack": "r1", "nvidia.com/gpu.product": "H100", "secret-plan": "x", "kai.scheduler/node-pool": "a"}
    snapshot = facts.snapshot(facts.topology("t", "rack"), facts.node("n", labels=labels))
    row = nodes_of(snapshot)["n"]
    assert row.product == "H100"
    assert set(row.labels) == {"rack", "nvidia.com/gpu.product", "kai.scheduler/node-pool"}


def test_domains_add_up_their_nodes_on_each_level() -> None:
    snapshot = facts.snapshot(
        facts.topology("t", "block", "rack", "kubernetes.io/hostname"),
        facts.node("n1", labels={"block": "b1", "rack": "r1", "kubernetes.io/hostname": "n1"}),
        facts.node("n2", labels={"block": "b1", "rack": "r1", "kubernetes.io/hostname": "n2"}),
        facts.node("n3", labels={"block": "b1", "rack": "r2"}, unschedulable=True),
        facts.node("n4", labels={"block": "b1"}),
        facts.node("n5", labels={"rack": "r1"}),
        facts.pod("p", gpus=3, on="n1"),
    )
    found = rows.domain_rows(snapshot, nodes_of(snapshot))
    seen = {path: (d.level, d.nodes, d.nodes_free, d.gpus_free, d.gpus_lost) for (_, path), d in found.items()}
    assert seen == {"b1": (0, 4, 2, 21, 8), "b1/r1": (1, 2, 1, 13, 0), "b1/r2": (1, 1, 0, 0, 8)}
    assert found["t", "b1/r1"].parent_path == "b1"


def test_a_gang_counts_its_own_pods_only() -> None:
    snapshot = facts.snapshot(
        facts.podgroup("g", min_member=3),
        facts.podgroup("g", namespace="team-b"),
        facts.pod("a", "g", gpus=4, on="n"),
        facts.pod("b", "g", gpus=4),
        facts.pod("c", "g", gpus=4, gates=("wait",)),
        facts.pod("d", "g", gpus=4, phase="Failed"),
        facts.pod("other", "g", namespace="team-b", gpus=1),
        facts.pod("stranger", gpus=8),
    )
    row = rows.gang_rows(snapshot, amounts(snapshot))["gang-team-a-g"]
    assert (row.pods_total, row.pods_placed, row.pods_waiting) == (4, 1, 2)
    assert (row.gpus, row.gpus_waiting, row.shape) == (12, 8, "3 x 4")
    assert not row.is_running


def test_a_gang_without_pods_has_zero_and_one_whose_pods_were_not_read_has_no_number() -> None:
    known = facts.snapshot(facts.podgroup("g"))
    assert rows.gang_rows(known, {})["gang-team-a-g"].pods_total == 0
    blind = facts.snapshot(facts.podgroup("g"), read=facts.EVERY_KIND - {"Pod"})
    assert rows.gang_rows(blind, {})["gang-team-a-g"].pods_total is None


@pytest.mark.parametrize(
    "minimum, running, expected", [(None, 0, False), (None, 1, True), (2, 1, False), (2, 2, True), (0, 0, False)]
)
def test_a_gang_runs_when_its_minimum_does(minimum: int | None, running: int, expected: bool) -> None:
    pods = [facts.pod(f"p{index}", "g", on="n" if index < running else "") for index in range(3)]
    snapshot = facts.snapshot(facts.podgroup("g", min_member=minimum), *pods)
    assert rows.gang_rows(snapshot, amounts(snapshot))["gang-team-a-g"].is_running is expected


def test_pods_of_no_concern_are_left_out() -> None:
    snapshot = facts.snapshot(
        facts.pod("member", "g", gpus=0, scheduler_name="default-scheduler"),
        facts.pod("gpu", gpus=1, scheduler_name="default-scheduler"),
        facts.pod("kai", gpus=0),
        facts.pod("web", gpus=0, scheduler_name="default-scheduler"),
    )
    assert {row.name for row in rows.pod_rows(snapshot, amounts(snapshot)).values()} == {"member", "gpu", "kai"}


def test_the_fingerprint_changes_with_a_fact_and_with_nothing_else() -> None:
    first = rows.queue_rows(facts.snapshot(facts.queue("q")))["q"]
    same = rows.queue_rows(facts.snapshot(facts.queue("q"), as_of=facts.AS_OF + 15))["q"]
    other = rows.queue_rows(facts.snapshot(facts.queue("q", limit=24)))["q"]
    assert first.fingerprint == same.fingerprint != other.fingerprint
