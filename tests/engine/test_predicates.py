"""Which nodes refuse a pod, in which order and words; resources and queues aside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gangdash.engine.model.pod import Container, HostPort, PodVolumes
from gangdash.engine.model.selectors import Affinity, NodeSelectorTerm, Requirement, Taint, Toleration
from gangdash.engine.plugins import open_session
from gangdash.engine.rules import predicates
from gangdash.engine.session import Session
from tests.engine.builders import Cluster, condition, counts, outcome, texts

Change = Callable[[Cluster], None]
GPU_LABEL = "node-role.kubernetes.io/gpu-worker"


def _session(cluster: Cluster) -> Session:
    snapshot = cluster.snapshot()
    return open_session(snapshot, snapshot.shards[0])


def _reasons(cluster: Cluster, gang: str = "g", node: str = "n0") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the first failing check and all of them for the first pod of a gang on a node."""
    session = _session(cluster)
    job = session.jobs[gang]
    task = next(iter(job.tasks.values()))
    state = session.nodes[node]
    first = next((found for check in session.hooks.predicates if (found := check(task, job, state))), ())
    every = tuple(reason for check in session.hooks.all_failures for reason in check(task, job, state))
    return first, every


@pytest.mark.parametrize(
    "node, pod, reasons",
    [
        pytest.param({"cordoned": True}, {}, ("node is unschedulable",), id="cordoned"),
        pytest.param(
            {"cordoned": True},
            {"tolerations": (Toleration("node.kubernetes.io/unschedulable", "Exists"),)},
            ("node is unschedulable",),
            id="cordoned, whatever is tolerated",
        ),
        pytest.param(
            {"conditions": (condition("Ready", "Unknown"), condition("MemoryPressure", "True"))},
            {},
            ("node has NotReady condition", "node has MemoryPressure condition"),
            id="every condition is a reason",
        ),
        pytest.param(
            {"conditions": (condition("Ready", "True"), condition("DiskPressure", "Unknown"))},
            {},
            ("node has DiskPressure condition",),
            id="pressure must be denied",
        ),
        pytest.param({"conditions": (condition("DiskPressure", "False"),)}, {}, (), id="no Ready condition is fine"),
        pytest.param({"taints": (Taint("x", "", "NoSchedule"),)}, {}, (predicates.UNTOLERATED,), id="taint"),
        pytest.param(
            {"taints": (Taint("x", "", "NoSchedule"),)},
            {"tolerations": (Toleration("x", "Exists"),)},
            (),
            id="tolerated",
        ),
        pytest.param({}, {"node_selector": {"pool": "b"}}, (predicates.AFFINITY_MISMATCH,), id="selector"),
        pytest.param({"labels": {"pool": "b"}}, {"node_selector": {"pool": "b"}}, (), id="selector met"),
        pytest.param(
            {},
            {"affinity": Affinity(node_required=(NodeSelectorTerm((Requirement("pool", "Exists"),)),))},
            (predicates.AFFINITY_MISMATCH,),
            id="affinity",
        ),
        pytest.param({"pods": 0}, {}, (predicates.PODS_EXCEEDED,), id="no pod slot"),
        pytest.param({"pods": 1}, {}, (), id="the last pod slot"),
    ],
)
def test_reasons_of_a_node(node: dict[str, object], pod: dict[str, object], reasons: tuple[str, ...]) -> None:
    cluster = Cluster()
    cluster.node("n0", **node)  # type: ignore[arg-type]
    cluster.gang("g", pod=pod)
    assert _reasons(cluster) == (reasons, reasons)


def test_the_first_failure_is_told_and_all_of_them_are_known() -> None:
    cluster = Cluster()
    cluster.node("n0", cordoned=True, pods=0, taints=(Taint("x", "", "NoExecute"),))
    cluster.gang("g", pod={"node_selector": {"pool": "b"}})
    first, every = _reasons(cluster)
    assert first == (predicates.PODS_EXCEEDED,)
    assert every == (
        predicates.PODS_EXCEEDED,
        "node is unschedulable",
        predicates.UNTOLERATED,
        predicates.AFFINITY_MISMATCH,
    )


def test_a_shared_gpu_needs_a_slot_for_its_reservation_pod_too() -> None:
    cluster = Cluster()
    cluster.node("n0", 2, pods=1)
    cluster.gang("g", gpus=0.5)
    assert _reasons(cluster)[0] == (predicates.PODS_EXCEEDED,)
    cluster.nodes.clear()
    cluster.node("n0", 2, pods=2)
    assert _reasons(cluster)[0] == ()


