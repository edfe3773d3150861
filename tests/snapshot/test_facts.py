"""What becomes of each object: units, absence, and the shapes that differ between API versions."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.dra import AllocatedDevice
from gangdash.engine.model.pod import HostPort, PodClaim
from gangdash.engine.model.selectors import Requirement
from gangdash.snapshot.archive import load_bytes, snapshot_of
from tests.kube import raw

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC).timestamp()


def _snapshot(*items: raw.Object) -> ClusterSnapshot:
    snapshot = snapshot_of(load_bytes(json.dumps(raw.dump(*items)).encode(), name="file"))
    assert snapshot.oddities == ()
    return snapshot


def test_amounts_are_in_scheduler_units() -> None:
    amounts = {"cpu": "1.5", "memory": "1Gi", "pods": "110", "nvidia.com/gpu": "8", "nvidia.com/mig-1g.5gb": "2",
               "rdma/ib": "1", "hugepages-2Mi": "2Mi", "ephemeral-storage": "1k"}  # fmt: skip
    node = raw.thing("v1", "Node", "n", status={"allocatable": amounts})

    assert _snapshot(node).nodes[0].allocatable == {
        "cpu": 1500, "memory": 2**30, "pods": 110, "nvidia.com/gpu": 8, "nvidia.com/mig-1g.5gb": 2,
        "rdma/ib": 1000, "hugepages-2Mi": 2 * 2**20 * 1000, "ephemeral-storage": 1000,
    }  # fmt: skip


def test_node_state() -> None:
    taints = [{"key": "k", "effect": "NoSchedule", "timeAdded": raw.NOW}]
    conditions = [{"type": "Ready", "status": "False", "lastTransitionTime": raw.NOW}]
    spec = {"unschedulable": True, "taints": taints, "providerID": "aws://x"}
    node = _snapshot(raw.thing("v1", "Node", "n", spec=spec, status={"conditions": conditions})).nodes[0]

    assert (node.unschedulable, node.provider_id, node.taints[0].added) == (True, "aws://x", NOW)
    assert (node.conditions[0].status, node.conditions[0].since) == ("False", NOW)


def test_unset_is_not_zero() -> None:
    gang = _snapshot(raw.thing("scheduling.run.ai/v2alpha2", "PodGroup", "g", "team", spec={})).podgroups[0]
    zero = _snapshot(raw.podgroup(minMember=0, topologyConstraint={}, preemptionDelay="1m")).podgroups[0]

    assert (gang.min_member, gang.min_sub_group, gang.topology, gang.requested) == (None, None, None, None)
    assert (zero.min_member, zero.preemption_delay) == (0, 60)
    assert zero.topology is not None
    assert zero.topology.topology == ""


@pytest.mark.parametrize(
    "spec,has_resources,gpu",
    [({}, False, None), ({"resources": {}}, True, None), ({"resources": {"gpu": {"quota": 4}}}, True, (4, None, None))],
)
def test_absent_queue_numbers_stay_absent(spec: Any, has_resources: bool, gpu: Any) -> None:
    queue = _snapshot(raw.queue("q", **spec)).queues[0]

    assert queue.has_resources is has_resources
    assert (queue.gpu and (queue.gpu.quota, queue.gpu.limit, queue.gpu.over_quota_weight)) == gpu


@pytest.mark.parametrize(
    "status,reported",
    [
        (None, None),
        ({}, {}),
        ({"requested": {"cpu": "1"}}, {}),
        ({"allocated": {"nvidia.com/gpu": "3"}}, {"nvidia.com/gpu": 3}),
    ],
)
def test_queue_status_says_nothing_or_zero_or_a_number(status: Any, reported: Any) -> None:
    assert _snapshot(raw.queue("q") | {"status": status}).queues[0].reported == reported


def test_queue_conditions_and_runtimes() -> None:
    queue = _snapshot(raw.queue("q", displayName="Team Q", preemptMinRuntime="5m", reclaimMinRuntime="-1s")).queues[0]

    assert (queue.shown_name, queue.preempt_min_runtime, queue.reclaim_min_runtime) == ("Team Q", 300, -1)


def test_scheduling_condition_keeps_the_schedulers_numbers() -> None:
    details = {"queueDetails": {"name": "q", "queueResourceLimits": {"nvidia.com/gpu": "4", "cpu": "-1m"}}}
    condition = {"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "transitionID": "3",
                 "reasons": [{"reason": "OverLimit", "message": "m", "details": details}, {"reason": "X"}],
                 "lastTransitionTime": raw.NOW}  # fmt: skip
    gang = raw.podgroup() | {
        "status": {"schedulingConditions": [condition], "resourcesStatus": {"requested": {"cpu": "1"}}}
    }
    read = _snapshot(gang).podgroups[0]
    (found,) = read.scheduling_conditions

    assert (found.transition_id, found.since) == ("3", NOW)
    assert found.reasons[0].queue is not None
    assert found.reasons[0].queue.limits == {"nvidia.com/gpu": 4, "cpu": -1}
    assert found.reasons[1].queue is None
    assert (read.requested, read.allocated) == ({"cpu": 1000}, None)


def test_containers_keep_role_and_order() -> None:
    pod = raw.pod(
        "p",
        initContainers=[{"name": "a", "args": ["--podcliques=x:2", "--y"]}, {"name": "b", "restartPolicy": "Always"}],
        containers=[{"name": "c", "ports": [{"hostPort": 80, "hostIP": "10.0.0.1"}, {"containerPort": 8080}],
                     "resources": {"limits": {"nvidia.com/gpu": 1}, "claims": [{"name": "gpu"}]},
                     "envFrom": [{"configMapRef": {"name": "m"}}, {"configMapRef": {"name": "o", "optional": True}}]}],
    )  # fmt: skip
    containers = _snapshot(pod).pods[0].containers

    assert [(c.name, c.role) for c in containers] == [("a", "init"), ("b", "sidecar"), ("c", "main")]
    assert containers[0].wait_for == ("--podcliques=x:2",)
    assert containers[2].host_ports == (HostPort(80, "TCP", "10.0.0.1"),)
    assert (containers[2].limits, containers[2].claims) == ({"nvidia.com/gpu": 1}, ("gpu",))
    assert containers[2].config_maps == ("m",)


def test_volumes_and_claims_of_a_pod() -> None:
    volumes = [
        {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "b", "ephemeral": {}},
        {"name": "c", "configMap": {"name": "m", "optional": False}},
        {"name": "d", "emptyDir": {}},
        {"name": "e", "projected": {"sources": [{"configMap": {"name": "root-ca"}}, {"secret": {"name": "s"}}]}},
    ]
    claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}, {"name": "nic", "resourceClaimName": "c"}]
    pod = raw.pod("p", volumes=volumes, resourceClaims=claims)
    pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]
    read = _snapshot(pod).pods[0]

    assert (read.volumes.claims, read.volumes.ephemeral) == (("data",), ("p-b",))
    assert read.volumes.config_maps == ("m", "root-ca")
    assert read.claims == (PodClaim("gpu", None, "t", "p-gpu-x"), PodClaim("nic", "c", None, None))


@pytest.mark.parametrize(
    "state,expected",
    [
        ({"waiting": {"reason": "ImagePullBackOff"}}, ("waiting", "ImagePullBackOff", None, None)),
        ({"running": {"startedAt": raw.NOW}}, ("running", "", None, NOW)),
        ({"terminated": {"exitCode": 0, "finishedAt": raw.NOW}}, ("terminated", "", 0, NOW)),
        ({}, ("", "", None, None)),
    ],
)
def test_container_state(state: Any, expected: Any) -> None:
    pod = raw.pod("p", initContainers=[{"name": "s", "restartPolicy": "Always"}])
    last = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    pod["status"] |= {"containerStatuses": [{"name": "main", "restartCount": 2, "state": state, "lastState": last}],
                      "initContainerStatuses": [{"name": "s", "ready": True}]}  # fmt: skip
    sidecar, main = _snapshot(pod).pods[0].container_states

    assert (sidecar.role, sidecar.ready, main.role, main.restarts) == ("sidecar", True, "main", 2)
    assert (main.state, main.reason, main.exit_code, main.since) == expected
    assert (main.last_reason, main.last_exit_code) == ("OOMKilled", 137)


def test_affinity_without_terms_is_not_no_affinity() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    none = _snapshot(raw.pod("p", affinity={"nodeAffinity": {}})).pods[0].affinity
    empty = _snapshot(raw.pod("p", affinity={"nodeAffinity": {required: {"nodeSelectorTerms": []}}})).pods[0].affinity
    selector = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    anti = {
        "podAntiAffinity": {required: [{"topologyKey": "host", "labelSelector": selector}, {"topologyKey": "zone"}]}
    }
    pods = _snapshot(raw.pod("p", affinity=anti)).pods[0].affinity

    assert none is not None
    assert empty is not None
    assert pods is not None
    assert (none.node_required, empty.node_required) == (None, ())
    assert pods.anti_required[0].selector is not None
    assert pods.anti_required[0].selector.match_expressions == (Requirement("a", "Exists", ()),)
    assert pods.anti_required[1].selector is None


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_claims_and_slices_of_each_version(version: str) -> None:
    request = {"deviceClassName": "gpu.nvidia.com", "count": 2, "selectors": [{"cel": {"expression": "true"}}]}
    device: Any = {"attributes": {"id": {"int": 0}, "ok": {"bool": False}, "v": {"version": "1.0.0"}, "none": {}}}
    device["capacity"] = {"memory": "80Gi" if version == "v1beta1" else {"value": "80Gi"}}
    if version == "v1beta1":
        requests, devices = [{"name": "gpu", **request}], [{"name": "gpu-0", "basic": device}]
    else:
        requests, devices = [{"name": "gpu", "exactly": request}], [{"name": "gpu-0", **device}]
    result = {"request": "gpu", "driver": "d", "pool": "p", "device": "gpu-0"}
    claim = raw.thing(
        f"resource.k8s.io/{version}", "ResourceClaim", "c", "team", spec={"devices": {"requests": requests}},
        status={"allocation": {"devices": {"results": [result]}},
                "reservedFor": [{"resource": "pods", "name": "a", "uid": "u"}, {"resource": "jobs", "name": "j"}]},
    )  # fmt: skip
    slices = raw.thing(f"resource.k8s.io/{version}", "ResourceSlice", "s",
                       spec={"driver": "d", "nodeName": "n", "pool": {"name": "p"}, "devices": devices})  # fmt: skip
    snapshot = _snapshot(claim, slices)
    (read,) = snapshot.resource_claims
    (found,) = snapshot.resource_slices[0].devices

    assert (read.requests[0].device_class, read.requests[0].count, read.requests[0].selectors) == (
        "gpu.nvidia.com", 2, ("true",),
    )  # fmt: skip
    assert read.allocated == (AllocatedDevice("gpu", "d", "p", "gpu-0"),)
    assert read.reserved_for == ("a", "jobs/j")
    assert found.attributes == {"id": 0, "ok": False, "v": "1.0.0"}
    assert found.capacity == {"memory": 80 * 2**30}


def test_alternatives_of_a_request() -> None:
    first = [
        {"name": "big", "deviceClassName": "a"},
        {"name": "small", "deviceClassName": "b", "allocationMode": "All"},
    ]
    spec = {"devices": {"requests": [{"name": "r", "firstAvailable": first}]}}
    (request,) = (
        _snapshot(raw.thing("resource.k8s.io/v1", "ResourceClaim", "c", "t", spec=spec)).resource_claims[0].requests
    )

    assert [(a.name, a.device_class, a.mode) for a in request.alternatives] == [("big", "a", ""), ("small", "b", "All")]


def test_claim_without_allocation_is_not_an_empty_one() -> None:
    claim = raw.thing("resource.k8s.io/v1", "ResourceClaim", "c", "team", spec={}, status={})

    assert _snapshot(claim).resource_claims[0].allocated is None


def test_storage() -> None:
    claim = raw.thing("v1", "PersistentVolumeClaim", "c", "team", spec={"resources": {"requests": {"storage": "10Gi"}}},
                      status={"phase": "Pending"})  # fmt: skip
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
    owner = {"namespace": "team", "name": "c", "uid": "u"}
    spec = {"capacity": {"storage": "1Gi"}, "nodeAffinity": {"required": terms}, "claimRef": owner}
    volume = raw.thing("v1", "PersistentVolume", "v", spec=spec)
    topologies = [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}]
    storage_class = raw.thing("storage.k8s.io/v1", "StorageClass", "s", provisioner="p", allowedTopologies=topologies,
                              volumeBindingMode="WaitForFirstConsumer")  # fmt: skip
    driver = raw.thing("storage.k8s.io/v1", "CSIDriver", "d", spec={"storageCapacity": True})
    capacity = raw.thing("storage.k8s.io/v1", "CSIStorageCapacity", "k", "team", storageClassName="s", capacity="5Gi")
    snapshot = _snapshot(claim, volume, storage_class, driver, capacity)

    assert (snapshot.volume_claims[0].storage_class, snapshot.volume_claims[0].requested_bytes) == (None, 10 * 2**30)
    assert (snapshot.volumes[0].claim_key, snapshot.volumes[0].capacity_bytes) == ("team/c", 2**30)
    assert snapshot.volumes[0].node_terms is not None
    assert snapshot.storage_classes[0].allowed_topologies[0].match_expressions == (
        Requirement("zone", "In", ("a", "b")),
    )
    assert snapshot.csi_drivers[0].storage_capacity
    assert (snapshot.csi_capacities[0].capacity_bytes, snapshot.csi_capacities[0].maximum_volume_bytes) == (
        5 * 2**30,
        None,
    )


ABOUT = {"kind": "Pod", "name": "p", "namespace": "team", "uid": "u"}


@pytest.mark.parametrize(
    "api_version,fields",
    [
        ("v1", {"involvedObject": ABOUT, "message": "m", "count": 25,
                "firstTimestamp": "2026-11-30T08:00:00Z", "lastTimestamp": raw.NOW, "source": {"component": "kai"}}),
        ("events.k8s.io/v1", {"regarding": ABOUT, "note": "m",
                              "eventTime": "2026-11-30T08:00:00.000000Z", "reportingController": "kai",
                              "series": {"count": 25, "lastObservedTime": "2026-11-30T09:00:00.000000Z"}}),
        ("events.k8s.io/v1", {"regarding": ABOUT, "note": "m",
                              "deprecatedFirstTimestamp": "2026-11-30T08:00:00Z", "deprecatedLastTimestamp": raw.NOW,
                              "deprecatedCount": 25, "deprecatedSource": {"component": "kai"}}),
    ],
)  # fmt: skip
def test_event_of_each_api(api_version: str, fields: Any) -> None:
    (event,) = _snapshot(raw.thing(api_version, "Event", "e", "team", type="Normal", reason="R", **fields)).events

    assert (event.kind, event.namespace, event.name, event.uid) == ("Pod", "team", "p", "u")
    assert (event.message, event.count, event.source, event.reason) == ("m", 25, "kai", "R")
    assert (event.first, event.last) == (NOW - 3600, NOW)


def test_event_without_any_time_but_its_creation() -> None:
    (event,) = _snapshot(raw.thing("v1", "Event", "e", "team", involvedObject={"kind": "Pod"})).events

    assert (event.first, event.last, event.count) == (NOW, NOW, 1)


def test_bind_request_that_nobody_answered_has_no_phase() -> None:
    spec = {
        "podName": "p",
        "selectedNode": "n",
        "receivedGPU": {"count": 1, "portion": "0.50"},
        "selectedGPUGroups": ["g"],
    }
    request = _snapshot(raw.thing("scheduling.run.ai/v1alpha2", "BindRequest", "p", "team", spec=spec)).bind_requests[0]

    assert (request.phase, request.node, request.gpu_portion, request.gpu_groups) == ("", "n", "0.50", ("g",))
    assert request.backoff_limit is None


def test_topology_levels_keep_their_order() -> None:
    spec = {"levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack", "alias": "r"}]}
    topology = _snapshot(raw.thing("kai.scheduler/v1alpha1", "Topology", "t", spec=spec)).topologies[0]

    assert [(level.node_label, level.alias) for level in topology.levels] == [("block", ""), ("rack", "r")]


def test_observed_facts_are_found_under_their_paths() -> None:
    cliques = [{"name": "a", "spec": {"minAvailable": 2}}]
    grove = raw.thing(
        "grove.io/v1alpha1",
        "PodCliqueSet",
        "s",
        "team",
        metadata={"ownerReferences": [{"kind": "X", "name": "x", "uid": "u", "controller": True}]},
        spec={"replicas": 0, "template": {"cliques": cliques, "cliqueStartupType": "AnyOrder"}},
        status={"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": raw.NOW}]},
    )
    quota = raw.thing("v1", "ResourceQuota", "q", "team", status={"hard": {"requests.nvidia.com/gpu": "4"}})
    dynamo = raw.thing("nvidia.com/v1alpha1", "DynamoGraphDeployment", "d", "team",
                       spec={"services": {"a.b": {"replicas": 3}}})  # fmt: skip
    snapshot = _snapshot(grove, quota, dynamo)
    (read,) = snapshot.objects["PodCliqueSet"]

    assert read.facts == {
        "spec.replicas": 0,
        "spec.template.cliqueStartupType": "AnyOrder",
        "spec.template.cliques": cliques,
    }
    assert (read.ref, read.conditions[0].type, read.conditions[0].since) == ("PodCliqueSet/team/s", "Ready", NOW)
    assert read.meta.owners[0].controller
    assert snapshot.objects["ResourceQuota"][0].facts == {"status.hard": {"requests.nvidia.com/gpu": "4"}}
    assert snapshot.objects["DynamoGraphDeployment"][0].facts == {"spec.services": {"a.b": {"replicas": 3}}}


def test_every_observed_kind_that_was_read_is_there_even_if_empty() -> None:
    snapshot = snapshot_of(load_bytes(json.dumps(raw.dump(raw.node("n"), read=["Lease"])).encode(), name="file"))

    assert snapshot.objects["Lease"] == ()
    assert "Job" not in snapshot.objects
