"""Causes that the objects show by themselves, from set-up and gates to evictions, binding and starting."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gangdash.engine.model.cluster import GangHistory
from gangdash.engine.model.config import Shard
from gangdash.engine.model.meta import Condition, Meta, OwnerRef
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import ContainerState
from gangdash.engine.model.podgroup import BindRequest, SchedulingCondition, SubGroupSpec, TopologyConstraint
from tests.engine.builders import ALL_READ, NOW, RACK, Cluster
from tests.explain.helpers import event, explain, said


def one_node() -> Cluster:
    cluster = Cluster()
    cluster.node("n1", 8)
    return cluster


# Set-up


def test_queue_that_does_not_exist_names_those_that_do() -> None:
    cluster = one_node()
    cluster.queue("q")
    cluster.gang("g", queue="nosuch")
    entry = explain(cluster)
    assert said(entry) == ("CONFIG", "QUEUE_MISSING")
    assert "nosuch does not exist" in entry.sentence
    assert "(q)" in entry.sentence


def test_queue_spelled_nearly_alike_is_named_first() -> None:
    cluster = one_node()
    for name in ("builds", "data", "nlp", "speech", "vision"):
        cluster.queue(name)
    cluster.gang("g", queue="visoin")
    assert "(vision, builds, data and 2 more)" in explain(cluster).sentence


def test_queue_of_another_node_pool_is_not_seen_from_the_default_one() -> None:
    cluster = one_node()
    made = cluster.queue("q")
    cluster.queues[-1] = replace(made, meta=replace(made.meta, labels={"kai.scheduler/node-pool": "w"}))
    cluster.gang("g", queue="q")
    entry = explain(cluster)
    assert said(entry) == ("CONFIG", "QUEUE_MISSING")
    assert "carries the label kai.scheduler/node-pool=w" in entry.sentence


def test_queue_with_children_holds_no_gangs() -> None:
    cluster = one_node()
    cluster.queue("q")
    cluster.queue("leaf", parent="q")
    cluster.gang("g", queue="q")
    assert said(explain(cluster)) == ("CONFIG", "QUEUE_NOT_LEAF")


def test_queue_whose_parent_is_missing() -> None:
    cluster = one_node()
    cluster.queue("q", parent="gone")
    cluster.gang("g")
    entry = explain(cluster)
    assert said(entry) == ("CONFIG", "QUEUE_ORPHANED")
    assert entry.binding[0].have == "missing"


def test_node_pool_that_no_shard_serves() -> None:
    cluster = one_node()
    made = cluster.gang("g")
    cluster.podgroups[-1] = replace(made, meta=replace(made.meta, labels={"kai.scheduler/node-pool": "w"}))
    cluster.extra["read"] = ALL_READ | {"SchedulingShard"}
    assert said(explain(cluster)) == ("CONFIG", "NOT_IN_SHARD")
    cluster.extra["read"] = ALL_READ
    assert said(explain(cluster)) == ("NO_VERDICT", "NOT_READ")


@pytest.mark.parametrize(
    "parts, form",
    [
        ((SubGroupSpec("a", min_member=1), SubGroupSpec("a", min_member=1)), "Two subgroups are called a"),
        ((SubGroupSpec("a", parent="gone", min_member=1),), "names parent gone"),
        ((SubGroupSpec("a", parent="b"), SubGroupSpec("b", parent="a")), "its own ancestor"),
    ],
)
def test_subgroups_that_make_no_tree(parts: tuple[SubGroupSpec, ...], form: str) -> None:
    cluster = one_node()
    cluster.gang("g", 0, sub_groups=parts)
    cluster.pod("g", 0, sub_group="a")
    entry = explain(cluster)
    assert said(entry) == ("CONFIG", "SUBGROUP_TREE_INVALID")
    assert form in entry.sentence


def test_pod_of_an_unknown_subgroup_counts_for_nothing() -> None:
    cluster = one_node()
    cluster.gang("g", 0, sub_groups=(SubGroupSpec("a", min_member=1),))
    cluster.pod("g", 0, sub_group="b")
    entry = explain(cluster)
    assert said(entry) == ("CONFIG", "SUBGROUP_UNKNOWN")
    assert "subgroup b" in entry.sentence


def test_minimum_of_children_that_do_not_exist() -> None:
    cluster = one_node()
    cluster.gang("g", 0, sub_groups=(SubGroupSpec("a", min_member=1),), min_sub_group=3)
    cluster.pod("g", 0, sub_group="a")
    assert said(explain(cluster)) == ("CONFIG", "MINIMUM_UNREACHABLE")


@pytest.mark.parametrize(
    "constraint, code",
    [
        (TopologyConstraint("gone", required_level=RACK), "TOPOLOGY_MISSING"),
        (TopologyConstraint("topo", required_level="no/level"), "TOPOLOGY_LEVEL_UNKNOWN"),
        (
            TopologyConstraint("topo", required_level="kubernetes.io/hostname", preferred_level=RACK),
            "TOPOLOGY_LEVEL_UNKNOWN",
        ),
    ],
)
def test_topology_that_cannot_be_kept(constraint: TopologyConstraint, code: str) -> None:
    cluster = Cluster()
    cluster.node("n1", 8, labels={RACK: "r1"})
    cluster.topology(RACK, "kubernetes.io/hostname")
    cluster.gang("g", topology=constraint)
    assert said(explain(cluster)) == ("CONFIG", code)


def test_kind_that_was_not_read_is_never_taken_as_empty() -> None:
    cluster = one_node()
    cluster.gang("g", topology=TopologyConstraint("topo", required_level=RACK))
    cluster.extra["read"] = cluster.snapshot().read - {"Topology"}
    entry = explain(cluster)
    assert said(entry) == ("NO_VERDICT", "NOT_READ")
    assert entry.certainty == "no_verdict"
    assert entry.not_read == ["Topology"]


def test_kind_that_cannot_matter_does_not_touch_the_verdict() -> None:
    cluster = one_node()
    cluster.gang("g")
    cluster.extra["read"] = cluster.snapshot().read - {"Topology", "ResourceClaim"}
    assert said(explain(cluster)) == ("WILL_START", "FITS_NOW")


def test_gpu_memory_needs_the_label_that_says_how_much_there_is() -> None:
    cluster = Cluster()
    cluster.node("n1", 1, gpu_memory=None)
    cluster.gang("g", 0, minimum=1)
    cluster.pod("g", 0, 0, annotations={"gpu-memory": "8000"})
    entry = explain(cluster)
    assert said(entry) == ("CONFIG", "LABEL_MISSING")
    assert "nvidia.com/gpu.memory" in entry.sentence


# Gates and members


def test_missing_members_keep_the_scheduler_from_trying() -> None:
    cluster = one_node()
    cluster.gang("g", 2, minimum=3)
    entry = explain(cluster)
    assert said(entry) == ("GATED", "MEMBERS_MISSING")
    assert entry.sentence.startswith("2 of 3 pods exist")


def test_gate_of_another_controller_is_named() -> None:
    cluster = one_node()
    cluster.gang("g", 2, pod={"gates": ("kueue.x-k8s.io/admission",)})
    entry = explain(cluster)
    assert said(entry) == ("GATED", "SCHEDULING_GATE")
    assert "Kueue" in entry.sentence


def owned_by_job(cluster: Cluster, **facts: object) -> None:
    """Let every PodGroup and pod be owned by one Job with the given facts."""
    ref = OwnerRef("batch/v1", "Job", "job", "uid-job", controller=True)
    cluster.podgroups[:] = [replace(g, meta=replace(g.meta, owners=(ref,))) for g in cluster.podgroups]
    cluster.pods[:] = [replace(p, meta=replace(p.meta, owners=(ref,))) for p in cluster.pods]
    job = ObservedObject(
        "batch/v1", "Job", Meta("job", "team", uid="uid-job"), {k.replace("_", "."): v for k, v in facts.items()}
    )
    cluster.extra["objects"] = {"Job": (job,)}


def test_suspended_owner_makes_no_pods() -> None:
    cluster = one_node()
    cluster.gang("g", 0, minimum=2)
    owned_by_job(cluster, spec_suspend=True, spec_parallelism=2)
    assert said(explain(cluster)) == ("GATED", "SUSPENDED")


def test_owner_that_makes_too_few_pods() -> None:
    cluster = one_node()
    cluster.gang("g", 2, minimum=3)
    owned_by_job(cluster, spec_parallelism=2)
    entry = explain(cluster)
    assert said(entry) == ("CONFIG", "MINIMUM_UNREACHABLE")
    assert "makes only 2" in entry.sentence


def test_namespace_quota_refuses_new_pods() -> None:
    cluster = one_node()
    cluster.gang("g", 1, minimum=3)
    owned_by_job(cluster, spec_parallelism=3)
    text = 'pods "g-1" is forbidden: exceeded quota: compute, requested: cpu=2, used: cpu=14, limited: cpu=15'
    cluster.extra["events"] = (event("FailedCreate", text, kind="Job", name="job"),)
    quota = ObservedObject(
        "v1", "ResourceQuota", Meta("compute", "team"), {"status.hard": {"cpu": "15"}, "status.used": {"cpu": "14"}}
    )
    cluster.extra["objects"]["ResourceQuota"] = (quota,)
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "NAMESPACE_QUOTA")
    assert (entry.binding[0].need, entry.binding[0].have) == (16_000, 15_000)
    assert "allows 15 CPUs (cpu), 14 used" in entry.sentence


def test_webhook_that_does_not_answer() -> None:
    cluster = one_node()
    cluster.gang("g", 0, minimum=2)
    owned_by_job(cluster, spec_parallelism=2)
    text = 'Error creating: Internal error occurred: failed calling webhook "hook.example.com": connection refused'
    cluster.extra["events"] = (event("FailedCreate", text, kind="Job", name="job"),)
    entry = explain(cluster)
    assert said(entry) == ("GATED", "ADMISSION_DOWN")
    assert "hook.example.com" in entry.sentence


# Evicted


def test_eviction_that_it_has_not_recovered_from() -> None:
    cluster = one_node()
    cluster.gang("hold", 1, 8, kind="build", on=["n1"])
    cluster.gang("g", 2, 4)
    notes = {"evictor-action-type": "reclaim", "evictor-pod-group-name": "claimer"}
    cluster.extra["events"] = tuple(
        event("Evict", f"Pod team/g-{index} was preempted by workload other/claimer.", age=120, annotations=notes)
        for index in range(2)
    )
    entry = explain(cluster)
    assert said(entry) == ("EVICTED", "RECLAIMED")
    assert entry.sentence == "2 pods were evicted 2 min ago by reclaim for claimer (g-0 and g-1); it has waited since."
    assert [str(other.code) for other in entry.also] == ["GPUS_BUSY"]


def test_eviction_before_the_last_start_is_over() -> None:
    cluster = one_node()
    made = cluster.gang("g", 2, 4, on=["n1"])
    notes = {"kai.scheduler/last-eviction-timestamp": "2027-01-15T07:00:00Z"}
    notes["kai.scheduler/last-start-timestamp"] = "2027-01-15T07:30:00Z"
    cluster.podgroups[-1] = replace(made, meta=replace(made.meta, annotations=notes), min_member=1)
    assert said(explain(cluster))[0] != "EVICTED"


def test_stale_gang_without_an_evict_event() -> None:
    cluster = one_node()
    cluster.gang("g", 2, 8, minimum=2)
    cluster.extra["events"] = (event("StaleJob", "Job is stale. 1 pods are active, minMember is 2", age=90, count=25),)
    entry = explain(cluster)
    assert said(entry) == ("EVICTED", "STALE_GANG")
    assert "no Evict event" in entry.sentence


def test_eviction_again_and_again_is_a_loop() -> None:
    cluster = one_node()
    cluster.gang("g", 1, 9)
    cluster.extra["events"] = tuple(
        event("Evict", "Pod team/g-0 was preempted by workload other/w.", age=age) for age in (600, 400, 200)
    )
    entry = explain(cluster)
    assert said(entry) == ("EVICTED", "EVICTION_LOOP")
    assert "3 times" in entry.sentence


def test_evictions_that_earlier_readings_saw_are_a_loop_too() -> None:
    """Events run out; here one is left of three evictions."""
    cluster = one_node()
    made = cluster.gang("g", 1, 9)
    cluster.extra["events"] = (event("Evict", "Pod team/g-0 was preempted by workload other/w.", age=200),)
    assert said(explain(cluster))[1] == "RECLAIMED"
    cluster.extra["history"] = {made.meta.uid: GangHistory(evictions=(NOW - 3000, NOW - 1600, NOW - 200))}
    entry = explain(cluster)
    assert said(entry) == ("EVICTED", "EVICTION_LOOP")
    assert "3 times in 47 min" in entry.sentence


@pytest.mark.parametrize("after, loop", [(60, True), (-60, False)])
def test_a_gang_made_anew_after_each_eviction_is_in_the_loop(after: float, loop: bool) -> None:
    """Its uid and name are new, so nothing of its own tells; one that lost its nodes itself is no such case."""
    cluster = one_node()
    made = cluster.gang("g-2", 1, 9)
    cluster.podgroups[-1] = replace(made, meta=replace(made.meta, created=NOW - 300))
    lost = NOW - 300 - after
    cluster.extra["history"] = {made.meta.uid: GangHistory(evictions=(lost - 1200, lost - 600, lost))}
    entry = explain(cluster, "team/g-2")
    assert (said(entry) == ("EVICTED", "EVICTION_LOOP")) is loop


# Binding and time


def waiting_condition(age: float) -> SchedulingCondition:
    return SchedulingCondition(
        "UnschedulableOnNodePool", "default", "True", message="Unable to schedule podgroup", since=NOW - age
    )


def test_new_gang_that_fits_will_start() -> None:
    cluster = one_node()
    cluster.gang("g", age=5)
    entry = explain(cluster)
    assert said(entry) == ("WILL_START", "FITS_NOW")
    assert entry.waiting.helps == "yes"
    assert entry.members.fit == entry.members.needed == 1


def test_gang_that_fits_and_was_looked_at_long_ago_is_stuck() -> None:
    cluster = one_node()
    cluster.gang("g", group={"scheduling_conditions": (waiting_condition(500),)})
    entry = explain(cluster)
    assert said(entry) == ("STUCK", "PLACEABLE_NOT_PLACED")
    assert entry.certainty == "proved"


def test_history_says_since_when_it_was_placeable() -> None:
    cluster = one_node()
    cluster.gang("g", group={"scheduling_conditions": (waiting_condition(500),)})
    cluster.extra["history"] = {"pg-team-g": GangHistory(placeable_since=NOW - 10)}
    assert said(explain(cluster)) == ("WILL_START", "FITS_NOW")


def scheduler(ready: int, *args: str) -> ObservedObject:
    container = {"name": "scheduler", "image": "ghcr.io/kai/kai-scheduler/scheduler:v0.17.0", "args": list(args)}
    facts = {"spec.replicas": 1, "status.readyReplicas": ready, "spec.template.spec.containers": [container]}
    return ObservedObject("apps/v1", "Deployment", Meta("kai-scheduler-default", "kai-scheduler"), facts)


def test_scheduler_that_is_down_is_named() -> None:
    cluster = one_node()
    cluster.gang("g", group={"scheduling_conditions": (waiting_condition(500),)})
    cluster.extra["objects"] = {"Deployment": (scheduler(0),)}
    entry = explain(cluster)
    assert said(entry) == ("STUCK", "SCHEDULER_DOWN")
    assert "kai-scheduler-default has 0 of 1 pods ready" in entry.sentence


def test_scheduler_of_another_shard_does_not_matter() -> None:
    cluster = one_node()
    cluster.gang("g", group={"scheduling_conditions": (waiting_condition(500),)})
    other = replace(scheduler(0, "--partition-label-value=night"), meta=Meta("kai-scheduler-night", "kai-scheduler"))
    cluster.extra["objects"] = {"Deployment": (scheduler(1), other)}
    assert said(explain(cluster)) == ("STUCK", "PLACEABLE_NOT_PLACED")


def bind_request(age: float, phase: str = "", **fields: object) -> BindRequest:
    return BindRequest(Meta("g-0", "team", created=NOW - age), "g-0", "n1", phase=phase, **fields)  # type: ignore[arg-type]


def test_binding_under_way_is_no_fault() -> None:
    cluster = one_node()
    cluster.gang("g")
    cluster.bind_requests.append(bind_request(3))
    entry = explain(cluster)
    assert said(entry) == ("WILL_START", "FITS_NOW")
    assert "assigned to n1" in entry.sentence


def test_binder_that_does_not_answer() -> None:
    cluster = one_node()
    cluster.gang("g")
    cluster.bind_requests.append(bind_request(300))
    entry = explain(cluster)
    assert said(entry) == ("STUCK", "BIND_FAILING")
    assert "has not answered" in entry.sentence


def test_reservation_pod_that_is_denied_is_named() -> None:
    cluster = one_node()
    cluster.gang("g", 1, 0.5)
    text = 'failed to create reservation pod: admission webhook "policy" denied the request: no privileged pods'
    cluster.bind_requests.append(bind_request(1, "Failed", failed_attempts=6, reason=text))
    entry = explain(cluster)
    assert said(entry) == ("STUCK", "HELPER_POD_REFUSED")
    assert "no privileged pods" in entry.sentence


def test_reservation_pod_that_the_kubelet_refused_is_named() -> None:
    cluster = one_node()
    cluster.gang("g", 1, 0.5)
    helper = {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
    cluster.pod("", 7, 0, on="n1", labels={"app": "kai-resource-reservation"}, fields=helper)
    cluster.bind_requests.append(bind_request(1, "Failed", failed_attempts=2, reason="timed out"))
    entry = explain(cluster)
    assert said(entry) == ("STUCK", "HELPER_POD_REFUSED")
    assert entry.sentence == (
        "Fits on n1, but the kubelet there refused KAI's pod pod-7 for the shared GPU (UnexpectedAdmissionError)."
    )


def graph_of_two_components(*, placed: bool) -> Cluster:
    """Return a graph whose frontend runs; its decode component is a gang of its own."""
    cluster = one_node()
    kind, above = (
        "DynamoComponentDeployment",
        OwnerRef("nvidia.com/v1", "DynamoGraphDeployment", "llm", "uid-llm", True),
    )
    parts = [
        ObservedObject("nvidia.com/v1", kind, Meta(name, "team", uid=f"uid-{name}", owners=(above,)))
        for name in ("frontend", "decode")
    ]
    graph = ObservedObject("nvidia.com/v1", "DynamoGraphDeployment", Meta("llm", "team", uid="uid-llm"))
    cluster.extra["objects"] = {kind: tuple(parts), "DynamoGraphDeployment": (graph,)}
    cluster.gang("g", 1, 1, on=["n1"])
    cluster.gang("decode", 1, 4 if placed else 16, on=["n1"] if placed else [])
    for index, part in enumerate(parts):
        group = cluster.podgroups[index]
        owner = OwnerRef("nvidia.com/v1", kind, part.meta.name, part.meta.uid, True)
        cluster.podgroups[index] = replace(group, meta=replace(group.meta, owners=(owner,)))
    return cluster


def test_component_that_waits_as_a_whole_makes_its_graph_useless() -> None:
    entry = explain(graph_of_two_components(placed=False))
    assert said(entry) == ("PARTIAL", "SIBLING_GANG_WAITS")
    assert "component decode has no gang placed" in entry.sentence
    assert explain(graph_of_two_components(placed=True)).verdict != "PARTIAL"


def test_bind_that_fails_each_time_is_a_loop() -> None:
    cluster = one_node()
    cluster.gang("g")
    cluster.bind_requests.append(bind_request(1, "Failed", failed_attempts=6, reason="no reservation pod"))
    entry = explain(cluster)
    assert said(entry) == ("STUCK", "BIND_LOOP")
    assert "6 times" in entry.sentence


# Placed


@pytest.mark.parametrize(
    "state, code",
    [
        (ContainerState("main", state="waiting", reason="ImagePullBackOff"), "IMAGE_PULL"),
        (ContainerState("main", state="waiting", reason="CrashLoopBackOff", restarts=5), "CRASH_LOOP"),
        (ContainerState("main", state="waiting", reason="CreateContainerConfigError"), "CONTAINER_START"),
        (ContainerState("init", role="init", state="running"), "INIT_CONTAINER"),
        (ContainerState("main", state="running"), "PROBE_FAILING"),
    ],
)
def test_bound_pod_that_is_not_ready(state: ContainerState, code: str) -> None:
    cluster = one_node()
    cluster.gang("g", on=["n1"], pod={"container_states": (state,), "conditions": (Condition("Ready", "False"),)})
    assert said(explain(cluster)) == ("STARTING", code)


READY = {"conditions": (Condition("Ready", "True"),)}


def test_running_gang_is_healthy_and_a_left_over_condition_is_stale() -> None:
    cluster = one_node()
    cluster.gang("g", on=["n1"], pod=READY)
    assert said(explain(cluster)) == ("HEALTHY", "RUNNING")
    cluster.podgroups[-1] = replace(cluster.podgroups[-1], scheduling_conditions=(waiting_condition(500),))
    entry = explain(cluster)
    assert said(entry) == ("HEALTHY", "STATUS_STALE")
    assert entry.scheduler.match == "stale"


def test_gang_below_its_minimum_is_partial() -> None:
    cluster = one_node()
    cluster.gang("g", 1, minimum=2, on=["n1"], pod=READY)
    entry = explain(cluster)
    assert said(entry) == ("PARTIAL", "BELOW_MINIMUM")
    assert entry.sentence.startswith("1 of 2 required pods runs")


def test_use_above_a_limit_is_told_of_the_gang_that_passed_it() -> None:
    cluster = one_node()
    cluster.queue("q", 4, 4)
    cluster.gang("first", 1, 3, on=["n1"], pod=READY, age=900)
    cluster.gang("g", 1, 3, on=["n1"], pod=READY, age=60)
    entry = explain(cluster)
    assert said(entry) == ("VIOLATED", "LIMIT_EXCEEDED")
    assert "uses 6 GPUs of 4" in entry.sentence
    assert said(explain(cluster, "team/first")) == ("HEALTHY", "RUNNING")


def test_gang_spread_over_two_racks_against_its_rule() -> None:
    cluster = Cluster()
    cluster.racks({"r1": {"n1": 8}, "r2": {"n2": 8}})
    cluster.gang("g", 2, 8, on=["n1", "n2"], pod=READY, topology=TopologyConstraint("topo", required_level=RACK))
    entry = explain(cluster)
    assert said(entry) == ("VIOLATED", "TOPOLOGY_NOT_KEPT")
    assert "r1 and r2" in entry.sentence


# Without a PodGroup


def test_mistyped_scheduler_is_a_near_miss() -> None:
    cluster = one_node()
    cluster.pod("", 0, scheduler="kai-shceduler")
    entry = explain(cluster, "team/pod-0")
    assert said(entry) == ("CONFIG", "WRONG_SCHEDULER")
    assert entry.gang.kind == "Pod"


def test_pod_for_kai_without_a_podgroup() -> None:
    cluster = one_node()
    cluster.pod("", 0)
    assert said(explain(cluster, "team/pod-0")) == ("CONFIG", "NO_PODGROUP")


def test_pod_that_names_a_podgroup_that_is_gone() -> None:
    cluster = one_node()
    cluster.pod("gone", 0)
    entry = explain(cluster, "team/gone-0")
    assert said(entry) == ("CONFIG", "NO_PODGROUP")
    assert "gone, which does not exist" in entry.sentence


def test_each_shard_explains_its_own_gangs() -> None:
    cluster = one_node()
    pool = {"kai.scheduler/node-pool": "night"}
    night = Shard(
        "night", config=replace(cluster.config, params=replace(cluster.config.params, node_pool_label_value="night"))
    )
    made = cluster.gang("g")
    cluster.podgroups[-1] = replace(made, meta=replace(made.meta, labels=pool))
    cluster.extra["shards"] = (Shard(), night)
    entry = explain(cluster)
    assert entry.shard == "night"
    assert said(entry) == ("CONFIG", "QUEUE_MISSING")


def test_priority_class_that_does_not_exist_is_told_beside_the_cause() -> None:
    cluster = one_node()
    cluster.queue("q", limit=4)
    cluster.gang("g", pods=2, gpus=4, kind="gold")
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "QUEUE_LIMIT")
    beside = [item for item in entry.also if item.code == "PRIORITY_CLASS_MISSING"]
    assert [item.sentence for item in beside] == [
        "PriorityClass gold does not exist; the gang runs with the default priority 50."
    ]