def _mig(strategy: str) -> dict[str, object]:
    return {
        "gpus": 1,
        "labels": {"node-role.kubernetes.io/mig-enabled": "true", "nvidia.com/mig.strategy": strategy},
        "resources": {"nvidia.com/mig-1g.5gb": 2},
    }


MIG_POD = {"containers": (Container("main", requests={"nvidia.com/mig-1g.5gb": 1}),)}


@pytest.mark.parametrize(
    "node, gpus, pod, reason",
    [
        pytest.param({}, 0, MIG_POD, predicates.NOT_MIG, id="MIG pod on a plain node"),
        pytest.param(_mig("mixed"), 0, MIG_POD, "", id="MIG pod on a mixed node"),
        pytest.param(_mig("mixed"), 1, None, predicates.MIXED_STRATEGY, id="whole GPU on a mixed node"),
        pytest.param(_mig("single"), 1, None, "", id="whole GPU on a single node"),
        pytest.param(_mig("single"), 0.5, None, predicates.SINGLE_STRATEGY, id="part of a GPU on a single node"),
        pytest.param(_mig("single"), 0, MIG_POD, predicates.SINGLE_STRATEGY, id="MIG pod on a single node"),
        pytest.param(_mig("mixed"), 0, None, "", id="no GPU at all"),
    ],
)
def test_gpu_modes(node: dict[str, object], gpus: float, pod: dict[str, object] | None, reason: str) -> None:
    cluster = Cluster()
    cluster.node("n0", **node)  # type: ignore[arg-type]
    cluster.gang("g", gpus=gpus, pod=pod)
    assert _reasons(cluster)[0] == ((reason,) if reason else ())


def test_old_mig_pods_keep_new_ones_away_and_are_never_placed() -> None:
    cluster = Cluster()
    cluster.node("n0", **_mig("mixed"))  # type: ignore[arg-type]
    cluster.gang("old", 0, minimum=1)
    cluster.pod("old", 0, 0, on="n0", annotations={"nvidia.com/mig-1g.5gb": "1"})
    cluster.gang("g", gpus=0, pod=MIG_POD)
    assert _reasons(cluster)[0] == ("MIG job cannot be scheduled on node with legacy MIG jobs: <[team/old-0]>",)
    waiting = Cluster()
    waiting.node("n0")
    waiting.gang("g", 0, minimum=1)
    waiting.pod("g", 0, 0, annotations={"nvidia.com/mig-1g.5gb": "1"})
    assert _reasons(waiting)[0] == ("Legacy MIG jobs cannot be scheduled on node n0",)


def test_a_memory_request_needs_the_label() -> None:
    cluster = Cluster()
    cluster.node("n0", 1, gpu_memory=None)
    cluster.gang("g", 0, minimum=1)
    cluster.pod("g", 0, 0, annotations={"gpu-memory": "1000"})
    assert _reasons(cluster)[0] == (
        "node is not a gpu node or the gpu memory count on the node was not synced yet, task: <team/g-0>, node: <n0>",
    )


@pytest.mark.parametrize(
    "labels, gpus, reason",
    [
        ({GPU_LABEL: ""}, 1, ""),
        ({GPU_LABEL: ""}, 0, "cpu task: <team/g-0> can't run on non cpu nodes, node: <n0>"),
        ({"node-role.kubernetes.io/cpu-worker": ""}, 1, "gpu task: <team/g-0> can't run on non gpu nodes, node: <n0>"),
        ({"node-role.kubernetes.io/cpu-worker": ""}, 0, ""),
    ],
)
def test_restricted_scheduling(labels: dict[str, str], gpus: float, reason: str) -> None:
    cluster = Cluster()
    cluster.node("n0", 2, labels=labels)
    cluster.gang("g", gpus=gpus, cpu=1)
    cluster.params(restrict_node_scheduling=True)
    assert _reasons(cluster)[0] == ((reason,) if reason else ())


def test_host_ports_are_taken_by_pods_placed_in_the_cycle() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    port = {"containers": (Container("main", requests={"nvidia.com/gpu": 1}, host_ports=(HostPort(80),)),)}
    cluster.gang("first", pod=port, age=900)
    cluster.gang("second", pod=port, age=800)
    result = cluster.run("allocate")
    assert (outcome(result, "first"), outcome(result, "second")) == ("bound", "unschedulable")
    assert predicates.PORTS_TAKEN in texts(result, "second")[0][1]


