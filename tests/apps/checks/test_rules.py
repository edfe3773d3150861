"""Each check on small clusters: what passes, what fails and with which evidence, and when nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest

from apps.checks.rules import CHECKS, Outcome, View
from gangdash.kube import kinds
from tests.chain import world as w

EVERY = tuple(kind.name for kind in kinds.KINDS)
IDS = [*(f"V{n}" for n in range(1, 23)), *(f"C{n}" for n in range(1, 21))]


def _check(id_: str, *objects: w.Object, **gaps: str) -> Outcome:
    snapshot = w.snapshot(*objects, read=EVERY, not_read=gaps)
    return CHECKS[id_].rule(View(snapshot))


def _says(found: Outcome) -> tuple[str, str]:
    return found.state.value, found.evidence


def _cluster_wide(api: str, kind: str, name: str, **more: Any) -> w.Object:
    return w.thing(api, kind, name, namespace="", **more)


def _node(name: str, *, gpus: int = 8, labels: dict[str, str] | None = None, cordoned: bool = False) -> w.Object:
    found = _cluster_wide("v1", "Node", name, labels=labels)
    found["spec"] = {"unschedulable": True} if cordoned else {}
    amounts = {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": str(gpus)}
    found["status"] = {"allocatable": amounts, "capacity": amounts}
    return found


def _queue(name: str, parent: str = "", *, limit: int | None = -1, quota: int = -1) -> w.Object:
    amounts = {"quota": quota, "limit": limit, "overQuotaWeight": 1}
    if limit is None:
        del amounts["limit"]
    spec: w.Object = {"resources": {name: dict(amounts) for name in ("cpu", "gpu", "memory")}}
    if parent:
        spec["parentQueue"] = parent
    return _cluster_wide("scheduling.run.ai/v2", "Queue", name, spec=spec)


def _queues(**more: Any) -> list[w.Object]:
    return [_queue("default-parent-queue"), _queue("default-queue", "default-parent-queue", **more)]


def _topology(name: str, *levels: str) -> w.Object:
    spec = {"levels": [{"nodeLabel": level} for level in levels]}
    return _cluster_wide("kai.scheduler/v1alpha1", "Topology", name, spec=spec)


def _binding(name: str, topology: str, *levels: str, drift: str = "False") -> w.Object:
    spec = {
        "levels": [{"domain": f"d{i}", "key": key} for i, key in enumerate(levels)],
        "schedulerTopologyBindings": [{"schedulerName": "kai-scheduler", "topologyReference": topology}],
    }
    status = {"conditions": [w.condition("SchedulerTopologyDrift", drift, "Drift", "levels differ")]}
    return _cluster_wide("grove.io/v1alpha1", "ClusterTopologyBinding", name, spec=spec, status=status)


def _crd(name: str, established: str = "True") -> w.Object:
    plural, _, group = name.partition(".")
    spec = {"group": group, "names": {"plural": plural}, "versions": [{"name": "v1", "served": True, "storage": True}]}
    status = {"conditions": [w.condition("Established", established)]}
    return _cluster_wide("apiextensions.k8s.io/v1", "CustomResourceDefinition", name, spec=spec, status=status)


def _backend(*gates: str, status: w.Object | None = None, **spec: Any) -> w.Object:
    content = {"featureGate": {"values": list(gates)}, "clusterConfig": {"clusterID": "c", "clusterGroupID": "g"}}
    found = w.thing("nvcf.nvidia.io/v1", "NVCFBackend", "me", namespace="nvca-operator", spec=content | spec)
    found["status"] = {"agentStatus": "Healthy", "lastUpdatedAgentStatus": w.ago(30)} | (status or {})
    return found


KAI = [
    w.deployment("kai-operator", "kai-scheduler"),
    w.deployment("kai-scheduler-default", "kai-scheduler"),
    w.deployment("pod-grouper", "kai-scheduler"),
    w.deployment("podgroup-controller", "kai-scheduler"),
    w.deployment("binder", "kai-scheduler"),
    w.deployment("queue-controller", "kai-scheduler"),
    w.deployment("admission", "kai-scheduler"),
]
GROVE = w.deployment("grove-operator", "grove-system")
DYNAMO = w.deployment("dynamo-operator-controller-manager", "dynamo-system")
NVCA = w.deployment("nvca", "nvca-system")
GROVE_CRDS = [
    _crd(name)
    for name in (
        "podcliquesets.grove.io", "podcliques.grove.io", "podcliquescalinggroups.grove.io",
        "podgangs.scheduler.grove.io", "clustertopologybindings.grove.io",
    )
]  # fmt: skip
KAI_CRDS = [
    _crd(name)
    for name in (
        "podgroups.scheduling.run.ai", "queues.scheduling.run.ai", "bindrequests.scheduling.run.ai",
        "topologies.kai.scheduler", "schedulingshards.kai.scheduler",
    )
]  # fmt: skip


def test_list_is_whole() -> None:
    assert list(CHECKS) == IDS


@pytest.mark.parametrize("id_", IDS)
def test_nothing_is_concluded_from_what_was_not_read(id_: str) -> None:
    gaps = dict.fromkeys(EVERY, "403")

    assert _check(id_, **gaps).state.value in {"unknown", "absent"}


@pytest.mark.parametrize("id_", IDS)
def test_empty_cluster_fails_nothing(id_: str) -> None:
    optional = {kind.name: "not served" for kind in kinds.KINDS if kind.group and "." in kind.group}

    assert _check(id_, **optional).state.value != "fail"


def test_v1_counts_replicas_and_restarts() -> None:
    assert _says(_check("V1", *KAI, GROVE)) == ("pass", "8 Deployments in grove-system, kai-scheduler ready")
    down = w.deployment("grove-operator", "grove-system", ready=0)
    assert _says(_check("V1", *KAI, down)) == ("fail", "Deployment/grove-system/grove-operator: 0 of 1 ready")


def test_v2_finds_what_is_not_whole() -> None:
    assert _check("V2", *w.served()).state.value == "pass"
    loose = w.served(nodes=("", ""), ready=False, group=False)
    assert _says(_check("V2", *loose)) == ("fail", "PodGang/team/llm-0 has 2 pods and no PodGroup")
    assert "PodGroup team/pg-alone has no pod" in _check("V2", w.podgroup(None, "pg-alone")).evidence
    both = [*w.served(), w.podgroup(w.served()[3], "llm-0")]
    assert "PodGang/team/llm-0 has 2 PodGroups" in _check("V2", *both).evidence


def test_v3_repeats_what_pods_say() -> None:
    assert _check("V3", *w.served()).state.value == "pass"
    waits = w.served(nodes=("", "n1"), ready=False)
    waits[-2]["status"]["conditions"] = [w.condition("PodScheduled", "False", "Unschedulable")]
    found = _check("V3", *waits)
    assert _says(found) == ("fail", "1 pod without a node: 1 Unschedulable")
    assert found.objects == ("Pod/team/llm-0-decode-0",)


def test_v4_asks_for_clique_labels_only_where_something_needs_them() -> None:
    clique = "nvidia.com/gpu.clique"
    assert _check("V4", _node("n1")).state.value == "absent"
    needs = _topology("t", clique)
    assert _says(_check("V4", _node("n1"), needs)) == ("fail", f"1 of 1 GPU nodes have no {clique}: n1")
    nodes = [_node("n1", labels={clique: "c1"}), _node("n2", labels={clique: "c1"}, cordoned=True)]
    assert _says(_check("V4", needs, *nodes)) == ("pass", "c1 1 of 2 nodes open")


def test_v5_compares_levels_with_the_binding() -> None:
    rack, host = "rack", "kubernetes.io/hostname"
    assert _says(_check("V5", _topology("t", rack, host))) == ("pass", f"t: {rack} > {host}")
    assert "above another level" in _check("V5", _topology("t", host, rack)).evidence
    assert "a level twice" in _check("V5", _topology("t", rack, rack)).evidence
    other = _check("V5", _topology("t", rack, host), _binding("b", "t", host, rack))
    assert other.state.value == "fail"


def test_v6_takes_the_condition_for_good_when_false() -> None:
    good = _binding("b", "t", "rack")
    assert _check("V6", good, _topology("t", "rack")).state.value == "pass"
    assert "Topology t, which does not exist" in _check("V6", good).evidence
    assert "levels differ" in _check("V6", _binding("b", "t", "rack", drift="True"), _topology("t", "rack")).evidence


def test_v7_names_the_best_domain_and_the_shortfall() -> None:
    nodes = [_node(f"n{i}", labels={"rack": f"r{i // 2}"}) for i in range(3)]
    group = w.podgroup(None, "pg", spec={"topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"}})
    pods = [w.pod(None, f"p{i}", gang="", group="pg") for i in range(3)]
    for item in pods:
        item["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": "8"}}
    found = _check("V7", *nodes, group, *pods)

    assert _says(found) == ("fail", "team/pg: 3 pods of 8 GPUs waiting, the best rack (r0) has room for 2")
    assert _check("V7", *nodes, group, *pods[:2]).state.value == "pass"


def test_v8_wants_one_queue_above_the_other() -> None:
    assert _says(_check("V8", *_queues())) == ("pass", "default-queue under default-parent-queue")
    assert "Queue default-queue has no parent" in _check("V8", _queues()[0], _queue("default-queue")).evidence
    assert _check("V8", _backend()).state.value == "fail"


def test_v9_tells_an_absent_limit_from_unlimited() -> None:
    assert _check("V9", _backend(), *_queues()).state.value == "pass"
    assert "Queue default-queue: cpu limit is not set" in _check("V9", _backend(), *_queues(limit=None)).evidence
    assert "gpu quota is 8" in _check("V9", _backend(), *_queues(quota=8)).evidence
    assert _check("V9", *_queues(limit=None)).state.value == "absent", "only NVCA asks for it"


def test_v10_counts_seven_parts() -> None:
    assert _check("V10", *KAI).state.value == "pass"
    assert _says(_check("V10", *KAI[:-1])) == ("fail", "KAI admission not found")


def test_v11_looks_at_every_shard() -> None:
    found = _check("V11", _backend())

    assert found.state.value == "fail"
    assert "preempt is on" in found.evidence or "placement" in found.evidence


def test_v12_names_what_is_missing_or_not_established() -> None:
    assert _check("V12", *KAI_CRDS).state.value == "pass"
    assert "queues.scheduling.run.ai is missing" in _check("V12", KAI_CRDS[0], *KAI_CRDS[2:]).evidence
    half = [*KAI_CRDS, *GROVE_CRDS[1:], _crd("podcliquesets.grove.io", "False")]
    assert _says(_check("V12", *half)) == ("fail", "podcliquesets.grove.io is not established")


def _webhook(namespace: str = "grove-system") -> list[w.Object]:
    config = _cluster_wide("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "grove")
    service = {"name": "grove-operator", "namespace": namespace}
    config["webhooks"] = [{"name": "v.grove.io", "failurePolicy": "Fail", "clientConfig": {"service": service}}]
    selector = {"spec": {"selector": {"app": "grove"}}}
    return [config, w.thing("v1", "Service", "grove-operator", namespace=namespace) | selector]


def test_v13_looks_behind_the_webhook_and_at_the_lease() -> None:
    pod = w.pod(None, "g", gang="", ready=True, node="n", labels={"app": "grove"}, namespace="grove-system")
    lease = w.thing("coordination.k8s.io/v1", "Lease", "grove-operator", namespace="grove-system")
    lease["spec"] = {"holderIdentity": "g_1", "renewTime": w.ago(100)}
    assert _check("V13", *_webhook(), pod, lease).state.value == "pass"
    assert "no pod behind grove-system/grove-operator is ready" in _check("V13", *_webhook()).evidence
    assert "does not exist" in _check("V13", _webhook()[0]).evidence
    lease["spec"]["renewTime"] = w.ago(3600)
    assert "was renewed 60 min ago" in _check("V13", *_webhook(), pod, lease).evidence
    assert _check("V13", *_webhook("elsewhere")).state.value == "absent"


def test_v14_names_the_phase_that_stays() -> None:
    mini = _cluster_wide("nvca.nvcf.nvidia.io/v1alpha1", "MiniService", "sr-1", age=7200)
    mini["status"] = {"phase": "Installing"}
    assert _says(_check("V14", mini)) == ("fail", "sr-1 Installing for 120 min")
    mini["status"] = {"phase": "Installing", "lastPhaseTransitionTime": w.ago(60)}
    assert _check("V14", mini).state.value == "pass"


def test_v15_and_v17_read_the_backend() -> None:
    assert _check("V15", _backend()).state.value == "pass"
    ill = _backend(status={"agentStatus": "Unhealthy", "lastUpdatedAgentStatus": w.ago(3600)})
    assert _says(_check("V15", ill)) == ("fail", "agentStatus is Unhealthy; its status is 60 min old")
    assert _check("V17", _backend()).state.value == "pass"
    assert "clusterID is empty" in _check("V17", _backend(clusterConfig={"clusterID": ""})).evidence


def test_v16_says_what_an_override_drops() -> None:
    assert _check("V16", _backend("KAIScheduler")).state.value == "unknown", "two sources are contents of ConfigMaps"
    over = _backend("KAIScheduler", overrides={"featureGate": {"values": ["Other"]}})
    assert "drop KAIScheduler" in _check("V16", over).evidence


def _role(*resources: str) -> w.Object:
    found = _cluster_wide("rbac.authorization.k8s.io/v1", "ClusterRole", "nvca-operator-allowed-extra-types")
    found["rules"] = [{"apiGroups": ["grove.io"], "resources": list(resources), "verbs": ["*"]}]
    return found


def test_v18_and_c7_compare_the_role_with_what_is_installed() -> None:
    assert _check("V18", _backend()).state.value == "fail"
    assert _check("V18", _backend(), _role()).state.value == "pass"
    grove = ("podcliquesets", "podcliques", "podcliquescalinggroups")
    assert _check("C7", _backend(), GROVE, _role(*grove)).state.value == "pass"
    assert "podcliques" in _check("C7", _backend(), GROVE, _role(grove[0])).evidence


def test_v19_counts_gpus_on_both_sides() -> None:
    usage = {"gpuUsage": {"H100": {"capacity": 8, "available": 0, "allocated": 8}}}
    assert _check("V19", _backend(status=usage), _node("n1")).state.value == "pass"
    assert _says(_check("V19", _backend(status=usage), _node("n1"), _node("n2"))) == (
        "fail",
        "NVCA counts 8, nodes offer 16",
    )


def test_v20_takes_readiness_for_the_answer() -> None:
    assert _check("V20", _backend(), NVCA).state.value == "pass"
    assert _check("V20", _backend(), w.deployment("nvca", "nvca-system", ready=0)).state.value == "fail"


def test_v21_knows_the_summary_by_name_only() -> None:
    summary = w.thing("v1", "ConfigMap", "cluster-validator-summary", namespace="nvca-operator")
    assert "exists" in _check("V21", _backend(), summary).evidence
    assert _check("V21", _backend()).state.value == "unknown"


def test_v22_wants_labels_on_gpu_nodes() -> None:
    labels = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "H100"}
    assert _check("V22", _node("n1", labels=labels), _node("cpu", gpus=0)).state.value == "pass"
    assert "instance-type" in _check("V22", _node("n1", labels=labels), _backend()).evidence


def test_c1_topologies_without_kai() -> None:
    assert _check("C1", _topology("t", "rack"), *KAI).state.value == "pass"
    assert _check("C1", _topology("t", "rack")).state.value == "fail"
    assert _check("C1", _topology("t", "rack"), PodGroup="not served").state.value == "fail"


def test_c2_and_c3_check_the_order_of_installation() -> None:
    assert _check("C2", *KAI, GROVE).state.value == "pass"
    assert "KAI's scheduler is missing" in _check("C2", GROVE).evidence
    late = w.deployment("grove-operator", "grove-system", age=20_000)
    assert "KAI came" in _check("C2", *KAI, late).evidence
    assert _check("C3", DYNAMO, GROVE, *GROVE_CRDS).state.value == "pass"
    assert "Grove's operator is missing" in _check("C3", DYNAMO, *GROVE_CRDS).evidence
    assert "podcliques.grove.io is missing" in _check("C3", DYNAMO, GROVE).evidence


def test_c4_c5_c6_hold_gates_against_what_runs() -> None:
    assert _check("C4", *KAI, _backend("KAIScheduler")).state.value == "pass"
    assert _check("C4", *KAI, _backend("KAIScheduler", "-KAIScheduler")).state.value == "fail"
    assert _check("C5", _backend("KAIScheduler"), *_queues()).state.value == "pass"
    assert "Queue default-queue does not exist" in _check("C5", _backend("KAIScheduler"), _queues()[0]).evidence
    assert _check("C6", DYNAMO, _backend()).state.value == "fail"
    assert _check("C6", DYNAMO, _backend("DynamoOperatorSupport")).state.value == "pass"


def test_c8_and_c9_read_grove_from_its_objects() -> None:
    under = w.clique_set(
        status={"conditions": [w.condition("TopologyLevelsUnavailable", "Unknown", "TopologyAwareSchedulingDisabled")]}
    )
    assert _check("C8", under).state.value == "fail"
    assert _check("C8", _binding("b", "t", "rack")).state.value == "unknown"
    objects = w.served()
    objects[3]["metadata"]["annotations"]["grove.io/topology-name"] = "t"
    assert _check("C8", _binding("b", "t", "rack"), *objects).state.value == "pass"
    objects[3]["metadata"]["labels"]["grove.io/scheduler-name"] = "default-scheduler"
    assert "PodGang/team/llm-0 is for default-scheduler" in _check("C9", *objects).evidence
    assert _check("C9", *w.served()).state.value == "pass"


def test_c10_tells_what_dynamo_refused() -> None:
    assert _check("C10", *w.served()).state.value == "pass"
    refused = w.graph(ready=w.condition("Ready", "False", "selected_workload_provider_unavailable"))
    assert _check("C10", refused).state.value == "fail"
    assert _check("C10", w.graph()).state.value == "unknown"


def test_c11_c12_hold_topologies_against_labels_and_gangs() -> None:
    assert "no node has rack" in _check("C11", _topology("t", "rack"), _node("n1")).evidence
    partly = _check("C11", _topology("t", "rack"), _node("n1"), _node("n2", labels={"rack": "r"}))
    assert _says(partly) == ("pass", "1 level with labelled nodes; 1 GPU node outside every rack of t")
    named = w.podgroup(None, "pg", spec={"topologyConstraint": {"topology": "b", "requiredTopologyLevel": "rack"}})
    found = _check("C12", named, _topology("t", "rack"), _binding("b", "t", "rack"))
    assert _says(found) == ("fail", "PodGroup team/pg names b (b is a binding, its Topology is t)")
    assert _check("C12", named, _topology("b", "rack")).state.value == "pass"


@pytest.mark.parametrize("tag,state", [("v0.16.7", "fail"), ("v0.17.0", "pass"), ("latest", "unknown")])
def test_c13_knows_which_kai_groups_which_graph(tag: str, state: str) -> None:
    kai = w.deployment("kai-scheduler-default", "kai-scheduler", image=f"registry.example.com/scheduler:{tag}")

    assert _check("C13", *w.served(), kai).state.value == state


def test_c14_states_the_effective_minimum() -> None:
    owner = w.thing("apps/v1", "StatefulSet", "fn", spec={"replicas": 4})
    loose = w.podgroup(owner, "pg-fn", spec={"minMember": 1})
    assert _says(_check("C14", owner, loose)) == ("fail", "StatefulSet/team/fn: 4 replicas, effective minimum 1")
    assert _check("C14", owner, w.podgroup(owner, "pg-fn", spec={"minMember": 4})).state.value == "pass"


def test_c15_wants_one_scheduler_a_gang() -> None:
    objects = w.served()
    assert _check("C15", *objects).state.value == "pass"
    objects[-1]["spec"]["schedulerName"] = "default-scheduler"
    assert "pods for default-scheduler, kai-scheduler" in _check("C15", *objects).evidence
    left = w.pod(None, "old", gang="", namespace="sr-1")
    left["spec"]["schedulerName"] = "default-scheduler"
    assert "before the gate KAIScheduler was on" in _check("C15", left, _backend("KAIScheduler")).evidence


def test_c16_gives_the_grouper_a_minute() -> None:
    assert _check("C16", w.pod(None, "old", gang="", age=90)).state.value == "fail"
    assert _check("C16", w.pod(None, "new", gang="", age=30)).state.value == "pass"
    assert _check("C16", w.pod(None, "own", gang="", age=90, gates=("a.b/c",))).state.value == "pass"


def test_c17_wants_leaf_queues_that_exist() -> None:
    assert "names queue q, which does not exist" in _check("C17", w.podgroup(None)).evidence
    group = w.podgroup(None, spec={"queue": "default-queue"})
    assert _check("C17", group, *_queues()).state.value == "pass"
    assert "is no leaf" in _check("C17", w.podgroup(None, spec={"queue": "default-parent-queue"}), *_queues()).evidence
    other = w.podgroup(None, namespace="sr-1", spec={"queue": "mine"})
    assert "names mine, not default-queue" in _check("C17", other, _queue("mine")).evidence


def test_c18_wants_one_domain_with_its_template() -> None:
    spec = {"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "channel"}}}
    domain = w.thing("resource.nvidia.com/v1beta1", "ComputeDomain", "cd", spec=spec)
    template = w.thing("resource.k8s.io/v1", "ResourceClaimTemplate", "channel")
    assert _check("C18", domain, template).state.value == "pass"
    assert "ResourceClaimTemplate channel does not exist" in _check("C18", domain).evidence
    second = w.thing("resource.nvidia.com/v1beta1", "ComputeDomain", "cd2", spec=spec)
    assert "namespace team has 2 ComputeDomains" in _check("C18", domain, second, template).evidence


def test_c19_expects_waiting_during_maintenance() -> None:
    waits = w.served(nodes=("", ""), ready=False)
    found = _check("C19", _backend("CordonMaintenance"), *waits, _node("n1", cordoned=True))
    assert _says(found) == ("fail", "CordonMaintenance is on and 1 gang wait, 1 GPU node cordoned: this is expected")
    assert _check("C19", _backend(), *waits).state.value == "pass"


def test_c20_compares_versions_with_a_release() -> None:
    kai = w.deployment("kai-scheduler-default", "kai-scheduler", image="registry.example.com/scheduler:v0.16.7")
    grove = w.deployment("grove-operator", "grove-system", image="registry.example.com/grove:v0.1.0-alpha.11")
    assert _check("C20", kai, grove).state.value == "pass"
    other = w.deployment("grove-operator", "grove-system", image="registry.example.com/grove:v0.1.0-alpha.12")
    assert _check("C20", kai, other).state.value == "fail"
