"""What recordings of real controllers showed, each a trap for whoever believes a field: none is walked into here."""

from __future__ import annotations

from apps.checks.rules import run
from gangdash.engine.chain import Chain, gang_standing_of, remarks_of, standing_of
from gangdash.replay import replay
from tests.chain import world as w
from tests.chain.test_explained import _explained, _said
from tests.chain.test_standing import _scaled


def _chain(*objects: w.Object) -> Chain:
    return Chain(w.snapshot(*objects))


def test_podgang_phase_pending_of_a_running_gang_is_no_wait() -> None:
    objects = w.served()
    assert objects[3]["status"]["phase"] == "Pending"

    assert _explained(*objects, name="team/pg-llm-0").verdict == "HEALTHY"


def test_gate_counts_of_a_clique_are_not_believed() -> None:
    """Pods whose gate went away and that wait still count as gated there."""
    objects = w.served(nodes=("", ""), ready=False)
    objects[2]["status"] = {"replicas": 2, "scheduleGatedReplicas": 2, "scheduledReplicas": 0}
    chain = _chain(*objects)

    assert gang_standing_of(chain, chain.objects("PodGang")[0]) is None
    assert _explained(*objects, name="team/pg-llm-0").verdict not in {"GATED", "STARTING"}


def test_names_of_scaled_gangs_do_not_match_their_cliques() -> None:
    """Replica 1 of a scaling group with one replica at least is gang ...-workers-0."""
    group_spec = {"replicas": 2, "minAvailable": 1, "cliqueNames": ["decode"]}
    under = w.clique_set(groups=({"name": "workers", "cliqueNames": ["decode"], "replicas": 2},))
    group = w.thing("grove.io/v1alpha1", "PodCliqueScalingGroup", "llm-0-workers", owner=under, spec=group_spec)
    base = w.clique(group, "llm-0-workers-0-decode", gang="llm-0")
    extra = w.clique(group, "llm-0-workers-1-decode", gang="llm-0-workers-0")
    gangs = [
        w.gang(under, "llm-0", cliques=("llm-0-workers-0-decode",)),
        w.gang(under, "llm-0-workers-0", cliques=("llm-0-workers-1-decode",)),
    ]
    label = {"grove.io/base-podgang": "llm-0"}
    pods = [w.pod(base, f"llm-0-workers-0-decode-{i}", node="n1", ready=True, group="pg-llm-0") for i in (0, 1)]
    pods += [
        w.pod(extra, f"llm-0-workers-1-decode-{i}", gang="llm-0-workers-0", gates=(w.GATE,), labels=dict(label))
        for i in (0, 1)
    ]
    chain = _chain(under, group, base, extra, *gangs, w.podgroup(gangs[0]), *pods)
    scaled = chain.object("PodGang", "team", "llm-0-workers-0")

    assert scaled is not None
    assert [pod.meta.name for pod in chain.members(scaled)] == ["llm-0-workers-1-decode-0", "llm-0-workers-1-decode-1"]
    assert chain.base_names(scaled) == ["llm-0"]


def test_breached_is_the_bad_state_and_says_nothing_of_a_gang_that_runs() -> None:
    objects = w.served()
    objects[2]["status"]["conditions"] = [w.condition("MinAvailableBreached", "True", "InsufficientReadyPods")]
    chain = _chain(*objects)

    assert standing_of(chain, chain.tops()[0]) is None
    assert remarks_of(chain, chain.tops()[0]) == []


def test_set_without_a_ready_condition_is_not_failed() -> None:
    """A PodCliqueSet's only condition may be one that is good when False."""
    objects = w.served()[1:]
    objects[0]["metadata"].pop("ownerReferences")
    objects[0]["status"] = {"conditions": [w.condition("TopologyLevelsUnavailable", "False", "All")]}
    chain = _chain(*objects)

    assert [top.kind for top in chain.tops()] == ["PodCliqueSet"]
    assert standing_of(chain, chain.tops()[0]) is None