def test_a_rolled_back_placement_gives_its_port_back() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    port = (Container("main", requests={"nvidia.com/gpu": 1}, host_ports=(HostPort(80),)),)
    cluster.gang("gang", 2, pod={"containers": port}, age=900)
    cluster.gang("single", pod={"containers": port}, age=800)
    result = cluster.run("allocate")
    assert counts(result, "gang") == {"pending": 2}
    assert outcome(result, "single") == "bound"


@pytest.mark.parametrize(
    "pod, requests, line",
    [
        pytest.param(
            {},
            {"nvidia.com/gpu": 9},
            "MaxNodePoolResources: The pod team/g-0 requires GPU: 9, CPU: 0 (cores), memory: 0 (GB), pods: 1."
            " Max GPU resources available in a single node in the default node-pool is topped at 8.",
            id="GPUs",
        ),
        pytest.param(
            {},
            {"cpu": 65500},
            "MaxNodePoolResources: The pod team/g-0 requires GPU: 0, CPU: 65.5 (cores), memory: 0 (GB), pods: 1."
            " Max CPU resources available in a single node in the default node-pool is topped at 64 cores.",
            id="cpu",
        ),
        pytest.param(
            {},
            {"memory": 2 * 10**12},
            "MaxNodePoolResources: The pod team/g-0 requires GPU: 0, CPU: 0 (cores), memory: 2000 (GB), pods: 1."
            " Max memory resources available in a single node in the default node-pool is topped at 549.755 GB.",
            id="memory",
        ),
        pytest.param(
            {},
            {"rdma/ib": 3000},
            "MaxNodePoolResources: The pod team/g-0 requires GPU: 0, CPU: 0 (cores), memory: 0 (GB), pods: 1,"
            " rdma/ib: 3000. No node in the default node-pool has rdma/ib resources.",
            id="an extended resource, printed as missing though there is some",
        ),
        pytest.param(
            {"volumes": PodVolumes(config_maps=("b", "a", "there"))},
            {},
            "ConfigMap: Missing required configmaps: [a b].",
            id="ConfigMaps",
        ),
    ],
)
def test_what_rules_a_pod_out_everywhere(pod: dict[str, object], requests: dict[str, int], line: str) -> None:
    cluster = Cluster()
    cluster.node("n0", resources={"rdma/ib": 1000})
    cluster.extra = {"config_maps": frozenset({"team/there", "other/a"})}
    cluster.gang("g", pod={"containers": (Container("main", requests=requests),), **pod})
    reason, message = texts(cluster.run("allocate"), "g")[0]
    assert reason == "PodSchedulingErrors"
    assert message.endswith(f"Scheduling conditions were not met for pod team/g-0:\n{line}\n")


def test_every_failing_check_has_its_line() -> None:
    cluster = Cluster()
    cluster.node("n0")
    pins = tuple(Requirement("metadata.name", "In", (name,)) for name in ("n0", "n1"))
    cluster.gang(
        "g",
        gpus=9,
        pod={
            "affinity": Affinity(node_required=(NodeSelectorTerm((), pins),)),
            "volumes": PodVolumes(config_maps=("a",)),
        },
    )
    message = texts(cluster.run("allocate"), "g")[0][1]
    assert [line.split(":")[0] for line in message.splitlines()[1:]] == [
        "NodeAffinity",
        "ConfigMap",
        "MaxNodePoolResources",
    ]


def test_the_shared_gpu_config_map_is_not_asked_for() -> None:
    cluster = Cluster()
    cluster.node("n0")
    cluster.gang("g", 0, minimum=1)
    cluster.pod(
        "g",
        0,
        annotations={"runai/shared-gpu-configmap": "share"},
        fields={"volumes": PodVolumes(config_maps=("share-0",))},
    )
    assert outcome(cluster.run("allocate"), "g") == "bound"


def test_a_kind_that_was_not_read_refuses_nothing() -> None:
    cluster = Cluster()
    cluster.node("n0")
    cluster.gang("g", pod={"volumes": PodVolumes(config_maps=("a",), claims=("data",))})
    cluster.extra = {"read": frozenset({"Node", "Pod"})}
    assert outcome(cluster.run("allocate"), "g") == "bound"


def test_without_the_plugin_nothing_is_checked() -> None:
    cluster = Cluster()
    cluster.node("n0", cordoned=True)
    cluster.gang("g")
    cluster.config = replace(cluster.config, plugins=tuple(p for p in cluster.config.plugins if p.name != "predicates"))
    assert outcome(cluster.run("allocate"), "g") == "bound"
