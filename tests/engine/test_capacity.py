"""Limits and quotas of queues, numbers as the scheduler prints them, and why a node has too little."""

from __future__ import annotations

import pytest

from gangdash.engine.model.queue import QueueResource
from gangdash.engine.plugins import open_session
from gangdash.engine.rules import humanize
from gangdash.engine.rules.resource_fit import gpus_text, shortages
from gangdash.engine.session import GpuRequest
from gangdash.engine.statement.request import gpus_of
from tests.engine.builders import GIB, Cluster, outcome, texts


def test_first_violation_from_the_leaf_up_is_told() -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.queue("dept", limit=1, shown="The Department")
    cluster.queue("q", limit=2, parent="dept")
    cluster.gang("g", 1, 2)
    assert texts(cluster.run("allocate"), "g") == [
        (
            "OverLimit",
            (
                "The Department quota has reached the allowable limit of GPUs. "
                "Limit is 1 GPUs, currently 0 GPUs allocated and workload requested 2 GPUs"
            ),
        )
    ]


CAPS = [
    (
        {"cpu": QueueResource(-1, 1500, 1)},
        "train",
        "OverLimit",
        (
            "q quota has reached the allowable limit of CPU cores. "
            "Limit is 1.5 cores, currently 1 cores allocated and workload requested 1 cores"
        ),
    ),
    (
        {"memory": QueueResource(-1, 3000, 1)},
        "train",
        "OverLimit",
        (
            "q quota has reached the allowable limit of memory. "
            "Limit is 3 GB, currently 2.147 GB allocated and workload requested 2.147 GB"
        ),
    ),
    (
        {"cpu": QueueResource(1500, -1, 1)},
        "build",
        "NonPreemptibleOverQuota",
        (
            "Non-preemptible workload is over quota. Workload requested 1 CPU cores, but q quota is 1.5 cores, "
            "while 1 cores are already allocated for non-preemptible pods. "
            "Use a preemptible workload to go over quota."
        ),
    ),
    (
        {"memory": QueueResource(3000, -1, 1)},
        "build",
        "NonPreemptibleOverQuota",
        (
            "Non-preemptible workload is over quota. Workload requested 2.147 GB memory, but q quota is 3 GB, "
            "while 2.147 GB are already allocated for non-preemptible pods. "
            "Use a preemptible workload to go over quota."
        ),
    ),
]


@pytest.mark.parametrize("caps, kind, reason, message", CAPS)
def test_cpu_and_memory_have_limits_and_quotas_too(
    caps: dict[str, QueueResource], kind: str, reason: str, message: str
) -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.queue("q", cpu=caps.get("cpu"), memory=caps.get("memory"))
    cluster.gang("run", 1, 1, kind=kind, cpu=1, memory=2, on=["n0"])
    cluster.gang("g", 1, 1, kind=kind, cpu=1, memory=2)
    assert texts(cluster.run("allocate"), "g") == [(reason, message)]


def test_what_is_not_asked_for_is_not_checked() -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.queue("q", limit=0, quota=0)
    cluster.gang("g", 1, 0, kind="build", cpu=1)
    assert outcome(cluster.run("allocate"), "g") == "bound"


def test_preemptible_pods_do_not_use_up_the_quota() -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.queue("q", 2)
    cluster.gang("run", 1, 4, on=["n0"])
    cluster.gang("g", 1, 2, kind="build")
    assert outcome(cluster.run("allocate"), "g") == "bound"


def test_only_the_next_step_is_checked() -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.queue("q", limit=2)
    cluster.gang("g", 4, 1, minimum=1)
    result = cluster.run("allocate")
    assert sum(pod.node is not None for pod in result.gangs[0].pods) == 2


NUMBERS: list[tuple[float, str, str, str]] = [
    (0, "0", "0", "0"),
    (-1, "Unlimited", "-1", "-1"),
    (4, "4", "4", "4"),
    (0.5, "0.5", "0.5", "0.5"),
    (1 / 3, "0.333", "0.3333333333333333", "0.333"),
    (0.1 + 0.2, "0.3", "0.30000000000000004", "0.3"),
    (2.9999, "2.999", "2.9999", "3"),
    (1234.5, "1234.5", "1234.5", "1.23e+03"),
    (1e21, "1000000000000000000000", "1e+21", "1e+21"),
    (0.00001, "0", "1e-05", "1e-05"),
    (2**63, "9223372036854775808", "9223372036854775808", "9.22e+18"),
]


@pytest.mark.parametrize("value, amount, shortest, three", NUMBERS)
def test_numbers(value: float, amount: str, shortest: str, three: str) -> None:
    assert humanize.amount(value) == amount
    assert humanize.shortest(value) == shortest
    assert humanize.three_digits(value) == three


