"""What the scheduler takes into a session: pods' states and requests, nodes, priorities, trees, claims."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gangdash.engine.model.dra import AllocatedDevice, Device, DeviceClass, DeviceRequest, ResourceClaim, ResourceSlice
from gangdash.engine.model.meta import Condition, Meta, OwnerRef
from gangdash.engine.model.pod import Container, Pod, PodClaim
from gangdash.engine.model.podgroup import BindRequest, PodGroup, SchedulingCondition, SubGroupSpec
from gangdash.engine.model.queue import PriorityClass
from gangdash.engine.session import GPU, RequestKind, Session, Status, build_session
from gangdash.engine.session.build import is_backed_off, pod_status
from gangdash.engine.session.nodes import gpu_memory, readiness_faults
from gangdash.engine.session.requests import pod_request
from gangdash.engine.session.tree import sub_group_tree
from gangdash.engine.statement.vectors import Layout, mig_slices
from tests.engine.builders import NOW, Cluster, SchedulerParams

STUCK = 120.0


def _open(cluster: Cluster) -> Session:
    snapshot = cluster.snapshot()
    return build_session(snapshot, snapshot.shards[0])


STATES: list[tuple[str, dict[str, object], bool, Status]] = [
    ("running", {"phase": "Running"}, False, Status.RUNNING),
    ("running, being deleted", {"phase": "Running", "meta": Meta("p", deleted=NOW + 30)}, False, Status.RELEASING),
    ("at the threshold", {"phase": "Running", "meta": Meta("p", deleted=NOW - STUCK)}, False, Status.RELEASING),
    ("beyond it", {"phase": "Running", "meta": Meta("p", deleted=NOW - STUCK - 1)}, False, Status.STUCK_IN_RELEASING),
    ("pending, being deleted", {"meta": Meta("p", deleted=NOW - 900), "node_name": "n"}, False, Status.RELEASING),
    ("bound", {"node_name": "n", "gates": ("x",)}, False, Status.BOUND),
    ("with a request to bind", {"gates": ("x",)}, True, Status.BINDING),
    ("gated", {"gates": ("x",)}, False, Status.GATED),
    ("pending", {}, False, Status.PENDING),
    ("succeeded", {"phase": "Succeeded"}, False, Status.SUCCEEDED),
    ("node lost", {"phase": "Unknown", "node_name": "n"}, False, Status.UNKNOWN),
]


@pytest.mark.parametrize("fields, requested, status", [s[1:] for s in STATES], ids=[s[0] for s in STATES])
def test_state_of_a_pod(fields: dict[str, object], requested: bool, status: Status) -> None:
    pod = replace(Pod(Meta("p")), **fields)  # type: ignore[arg-type]
    assert pod_status(pod, NOW, STUCK, has_bind_request=requested) is status


def _asks(*containers: Container, **fields: object) -> dict[str, float]:
    request = pod_request(replace(Pod(Meta("p"), containers=containers), **fields), {})  # type: ignore[arg-type]
    return {**request.amounts, "gpu": request.gpu.gpus}


def test_containers_and_sidecars_add_up_and_init_containers_count_by_their_peak() -> None:
    assert _asks(
        Container("side", "sidecar", {"cpu": 100}),
        Container("first", "init", {"cpu": 900, "nvidia.com/gpu": 4}),
        Container("late", "sidecar", {"cpu": 500}),
        Container("a", requests={"cpu": 200, "nvidia.com/gpu": 1}),
        Container("b", requests={"cpu": 200, "memory": 5, "nvidia.com/gpu": 2}),
    ) == {"cpu": 1000, "memory": 5, "pods": 1, "gpu": 4}


def test_overhead_adds_everything_but_gpus() -> None:
    asked = _asks(Container("a", requests={"cpu": 100, "amd.com/gpu": 1}), overhead={"cpu": 50, "nvidia.com/gpu": 1})
    assert asked == {"cpu": 150, "pods": 1, "gpu": 1}


def test_names_of_no_known_kind_are_dropped() -> None:
    assert _asks(Container("a", requests={"strange": 7, "example.com/nic": 1000, "hugepages-2Mi": 3})) == {
        "example.com/nic": 1000,
        "hugepages-2Mi": 3,
        "pods": 1,
        "gpu": 0,
    }


SHARES: list[tuple[dict[str, str], RequestKind, tuple[int, float, int]]] = [
    ({"gpu-fraction": "0.5"}, RequestKind.FRACTION, (1, 0.5, 0)),
    ({"gpu-fraction": "1"}, RequestKind.FRACTION, (1, 1, 0)),
    ({"gpu-fraction": "1.5"}, RequestKind.REGULAR, (0, 0, 0)),
    ({"gpu-fraction": "0"}, RequestKind.REGULAR, (0, 0, 0)),
    ({"gpu-fraction": "half"}, RequestKind.REGULAR, (0, 0, 0)),
    ({"gpu-memory": "2000"}, RequestKind.GPU_MEMORY, (1, 0, 2000)),
    ({"gpu-memory": "-1"}, RequestKind.REGULAR, (0, 0, 0)),
    ({"gpu-memory": "2Gi"}, RequestKind.REGULAR, (0, 0, 0)),
    ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, RequestKind.FRACTION, (2, 0.5, 0)),
    ({"gpu-memory": "9", "gpu-fraction-num-devices": "3"}, RequestKind.GPU_MEMORY, (3, 0, 9)),
    ({"gpu-memory": "9", "gpu-fraction": "0.5"}, RequestKind.FRACTION, (1, 0.5, 0)),
    (
        {"gpu-memory": "9", "gpu-fraction": "0.5", "gpu-fraction-num-devices": "1"},
        RequestKind.FRACTION,
        (1, 0.5, 9),
    ),
    ({"gpu-fraction-num-devices": "2"}, RequestKind.REGULAR, (0, 0, 0)),
]


@pytest.mark.parametrize("annotations, kind, gpu", SHARES)
def test_sharing_annotations(annotations: dict[str, str], kind: RequestKind, gpu: tuple[int, float, int]) -> None:
    request = pod_request(Pod(Meta("p", annotations=annotations)), {})
    assert (request.kind, (request.gpu.count, request.gpu.portion, request.gpu.memory)) == (kind, gpu)


def test_mig_requests() -> None:
    name = "nvidia.com/mig-2g.10gb"
    asked = pod_request(Pod(Meta("p"), containers=(Container("a", requests={name: 2}),)), {})
    assert (asked.kind, dict(asked.gpu.mig), asked.gpu.quota_gpus) == (RequestKind.MIG, {name: 2}, 4)
    assert [mig_slices(n) for n in (name, "nvidia.com/mig-1g.5gb.me", "nvidia.com/gpu")] == [2, 0, 0]
    legacy = pod_request(Pod(Meta("p", annotations={name: "3", "nvidia.com/mig-1g.5gb": "x"})), {})
    assert (legacy.is_legacy_mig, dict(legacy.gpu.mig)) == (True, {name: 3})


def test_every_name_that_ends_in_gpu_shares_a_slot() -> None:
    layout = Layout(["nvidia.com/gpu", "intel.com/gpu", "example.com/nic"])
    assert layout.names == ["cpu", "memory", "gpu", "pods", "example.com/nic"]
    vector = layout.from_amounts({"nvidia.com/gpu": 2, "amd.com/gpu": 1, "example.com/nic": 5, "gone": 9})
    assert vector == [0, 0, 3, 0, 5]


@pytest.mark.parametrize(
    "label, memory", [("81559", 81500), ("85520809984", 81500), ("99", 0), ("", None), ("much", None)]
)
def test_gpu_memory_label(label: str, memory: int | None) -> None:
    assert gpu_memory(label) == memory


def test_all_faults_of_a_node_are_named() -> None:
    cluster = Cluster()
    node = cluster.node(
        "n0",
        cordoned=True,
        conditions=(
            Condition("Ready", "False"),
            Condition("DiskPressure", "Unknown"),
            Condition("PIDPressure", "False"),
            Condition("Custom", "True"),
        ),
    )
    assert readiness_faults(node) == [
        "node is unschedulable",
        "node has NotReady condition",
        "node has DiskPressure condition",
    ]


@pytest.mark.parametrize(
    "label, resources, strategy, found",
    [
        (None, {"nvidia.com/mig-1g.5gb": 2}, "mixed", (True, "mixed")),
        (None, {}, "mixed", (False, "")),
        ("true", {}, "single", (True, "single")),
        ("false", {"nvidia.com/mig-1g.5gb": 2}, "single", (False, "")),
        ("1", {}, "odd", (True, "")),
    ],
)
def test_mig_mode(label: str | None, resources: dict[str, int], strategy: str, found: tuple[bool, str]) -> None:
    labels = {"nvidia.com/mig.strategy": strategy}
    if label is not None:
        labels["node-role.kubernetes.io/mig-enabled"] = label
    cluster = Cluster()
    cluster.node("n0", 0, labels=labels, resources=resources)
    node = _open(cluster).nodes["n0"]
    assert (node.is_mig, node.mig_strategy) == found
    assert node.is_cpu_only is not node.is_mig


def test_pods_that_hold_nothing() -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.pod("", 0, 1, on="n0", status="Unknown")
    cluster.pod("", 1, 1, on="n0", status="Succeeded")
    cluster.pod("", 2, 1, on="n0", status="Failed")
    cluster.pod("", 3, 2, on="n0", status="Pending")
    cluster.pod("", 4, 1, on="n0", deleted=500)
    cluster.pod("", 5, 1, on="n0", deleted=5)
    node = _open(cluster).nodes["n0"]
    assert (node.idle[GPU], node.used[GPU], node.releasing[GPU]) == (4, 4, 1)


def test_reservation_pods_hold_everything_but_the_gpu() -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.pod("", 0, 1, cpu=2, on="n0", labels={"app": "kai-resource-reservation"})
    node = _open(cluster).nodes["n0"]
    assert (node.idle[0], node.idle[GPU]) == (62_000, 8)


def test_pods_are_joined_by_name_alone() -> None:
    cluster = Cluster()
    cluster.gang("g", 1, 1)
    cluster.pod("g", 1, 1, namespace="other")
    cluster.pod("ghost", 0, 1)
    session = _open(cluster)
    assert sorted(task.key for task in session.jobs["g"].tasks.values()) == ["other/g-1", "team/g-0"]
    assert len(session.tasks) == 3


def test_of_two_gangs_with_one_name_one_is_seen() -> None:
    cluster = Cluster()
    cluster.gang("g", 1, 1, namespace="a")
    cluster.gang("g", 1, 1, namespace="b")
    session = _open(cluster)
    assert [(job.namespace, len(job.tasks)) for job in session.jobs.values()] == [("b", 2)]


@pytest.mark.parametrize(
    "group, classes, read, expected",
    [
        ({"priority_class_name": "build"}, True, True, (100, False)),
        ({"priority_class_name": "train"}, True, True, (50, True)),
        ({"priority_class_name": "none"}, True, True, (50, True)),
        ({"priority_class_name": "none"}, False, True, (70, True)),
        ({"priority_class_name": "build", "preemptibility": "preemptible"}, True, True, (100, True)),
        ({"priority_class_name": "train", "preemptibility": "non-preemptible"}, True, True, (50, False)),
        ({"priority_class_name": "build"}, True, False, (130, False)),
        ({"queue": "gone"}, True, True, (0, False)),
    ],
)
def test_priority_and_preemptibility(
    group: dict[str, str], classes: bool, read: bool, expected: tuple[int, bool]
) -> None:
    cluster = Cluster()
    cluster.queue("q")
    cluster.gang("g", 1, 1, group=group, pod={"priority": 130})
    if not classes:
        cluster.extra["priority_classes"] = (PriorityClass(Meta("any"), 70, global_default=True),)
    snapshot = cluster.snapshot()
    if not read:
        snapshot = replace(snapshot, priority_classes=(), read=frozenset())
    job = build_session(snapshot, snapshot.shards[0]).jobs["g"]
    assert (job.priority, job.is_preemptible) == expected


def _backed_off(backoff: int | None, *conditions: tuple[str, str]) -> bool:
    podgroup = PodGroup(
        Meta("g", labels={}),
        scheduling_backoff=backoff,
        scheduling_conditions=tuple(
            SchedulingCondition("UnschedulableOnNodePool", pool, transition_id=number) for pool, number in conditions
        ),
    )
    return is_backed_off(podgroup, SchedulerParams())


def test_back_off_after_the_last_failure_on_the_same_pool() -> None:
    assert _backed_off(1, ("default", "1"))
    assert _backed_off(1, ("default", "10"), ("other", "9"))
    assert not _backed_off(1, ("default", "9"), ("other", "10"))
    assert not _backed_off(1, ("default", "x"), ("other", "0"))
    assert not _backed_off(1)
    assert not _backed_off(-1, ("default", "1"))
    assert not _backed_off(None, ("default", "1"))


def test_tree_of_subgroups() -> None:
    podgroup = PodGroup(
        Meta("g"),
        min_member=9,
        min_sub_group=1,
        sub_groups=(
            SubGroupSpec("leaf", parent="SET", min_member=2),
            SubGroupSpec("set", min_sub_group=3),
            SubGroupSpec("free"),
        ),
    )
    root = sub_group_tree(podgroup, {})
    assert (root.minimum, [group.name for group in root.groups]) == (1, ["set"])
    assert [(pod_set.name, pod_set.min_available) for pod_set in root.descendants()] == [("free", 0), ("leaf", 2)]
    assert root.groups[0].minimum == 3


@pytest.mark.parametrize(
    "specs", [(SubGroupSpec("a", parent="gone"),), (SubGroupSpec("a", min_member=2), SubGroupSpec("a", min_member=3))]
)
def test_broken_tree_leaves_one_pod(specs: tuple[SubGroupSpec, ...]) -> None:
    root = sub_group_tree(PodGroup(Meta("g"), min_member=7, sub_groups=specs), {})
    assert [(pod_set.name, pod_set.min_available) for pod_set in root.descendants()] == [("default", 1)]


def test_request_to_bind_holds_shared_gpus() -> None:
    cluster = Cluster()
    cluster.node("n0", 2)
    cluster.gang("g", 1, 0.5)
    cluster.bind_requests.append(BindRequest(Meta("g-0", "team"), "g-0", "n0", gpu_groups=("abc",)))
    session = _open(cluster)
    task = next(iter(session.tasks.values()))
    assert (task.status, task.bind_node, task.gpu_groups) == (Status.BINDING, "n0", ("abc",))
    assert session.nodes["n0"].idle[GPU] == 1


def _claim(name: str, device_class: str, *, owner: str = "", count: int | None = 1, mode: str = "") -> ResourceClaim:
    owners = (OwnerRef("v1", "Pod", "p", owner),) if owner else ()
    return ResourceClaim(
        Meta(name, "team", uid=name, owners=owners), (DeviceRequest("r", device_class, mode=mode, count=count),)
    )


def test_claims_for_gpus_count_as_gpus() -> None:
    cluster = Cluster()
    cluster.node("n0", 0)
    cluster.gang("g", 1, 0, pod={"claims": (PodClaim("a", claim="named"), PodClaim("b", template="t"))})
    cluster.extra["resource_claims"] = (
        _claim("named", "big-GPU.example.com", count=2),
        _claim("made", "gpu.example.com", owner="pod-team-g-0", count=None),
        _claim("all", "gpu.example.com", owner="pod-team-g-0", count=7, mode="All"),
        _claim("nic", "nic.example.com", owner="pod-team-g-0", count=3),
        _claim("theirs", "gpu.example.com", owner="someone", count=3),
    )
    cluster.extra["resource_slices"] = (
        ResourceSlice(Meta("s"), driver="gpu.example.com", node_name="n0", devices=(Device("a"), Device("b"))),
        ResourceSlice(Meta("t"), driver="nic.example.com", node_name="n0", devices=(Device("a"),)),
        ResourceSlice(Meta("u"), driver="gpu.example.com", all_nodes=True, devices=(Device("c"),)),
    )
    session = _open(cluster)
    task = next(iter(session.tasks.values()))
    assert (task.request[GPU], task.gpu.claimed_count) == (4, 4)
    node = session.nodes["n0"]
    assert (node.allocatable[GPU], node.has_claimed_gpus, node.is_cpu_only) == (2, True, False)


def test_a_device_that_two_pods_share_counts_once() -> None:
    cluster = Cluster()
    cluster.node("n0", 0)
    claim = replace(
        _claim("shared", "gpu.example.com"), allocated=(AllocatedDevice("r", "gpu.example.com", "pool", "d0"),)
    )
    cluster.extra["resource_claims"] = (claim,)
    cluster.extra["resource_slices"] = (
        ResourceSlice(Meta("s"), driver="gpu.example.com", node_name="n0", devices=(Device("d0"), Device("d1"))),
    )
    cluster.gang("g", 2, 0, on=["n0", "n0"], pod={"claims": (PodClaim("a", claim="shared"),)})
    session = _open(cluster)
    node = session.nodes["n0"]
    assert (node.used[GPU], node.device_users) == (1, {"gpu.example.com/pool/d0": 2})
    node.remove("team/g-0")
    assert (node.used[GPU], node.idle[GPU]) == (1, 1)
    node.remove("team/g-1")
    assert (node.used[GPU], node.device_users) == (0, {})


def test_resources_behind_a_device_class_are_no_part_of_a_nodes_vector() -> None:
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 1, 1, on=["n0"])
    cluster.pod("g", 1, 0, on="n0", requests={"example.com/nic": 2000})
    cluster.extra["device_classes"] = (DeviceClass(Meta("nic"), extended_resource="example.com/nic"),)
    session = _open(cluster)
    slot = session.layout.index["example.com/nic"]
    assert session.backed_slots == {slot}
    assert session.nodes["n0"].unbacked == (slot,)
    assert session.nodes["n0"].idle[slot] == 0
