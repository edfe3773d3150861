"""Device claims: who may use them, which devices a node can give, and what the cycle remembers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gangdash.engine.actions import allocate
from gangdash.engine.model.dra import (
    AllocatedDevice,
    Device,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    ResourceClaim,
    ResourceSlice,
)
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.pod import PodClaim
from gangdash.engine.model.selectors import NodeSelectorTerm, Requirement
from gangdash.engine.plugins import open_session
from tests.engine.builders import HOST, Cluster, counts, gang_of, outcome, places, texts

CLASS = "accel.example.com"
DRIVER = "accel.example.com"


def _slice(node: str, count: int = 1, **fields: object) -> ResourceSlice:
    devices = tuple(
        Device(f"d{index}", {"model": "A" if index % 2 == 0 else "B", "numa": index // 2}) for index in range(count)
    )
    start = ResourceSlice(Meta(f"slice-{node}"), DRIVER, node, 1, 1, node, devices=devices)
    return replace(start, **fields)  # type: ignore[arg-type]


def _claim(name: str, *requests: DeviceRequest, **fields: object) -> ResourceClaim:
    start = ResourceClaim(Meta(name, "team", uid=name), requests or (DeviceRequest("r", CLASS),))
    return replace(start, **fields)  # type: ignore[arg-type]


def _cluster(
    *claims: ResourceClaim, slices: tuple[ResourceSlice, ...] = (), classes: tuple[DeviceClass, ...] | None = None
) -> Cluster:
    cluster = Cluster()
    for name in ("n0", "n1"):
        cluster.node(name, 1)
    cluster.extra = {
        "resource_claims": claims,
        "resource_slices": slices or (_slice("n0"), _slice("n1")),
        "device_classes": (DeviceClass(Meta(CLASS)),) if classes is None else classes,
    }
    return cluster


def _user(cluster: Cluster, name: str, *claims: str, pods: int = 1, age: float = 600, template: bool = False) -> None:
    """Add a gang whose pods share claims by name, or have their own from a template."""
    cluster.gang(name, 0, minimum=pods, age=age)
    for index in range(pods):
        made = tuple(
            PodClaim(claim, template="t", resolved=f"{name}-{index}-{claim}")
            if template
            else PodClaim(claim, claim=claim)
            for claim in claims
        )
        cluster.pod(name, index, 0, cpu=1, age=age, fields={"claims": made})


def test_a_claim_is_given_a_device_of_the_node() -> None:
    cluster = _cluster(_claim("c"))
    _user(cluster, "g", "c")
    assert outcome(cluster.run("allocate"), "g") == "bound"


def test_a_device_is_given_once() -> None:
    cluster = _cluster(*(_claim(f"c{index}") for index in range(3)))
    for index in range(3):
        _user(cluster, f"g{index}", f"c{index}", age=900 - index)
    result = cluster.run("allocate")
    assert {*places(result, "g0").values(), *places(result, "g1").values()} == {"n0", "n1"}
    assert outcome(result, "g2") == "unschedulable"
    message = texts(result, "g2")[0][1]
    assert "1 cannot allocate all DRA claims on node n0. \n1 cannot allocate all DRA claims on node n1" in message


def test_pods_that_share_a_claim_share_its_node() -> None:
    cluster = _cluster(_claim("c"))
    _user(cluster, "g", "c", pods=2)
    assert len(set(places(cluster.run("allocate"), "g").values())) == 1
    full = _cluster(_claim("c"))
    full.nodes[:] = [replace(node, allocatable={**node.allocatable, "cpu": 1000}) for node in full.nodes]
    _user(full, "g", "c", pods=2)
    result = full.run("allocate")
    assert outcome(result, "g") == "unschedulable"
    assert "claim team/c node selector does not match node" in texts(result, "g")[0][1]


def test_a_gang_that_fails_gives_its_devices_back() -> None:
    cluster = _cluster(_claim("big-0-c"), _claim("big-1-c"), _claim("big-2-c"), _claim("small"))
    _user(cluster, "big", "c", pods=3, age=900, template=True)
    _user(cluster, "one", "small", age=800)
    result = cluster.run("allocate")
    assert counts(result, "big") == {"pending": 3}
    assert outcome(result, "one") == "bound"


@pytest.mark.parametrize(
    "request_, slice_, fits",
    [
        pytest.param(DeviceRequest("r", CLASS, count=2), _slice("n0", 2), True, id="two devices"),
        pytest.param(DeviceRequest("r", CLASS, count=3), _slice("n0", 2), False, id="one too many"),
        pytest.param(DeviceRequest("r", CLASS, "All"), _slice("n0", 3), True, id="all devices"),
        pytest.param(DeviceRequest("r", CLASS, "All"), _slice("n0", 0), False, id="all of none"),
        pytest.param(
            DeviceRequest("r", CLASS, selectors=('device.attributes["accel.example.com"].model == "B"',)),
            _slice("n0", 2),
            True,
            id="selected",
        ),
        pytest.param(
            DeviceRequest("r", CLASS, selectors=('device.attributes["accel.example.com"].model == "C"',)),
            _slice("n0", 2),
            False,
            id="none selected",
        ),
        pytest.param(
            DeviceRequest("r", CLASS), _slice("n1", 1, node_name="", all_nodes=True), True, id="for all nodes"
        ),
        pytest.param(
            DeviceRequest("r", CLASS),
            _slice("n0", 1, node_name="", node_terms=(NodeSelectorTerm((Requirement(HOST, "In", ("n0",)),)),)),
            True,
            id="for labelled nodes",
        ),
        pytest.param(DeviceRequest("r", CLASS), _slice("n0", 1, node_name="gone"), False, id="for another node"),
    ],
)
def test_which_devices_serve_a_request(request_: DeviceRequest, slice_: ResourceSlice, *, fits: bool) -> None:
    cluster = _cluster(_claim("c", request_), slices=(slice_,))
    _user(cluster, "g", "c")
    assert (outcome(cluster.run("allocate"), "g") == "bound") is fits


def test_only_the_newest_slices_of_a_pool_count() -> None:
    old = _slice("n0", 2)
    new = replace(_slice("n0", 1), meta=Meta("newer"), pool_generation=2)
    cluster = _cluster(_claim("c", DeviceRequest("r", CLASS, count=2)), slices=(old, new))
    _user(cluster, "g", "c")
    assert outcome(cluster.run("allocate"), "g") == "unschedulable"


@pytest.mark.parametrize(
    "constraint, fits",
    [
        (DeviceConstraint((), f"{DRIVER}/numa"), True),
        (DeviceConstraint((), f"{DRIVER}/model"), True),
        (DeviceConstraint(("other",), f"{DRIVER}/serial"), True),
        (DeviceConstraint((), f"{DRIVER}/serial"), False),
        (DeviceConstraint((), ""), True),
    ],
)
def test_devices_must_match_in_an_attribute(constraint: DeviceConstraint, *, fits: bool) -> None:
    claim = _claim("c", DeviceRequest("r", CLASS, count=2), constraints=(constraint,))
    cluster = _cluster(claim, slices=(_slice("n0", 4),))
    _user(cluster, "g", "c")
    assert (outcome(cluster.run("allocate"), "g") == "bound") is fits


def test_a_constraint_is_searched_for_not_only_tried() -> None:
    """The first device has no twin of its model: the search has to go back and take the other two."""
    devices = tuple(Device(name, {"model": model}) for name, model in (("a", "X"), ("b", "Y"), ("c", "Y")))
    piece = replace(_slice("n0"), devices=devices)
    claim = _claim("c", DeviceRequest("r", CLASS, count=2), constraints=(DeviceConstraint((), f"{DRIVER}/model"),))
    cluster = _cluster(claim, slices=(piece,))
    _user(cluster, "g", "c")
    assert outcome(cluster.run("allocate"), "g") == "bound"


GPU_CLASS = DeviceClass(Meta("gpu.example.com"))


@pytest.mark.parametrize(
    "claim, text",
    [
        pytest.param(
            None, 'failed to get resource claim team/c: resourceclaim.resource.k8s.io "c" not found', id="missing"
        ),
        pytest.param(
            _claim("c", reserved_uids=tuple(f"u{index}" for index in range(256))),
            "resource claim team/c has reached its maximum number of consumers (256)",
            id="too many users",
        ),
        pytest.param(
            _claim("c", DeviceRequest("r", "nobody")),
            "device class nobody does not exist for claim team/c request r",
            id="unknown class",
        ),
        pytest.param(
            _claim("c", DeviceRequest("r", "gpu.example.com")),
            "pod team/g-0 cannot be scheduled: DRA claim c is a shared GPU claim but does not have a queue label"
            " (kai.scheduler/queue)",
            id="shared GPU claim without a queue",
        ),
        pytest.param(
            _claim(
                "c", DeviceRequest("r", "gpu.example.com"), meta=Meta("c", "team", labels={"kai.scheduler/queue": "x"})
            ),
            "pod team/g-0 cannot be scheduled: DRA claim c is a shared GPU claim with wrong queue label"
            " (expected queue: q, claim queue label: x)",
            id="shared GPU claim of another queue",
        ),
    ],
)
def test_what_rules_a_claim_out_everywhere(claim: ResourceClaim | None, text: str) -> None:
    cluster = _cluster(*([claim] if claim else []), classes=(DeviceClass(Meta(CLASS)), GPU_CLASS))
    _user(cluster, "g", "c")
    message = texts(cluster.run("allocate"), "g")[0][1]
    assert message.endswith(text)


def test_a_template_that_made_no_claim_yet() -> None:
    cluster = _cluster()
    cluster.gang("g", 0, minimum=1)
    cluster.pod("g", 0, 0, fields={"claims": (PodClaim("c", template="t"),)})
    message = texts(cluster.run("allocate"), "g")[0][1]
    assert message.endswith("no resource claim name found for pod team/g-0 and claim reference c")


@pytest.mark.parametrize(
    "request_, text",
    [
        (DeviceRequest("r", alternatives=(DeviceRequest("a", CLASS),)), "has subrequests"),
        (DeviceRequest("r", CLASS, admin_access=True), "admin access is requested"),
        (
            DeviceRequest("r", CLASS, selectors=('device.attributes["accel.example.com"].none == 1',)),
            "CEL runtime error",
        ),
    ],
)
def test_what_the_allocator_does_not_do(request_: DeviceRequest, text: str) -> None:
    cluster = _cluster(_claim("c", request_))
    _user(cluster, "g", "c")
    message = texts(cluster.run("allocate"), "g")[0][1]
    assert "cannot allocate DRA claims on node n0: claim team/c, request r: " in message
    assert text in message


def test_a_selector_that_is_not_understood_is_said() -> None:
    cluster = _cluster(_claim("c", DeviceRequest("r", CLASS, selectors=("size(device.attributes) > 0",))))
    _user(cluster, "g", "c")
    result = cluster.run("allocate")
    assert outcome(result, "g") == "unschedulable"
    assert gang_of(result, "g").not_modelled == ("device selector size(device.attributes) > 0",)


def test_an_evicted_pod_gives_its_devices_to_the_one_that_takes_its_place() -> None:
    held = _claim(
        "old-0-c",
        allocated=(AllocatedDevice("r", DRIVER, "n0", "d0"),),
        allocation_terms=(NodeSelectorTerm((), (Requirement("metadata.name", "In", ("n0",)),)),),
        reserved_uids=("pod-team-old-0",),
    )
    cluster = _cluster(held, _claim("new-0-c"), slices=(_slice("n0"),))
    _user(cluster, "old", "c", template=True)
    cluster.pods[-1] = replace(cluster.pods[-1], node_name="n0", phase="Running")
    _user(cluster, "new", "c", template=True)
    cluster.podgroups[-1] = replace(cluster.podgroups[-1], priority_class_name="build")
    result = cluster.run("allocate", "preempt")
    assert (outcome(result, "old"), outcome(result, "new")) == ("evicted", "pipelined")


def test_claims_that_were_not_read_refuse_nothing() -> None:
    cluster = _cluster()
    _user(cluster, "g", "c")
    cluster.extra["read"] = frozenset({"Node", "Pod"})
    assert outcome(cluster.run("allocate"), "g") == "bound"


def test_pool_without_a_generation_counts() -> None:
    cluster = _cluster(_claim("c"), slices=(_slice("n0", pool_generation=None),))
    _user(cluster, "g", "c")
    assert places(cluster.run("allocate"), "g") == {"g-0": "n0"}


def test_constraint_ties_devices_of_one_claim_and_of_the_requests_it_names() -> None:
    """Devices d0 and d2 are of model A, d1 and d3 of B: the tied pair is d0 and d2, the third request is free."""
    tied = DeviceConstraint(("r", "s"), f"{DRIVER}/model")
    requests = (DeviceRequest("r", CLASS), DeviceRequest("x", CLASS), DeviceRequest("s", CLASS))
    one, two = _claim("one", *requests, constraints=(tied,)), _claim("two")
    cluster = _cluster(one, two, slices=(_slice("n0", 4),))
    _user(cluster, "g", "one", age=900)
    _user(cluster, "h", "two")
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    allocate.execute(session)
    given = {}
    for task in session.tasks.values():
        assert task.claims is not None
        given[task.name] = [
            (device.request, device.device) for devices in task.claims.allocations.values() for device in devices or ()
        ]
    assert given == {"g-0": [("r", "d0"), ("x", "d1"), ("s", "d2")], "h-0": [("r", "d3")]}