@pytest.mark.parametrize(
    "portion, count, gpus", [(0.1, 3, 0.3), (0.335, 1, 0.34), (1, 8, 8), (0.005, 2, 0.02), (0, 5, 0)]
)
def test_gpus_in_hundredths(portion: float, count: int, gpus: float) -> None:
    assert gpus_of(portion, count) == gpus


@pytest.mark.parametrize(
    "gpu, text",
    [
        (GpuRequest(2, 1), "2"),
        (GpuRequest(1, 0.5), "0.5"),
        (GpuRequest(2, 0.5), "2 X 0.5"),
        (GpuRequest(claimed={"c": 3}), "3 as DRA gpu claims "),
    ],
)
def test_gpu_requests_in_words(gpu: GpuRequest, text: str) -> None:
    assert gpus_text(gpu) == text


def test_every_short_resource_is_a_reason() -> None:
    cluster = Cluster()
    cluster.node("n0", 1, cpu=1.5, memory=1, resources={"example.com/nic": 1000})
    cluster.gang("g", 0, group={"min_member": 1})
    cluster.pod("g", 0, 2, cpu=2, memory=2, requests={"example.com/nic": 2000, "nvidia.com/mig-1g.5gb": 0})
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    task, node = next(iter(session.tasks.values())), session.nodes["n0"]
    one = shortages(task, node, of_several=False)
    assert [reason.short for reason in one] == [
        f"node(s) didn't have enough resources: {name}" for name in ("GPUs", "CPU cores", "memory", "example.com/nic")
    ]
    assert [reason.detailed.partition(", ")[2] for reason in one] == [
        "requested: 2, used: 0, capacity: 1",
        "requested: 2, used: 0, capacity: 1.5",
        "requested: 2.147, used: 0, capacity: 1.073",
        "requested: 2000, used: 0, capacity: 1000",
    ]
    assert all("taking all considerations" in reason.detailed for reason in shortages(task, node, of_several=True))
    task.request = [0] * len(task.request)
    assert shortages(task, node, of_several=False) == []


def test_overhead_that_breaks_the_fit_is_named() -> None:
    cluster = Cluster()
    cluster.node("n0", 1, cpu=3)
    cluster.pod("", 0, 0, cpu=1, on="n0")
    cluster.gang("g", 1, 1, cpu=1.9, pod={"overhead": {"cpu": 250, "memory": GIB}})
    assert texts(cluster.run("allocate"), "g")[0][1].endswith(
        "1 node(s) didn't have enough resources: CPU cores. Not enough resources due to pod overhead resources. "
        "The overhead resources are  cpu: 250m memory: 1Gi."
    )


def test_missing_mig_profile_is_named() -> None:
    cluster = Cluster()
    small, large = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb"
    cluster.node("n0", 0, resources={small: 1, large: 1}, labels={"nvidia.com/mig.strategy": "mixed"})
    cluster.pod("", 0, 0, on="n0", requests={large: 1})
    cluster.gang("g", 0, group={"min_member": 1})
    cluster.pod("g", 0, 0, requests={large: 1})
    assert f"1 node(s) didn't have enough of mig profile: {large}" in texts(cluster.run("allocate"), "g")[0][1]


def test_pod_without_gpus_passes_a_limit_of_gpus_that_is_reached() -> None:
    cluster = Cluster()
    cluster.queue("q", limit=1)
    cluster.node("n0", 2)
    cluster.gang("held", on=["n0"])
    cluster.gang("plain", 1, 0, cpu=1)
    cluster.gang("more", 1, 1)
    result = cluster.run("allocate")
    assert (outcome(result, "plain"), outcome(result, "more")) == ("bound", "unschedulable")


def test_limit_of_cpu_is_held_against_cpu_alone() -> None:
    cluster = Cluster()
    cluster.queue("q", cpu=QueueResource(-1, 4000, 1))
    cluster.node("n0", 1)
    cluster.gang("fits", 1, 0, cpu=3, memory=9)
    cluster.gang("over", 1, 0, cpu=2, memory=1)
    result = cluster.run("allocate")
    assert (outcome(result, "fits"), outcome(result, "over")) == ("bound", "unschedulable")


def test_a_single_missing_unit_and_whole_cores_of_overhead_are_named() -> None:
    cluster = Cluster()
    cluster.node("n0", 1, cpu=3, resources={"example.com/nic": 1})
    cluster.pod("", 0, 0, cpu=1, on="n0", requests={"example.com/nic": 1})
    cluster.gang("nic", 0, group={"min_member": 1})
    cluster.pod("nic", 0, 0, requests={"example.com/nic": 1})
    cluster.gang("heavy", 1, 1, cpu=1, pod={"overhead": {"cpu": 2000, "memory": 1500}})
    result = cluster.run("allocate")
    assert "1 node(s) didn't have enough resources: example.com/nic" in texts(result, "nic")[0][1]
    assert texts(result, "heavy")[0][1].endswith("The overhead resources are  cpu: 2 memory: 1500.")
