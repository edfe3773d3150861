"""Parts of GPUs: which groups a pod gets, what is left, and when it has to wait."""

from __future__ import annotations

import pytest

from gangdash.engine.actions import allocate
from gangdash.engine.model.config import DEFAULT_PLUGINS, Plugin
from gangdash.engine.plugins import open_session
from gangdash.engine.session import GPU, Session
from tests.engine.builders import Cluster, counts, outcome, places, texts


def _shared(cluster: Cluster, gang: str, *portions: tuple[str, float], deleted: float | None = None) -> None:
    """Add a gang whose pods hold parts of groups on n0."""
    cluster.gang(gang, 0, group={"min_member": 1})
    for index, (group, portion) in enumerate(portions):
        cluster.pod(gang, index, portion, on="n0", labels={"runai-gpu-group": group}, deleted=deleted)


def _open(cluster: Cluster) -> Session:
    snapshot = cluster.snapshot()
    return open_session(snapshot, snapshot.shards[0])


def test_a_group_takes_one_gpu_whatever_its_number_of_pods() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    _shared(cluster, "run", ("a", 0.25), ("a", 0.25), ("b", 0.5))
    node = _open(cluster).nodes["n0"]
    assert (node.idle[GPU], node.used[GPU]) == (2, 0)
    assert node.shared.used == {"a": 5000, "b": 5000}
    assert node.shared.free_portions(node.gpu_memory) == 1


def test_last_pod_gives_the_gpu_back() -> None:
    cluster = Cluster()
    cluster.node("n0", 2)
    _shared(cluster, "run", ("a", 0.5), ("a", 0.5))
    node = _open(cluster).nodes["n0"]
    node.remove("team/run-0")
    assert node.idle[GPU] == 1
    node.remove("team/run-1")
    assert node.idle[GPU] == 2


def test_gpu_of_terminating_pods_alone_is_releasing() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    _shared(cluster, "run", ("a", 0.5), ("a", 0.25), deleted=-5)
    node = _open(cluster).nodes["n0"]
    assert (node.idle[GPU], node.releasing[GPU], node.shared.marked) == (0, 1, {"a"})


def test_gpu_in_use_is_filled_before_a_free_one() -> None:
    cluster = Cluster()
    cluster.node("n0", 2)
    _shared(cluster, "run", ("a", 0.5))
    cluster.gang("g", 2, 0.25)
    session = _open(cluster)
    allocate.execute(session)
    assert {task.gpu_groups for task in session.jobs["g"].tasks.values()} == {("a",)}


def test_spreading_takes_a_free_gpu_first() -> None:
    cluster = Cluster()
    cluster.node("n0", 2)
    _shared(cluster, "run", ("a", 0.5))
    cluster.gang("g", 1, 0.25)
    names = tuple("gpuspread" if name == "gpupack" else name for name in DEFAULT_PLUGINS)
    cluster.config = type(cluster.config)(plugins=tuple(Plugin(name) for name in names))
    session = _open(cluster)
    allocate.execute(session)
    assert {task.gpu_groups for task in session.jobs["g"].tasks.values()} != {("a",)}


def test_node_with_a_fitting_group_comes_first() -> None:
    cluster = Cluster()
    cluster.node("a", 1)
    cluster.node("n0", 8)
    _shared(cluster, "run", ("x", 0.5))
    cluster.gang("g", 1, 0.5)
    assert places(cluster.run("allocate"), "g") == {"g-0": "n0"}


def test_waits_for_a_share_that_is_being_released() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    _shared(cluster, "run", ("a", 0.5))
    cluster.pod("run", 7, 0.5, on="n0", labels={"runai-gpu-group": "a"}, deleted=-5)
    cluster.gang("g", 1, 0.5)
    assert outcome(cluster.run("allocate"), "g") == "pipelined"


def test_a_full_group_takes_nothing() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    _shared(cluster, "run", ("a", 0.75))
    cluster.gang("g", 1, 0.5)
    assert outcome(cluster.run("allocate"), "g") == "unschedulable"


@pytest.mark.parametrize("gpus, placed", [(2, 1), (3, 2), (4, 2)])
def test_several_devices_need_as_many_gpus(gpus: int, placed: int) -> None:
    cluster = Cluster()
    cluster.node("n0", gpus)
    cluster.gang("g", 0, group={"min_member": 1})
    for index in range(2):
        cluster.pod("g", index, 0.5, annotations={"gpu-fraction-num-devices": "2"})
    result = cluster.run("allocate")
    assert counts(result, "g").get("bound", 0) == (2 if placed else 0)