def test_eviction_without_an_event_is_read_from_the_annotation() -> None:
    """PodGroup events end at 25, so an eviction may leave no Evict event."""
    group = w.podgroup(None, "late", notes={"kai.scheduler/last-eviction-timestamp": w.ago(60)})
    pods = [w.pod(None, f"late-{i}", gang="", group="late", age=50) for i in (0, 1)]
    for item in pods:
        item["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "99"}}
    found = _explained(group, *pods, name="team/late")

    assert found.verdict == "EVICTED"


def test_clique_status_lags_behind_binding() -> None:
    """Workers that sit in their init container still look unscheduled in their clique."""
    objects = w.served(ready=False)
    objects[2]["status"] = {"replicas": 2, "scheduledReplicas": 0, "scheduleGatedReplicas": 2}
    objects[2]["status"]["conditions"] = [
        w.condition("PodCliqueScheduled", "False", "InsufficientScheduledPods"),
        w.condition("MinAvailableBreached", "True", "InsufficientScheduledPods"),
    ]

    assert _explained(*objects, name="team/pg-llm-0").verdict in {"STARTING", "HEALTHY"}


def test_skip_annotation_on_a_podgang_is_no_sign_of_a_missing_podgroup() -> None:
    """It comes and goes while the gang is being built, and Grove makes the PodGroup itself."""
    objects = w.served()
    objects[3]["metadata"]["annotations"]["kai.scheduler/skip-podgrouper"] = "true"

    assert replay(w.snapshot(*objects), gang="team/pg-llm-0").explanations[0].code == "RUNNING"


def test_missing_children_of_the_first_seconds_are_no_fault() -> None:
    """The first children of a set appear 5 s after it."""
    found = _explained(w.clique_set(age=4))

    assert _said(found) == ("GATED", "UPSTREAM_STAGE", "S5")


def test_missing_lease_proves_nothing() -> None:
    """The scheduler has one only where it has more than one replica."""
    scheduler = w.deployment("kai-scheduler-default", "kai-scheduler")
    found = _explained(*w.served(), scheduler, name="team/pg-llm-0", read=(*w.ALL_READ, "Lease"))

    assert found.verdict == "HEALTHY"


def _bind_request(pod: w.Object, **status: object) -> w.Object:
    spec = {"podName": pod["metadata"]["name"], "selectedNode": "n1"}
    made = w.thing("scheduling.run.ai/v1alpha2", "BindRequest", pod["metadata"]["name"], owner=pod, spec=spec)
    made["status"] = dict(status)
    return made


def test_binding_error_of_a_pod_that_is_bound_is_a_false_alarm() -> None:
    """The binder tried twice: the request succeeded and still carries the first error."""
    objects = w.served()
    request = _bind_request(objects[-1], phase="Succeeded", reason="pod is already assigned to node")
    told = w.event(objects[-1], "BindingError", "already assigned to node")

    assert _explained(*objects, request, told, name="team/pg-llm-0").verdict == "HEALTHY"


def test_pod_grouper_warns_of_pods_in_good_order() -> None:
    objects = w.served()
    told = w.event(objects[-1], "PodGrouperWarning", 'podgroups.scheduling.run.ai "pg-llm-0" already exists')

    assert _explained(*objects, told, name="team/pg-llm-0").verdict == "HEALTHY"


def test_condition_that_outlives_its_cause_is_not_the_state() -> None:
    """It stays for a cycle after binding, and for ever while the scheduler is down."""
    objects = w.served()
    stale = {"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "reason": "Unschedulable"}
    objects[4]["status"] = {"schedulingConditions": [stale | {"message": "no nodes", "lastTransitionTime": w.ago(300)}]}

    assert _explained(*objects, name="team/pg-llm-0").verdict == "HEALTHY"


def test_priority_class_that_does_not_exist_is_accepted_in_silence() -> None:
    objects = w.served()
    objects[4]["spec"]["priorityClassName"] = "no-such-class"
    found = _explained(*objects, name="team/pg-llm-0", read=(*w.ALL_READ, "PriorityClass"))

    assert found.verdict == "HEALTHY", "the gang runs"


def test_event_texts_that_name_subgroups_in_any_order_are_one_cause() -> None:
    """A gang with too few pods gets no condition, only NotReady events whose text keeps changing."""
    group = w.podgroup(None, "short", spec={"minMember": 3})
    pods = [w.pod(None, f"short-{i}", gang="", group="short") for i in (0, 1)]
    told = w.event(group, "NotReady", "Waiting for 3 pods, currently 2 exist, 0 are gated")
    found = _explained(group, *pods, told, name="team/short")

    assert _said(found) == ("GATED", "MEMBERS_MISSING", "S8")


def test_foreign_objects_have_no_status_at_all() -> None:
    """SchedulingShard and Topology have none while no operator runs, a queue before its first pod."""
    shard = w.thing("kai.scheduler/v1", "SchedulingShard", "default", namespace="")
    levels = {"levels": [{"nodeLabel": "rack"}]}
    topology = w.thing("kai.scheduler/v1alpha1", "Topology", "t", namespace="", spec=levels)
    for item in (shard, topology):
        del item["status"]
    snapshot = w.snapshot(*w.served(), shard, topology, read=(*w.ALL_READ, "SchedulingShard", "Topology"))

    assert snapshot.oddities == ()


def test_pods_of_grove_carry_no_queue_and_need_none() -> None:
    """The queue comes from the label of the set, and is in the PodGroup."""
    objects = w.served(nodes=("", ""), ready=False)
    assert all("kai.scheduler/queue" not in item["metadata"]["labels"] for item in objects if item["kind"] == "Pod")
    assert _explained(*objects, name="team/pg-llm-0").verdict not in {"CONFIG", "NO_VERDICT"}


def test_scaled_gang_waits_without_an_event_or_a_condition() -> None:
    """Its pods say SchedulingGated and nothing else; its PodGroup has neither."""
    objects = _scaled(base_nodes=0)
    group = w.podgroup(next(item for item in objects if item["metadata"]["name"] == "llm-0-x"), "pg-x")
    for item in objects:
        if item["metadata"]["name"].startswith("llm-0-extra-"):
            item["metadata"]["annotations"]["pod-group-name"] = "pg-x"
            item["status"]["conditions"] = [w.condition("PodScheduled", "False", "SchedulingGated")]
    found = _explained(*objects, group, name="team/pg-x")

    assert _said(found) == ("GATED", "WAITS_FOR_BASE_GANG", "S10")


def test_topology_binding_is_good_when_its_condition_is_false() -> None:
    levels = {"levels": [{"domain": "rack", "key": "rack"}]}
    binding = w.thing("grove.io/v1alpha1", "ClusterTopologyBinding", "t", namespace="", spec=levels)
    binding["status"] = {"conditions": [w.condition("SchedulerTopologyDrift", "False", "InSync")]}
    topology = w.thing("kai.scheduler/v1alpha1", "Topology", "t", namespace="")
    topology["spec"] = {"levels": [{"nodeLabel": "rack"}]}
    read = (*w.ALL_READ, "ClusterTopologyBinding", "Topology")
    outcomes = {check.id: outcome for check, outcome in run(w.snapshot(binding, topology, read=read))}

    assert outcomes["V6"].state == "pass"


def test_gang_without_a_priority_class_has_none() -> None:
    """Grove sets none unless the set names one."""
    objects = w.served()
    assert "priorityClassName" not in objects[4]["spec"]
    assert _explained(*objects, name="team/pg-llm-0", read=(*w.ALL_READ, "PriorityClass")).verdict == "HEALTHY"