def test_devices_of_one_pod_are_different_gpus() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 0, group={"min_member": 1})
    cluster.pod("g", 0, 0.5, annotations={"gpu-fraction-num-devices": "2"})
    assert outcome(cluster.run("allocate"), "g") == "unschedulable"


def test_memory_is_compared_without_rounding_up_per_pod() -> None:
    cluster = Cluster()
    cluster.node("n0", 1, gpu_memory=46_068)
    cluster.gang("g", 0, group={"min_member": 1})
    for index in range(24):
        cluster.pod("g", index, 0, annotations={"gpu-memory": "2000"})
    assert counts(cluster.run("allocate"), "g") == {"bound": 23, "pending": 1}


def test_memory_is_charged_to_the_queue_in_hundredths_of_the_nodes_gpu() -> None:
    cluster = Cluster()
    cluster.node("n0", 1, gpu_memory=3000)
    cluster.gang("g", 0, group={"min_member": 1})
    cluster.pod("g", 0, 0, annotations={"gpu-memory": "1000"})
    assert cluster.run("allocate").queues[0].allocated_after[2] == 0.34


def test_memory_pod_that_finds_no_room_is_told_nothing_of_nodes() -> None:
    cluster = Cluster()
    cluster.node("n0", 1, gpu_memory=10_000)
    cluster.gang("old", 0, group={"min_member": 1})
    cluster.pod("old", 0, 0, on="n0", annotations={"gpu-memory": "8000"}, labels={"runai-gpu-group": "a"})
    cluster.gang("g", 0, group={"min_member": 1})
    cluster.pod("g", 0, 0, annotations={"gpu-memory": "3000"})
    assert texts(cluster.run("allocate"), "g") == [
        ("PodSchedulingErrors", "Resources were not found for pod team/g-0 due to: Unable to schedule pod")
    ]


def test_memory_of_more_than_a_device_is_short_of_gpu_memory() -> None:
    cluster = Cluster()
    cluster.node("n0", 4, gpu_memory=10_000)
    cluster.gang("g", 0, group={"min_member": 1})
    cluster.pod("g", 0, 0, annotations={"gpu-memory": "15000"})
    assert "1 node(s) didn't have enough resources: GPU memory" in texts(cluster.run("allocate"), "g")[0][1]


def test_floating_point_sums_decide_as_they_do_in_the_scheduler() -> None:
    for quota, expected in ((0.3, "unschedulable"), (0.31, "bound")):
        cluster = Cluster()
        cluster.node("n0", 1)
        cluster.queue("q", quota)
        cluster.gang("g", 0, kind="build", group={"min_member": 2})
        cluster.pod("g", 0, 0.1)
        cluster.pod("g", 1, 0.2)
        assert outcome(cluster.run("allocate"), "g") == expected


def test_fractions_over_a_limit() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.queue("q", limit=1)
    cluster.gang("g", 3, 0.5)
    assert texts(cluster.run("allocate"), "g") == [
        (
            "OverLimit",
            (
                "q quota has reached the allowable limit of GPUs. "
                "Limit is 1 GPUs, currently 0 GPUs allocated and workload requested 1.5 GPUs"
            ),
        )
    ]


def test_memory_may_pass_the_gangs_check_and_fail_on_every_node() -> None:
    cluster = Cluster()
    cluster.node("small", 1, gpu_memory=400)
    cluster.node("medium", 1, gpu_memory=600)
    cluster.node("large", 2, gpu_memory=2000)
    cluster.pod("", 0, 1, on="large")
    cluster.pod("", 1, 1, on="large")
    cluster.queue("q", 0.5)
    cluster.gang("g", 0, kind="build", group={"min_member": 1})
    cluster.pod("g", 0, 0, annotations={"gpu-memory": "350"})
    text = texts(cluster.run("allocate"), "g")[0][1]
    for share in ("0.88", "0.59"):
        assert (
            "1 node does not have enough capacity. Reason: NonPreemptibleOverQuota, Details: Non-preemptible "
            f"workload is over quota. Workload requested {share} GPUs, but q quota is 0.5 GPUs, while 0 GPUs are "
            "already allocated for non-preemptible pods. Use a preemptible workload to go over quota.."
        ) in text
