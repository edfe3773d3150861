"""What recordings of the real scheduler, binder and API server showed of states, events and times, one test a fact."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from apps.collector.attempts import progress_of
from apps.collector.packing import packed
from apps.collector.rows import found_rows
from gangdash.documents import ExplanationDocument
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.snapshot.archive import load_bytes, snapshot_of
from tests.chain import world as w
from tests.chain.test_explained import _explained, _said, _unlimited

SCENES = Path(__file__).parents[1] / "scenes"
GROUP = "team/g"
SEVERAL = (*w.ALL_READ, "BindRequest")


def recorded(scene: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress((SCENES / f"{scene}.json.gz").read_bytes()))
    return content


def opened(content: dict[str, Any]) -> ClusterSnapshot:
    return snapshot_of(load_bytes(json.dumps(content).encode(), name="scene.json"))


def gang(*, pods: int = 2, least: int = 2, nodes: tuple[str, ...] = (), cpu: str = "1", **more: Any) -> list[w.Object]:
    """Return a PodGroup of plain pods; the first have nodes."""
    group = w.podgroup(None, "g", spec={"minMember": least}, **more)
    members = [
        w.pod(None, f"g-{i}", gang="", group="g", node=nodes[i] if i < len(nodes) else "", ready=i < len(nodes))
        for i in range(pods)
    ]
    for member in members:
        member["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return [group, *members]


def unschedulable(message: str = "not enough", age: int = 300, **reasons: Any) -> w.Object:
    condition = {"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "reason": "Unschedulable"}
    return {"schedulingConditions": [{**condition, "message": message, "lastTransitionTime": w.ago(age), **reasons}]}


def explained(*objects: w.Object, **more: Any) -> ExplanationDocument:
    return _explained(*objects, name=GROUP, **more)


def request(pod: w.Object, *, age: int = 60, status: w.Object | None = None) -> w.Object:
    meta, spec = pod["metadata"], {"podName": pod["metadata"]["name"], "selectedNode": "n1"}
    made = w.thing("scheduling.run.ai/v1alpha2", "BindRequest", meta["name"], owner=pod, age=age, spec=spec)
    if status is None:
        del made["status"]
    else:
        made["status"] = status
    return made


# Where state is, and is not


@pytest.mark.parametrize("scene, name", [("a-gang-bound", "GangBound"), ("b-gang-pending-gpus", "")])
def test_podgroup_has_no_phase_and_needs_none(scene: str, name: str) -> None:
    groups = [item for item in recorded(scene)["items"] if item["kind"] == "PodGroup"]
    assert all("phase" not in (group.get("status") or {}) for group in groups)
    assert {gang.is_running for gang in (found_rows(opened(recorded(scene))).gangs or {}).values()} >= {True}


def test_status_left_empty_by_an_eviction_is_no_running_gang() -> None:
    found = explained(*gang(cpu="99", status={"resourcesStatus": {}}))
    assert found.verdict == "NO_FIT"


def test_queue_status_changes_its_order_without_a_change() -> None:
    """``childQueues`` comes in another order with each update: the content of a reading stays the same."""
    content, keys = recorded("b-gang-pending-gpus"), set()
    for order in (["team-a", "team-b"], ["team-b", "team-a"]):
        for item in content["items"]:
            if item["kind"] == "Queue" and "childQueues" in (item.get("status") or {}):
                item["status"]["childQueues"] = order
        reading = load_bytes(json.dumps(content).encode(), name="a")
        keys.add(packed(reading, snapshot_of(reading)).key)
    assert any("childQueues" in (item.get("status") or {}) for item in content["items"])
    assert len(keys) == 1


def test_queue_without_a_status_or_with_an_empty_one_is_read() -> None:
    """It has none before its first pod and {} after its last."""
    queues = [w.thing("scheduling.run.ai/v2", "Queue", name, namespace="", spec={}) for name in ("a", "b")]
    del queues[0]["status"]
    snapshot = w.snapshot(*queues)
    assert ({queue.name for queue in snapshot.queues}, snapshot.oddities) == ({"a", "b"}, ())


def test_bind_request_that_stays_after_binding_is_no_binding_under_way() -> None:
    objects = gang(nodes=("n1", "n2"))
    made = [request(pod, age=3000, status={"phase": "Succeeded"}) for pod in objects[1:]]
    assert explained(*objects, *made, read=SEVERAL).verdict == "HEALTHY"


def test_pod_without_a_queue_label_waits_for_the_default_queue() -> None:
    objects = gang()
    objects[0]["spec"]["queue"] = "default-queue"
    found = explained(*objects)
    assert _said(found) == ("CONFIG", "QUEUE_MISSING", "S17")
    assert "default-queue" in found.sentence


def test_bound_in_a_condition_or_event_is_not_bound_without_a_node() -> None:
    """A failed bind that is tried again still sets PodBound to True and sends Bound."""
    objects = gang(cpu="99")
    for pod in objects[1:]:
        pod["status"]["conditions"] = [w.condition("PodBound", "True", "Bound", age=1)]
    told = [w.event(pod, "Bound", "Pod bound successfully to node n1", age=1) for pod in objects[1:]]
    found = explained(*objects, *told)
    assert found.verdict not in {"HEALTHY", "STARTING"}
    assert all(not pod.node for pod in (found_rows(w.snapshot(*objects)).pods or {}).values())


def test_scheduled_event_comes_before_the_pod_is_bound() -> None:
    objects = gang()
    told = [w.event(pod, "Scheduled", "assigned", age=1) for pod in objects[1:]]
    progress = progress_of(w.snapshot(*objects, *told))["PodGroup-g"]
    assert (progress.decided_at, progress.bound_at) == (None, None)


# Conditions


def test_waiting_since_is_not_the_time_of_a_condition() -> None:
    """Its transition time moves with each change of the message."""
    found = explained(*gang(cpu="99", age=3600, status=unschedulable(age=5)))
    assert found.waiting_since is not None
    assert found.waiting_since < w.ago(400)


def test_an_old_condition_of_a_gang_that_waits_is_still_true() -> None:
    """An unchanged message is never refreshed: its age says nothing about it."""
    found = explained(*gang(cpu="99", status=unschedulable(age=500)))
    assert found.verdict == "NO_FIT"
    assert found.scheduler.match != "stale"


def test_pods_of_one_gang_say_different_things_of_one_cause() -> None:
    objects = gang(pods=3, least=3, cpu="99", status=unschedulable())
    for number, pod in enumerate(objects[1:]):
        pod["status"]["conditions"] = [w.condition("PodScheduled", "False", "Unschedulable", f"text {number}")]
    found = explained(*objects)
    assert (found.verdict, found.members.needed) == ("NO_FIT", 3)


def test_text_of_the_scheduler_is_kept_with_its_line_breaks() -> None:
    text = "Unable to schedule podgroup: 2 node-group(s) didn't have enough resources: GPUs. \ntopology t, .."
    assert explained(*gang(cpu="99", status=unschedulable(text))).scheduler.text == text


def test_queue_is_known_by_its_display_name_in_messages() -> None:
    """Quota messages use the displayName where there is one, details the name."""
    limit = {name: {"quota": 0, "limit": 1000, "overQuotaWeight": 1} for name in ("cpu",)}
    spec = {"parentQueue": "top", "displayName": "Team A", "resources": {**_unlimited(), **limit}}
    capped = w.thing("scheduling.run.ai/v2", "Queue", "capped", namespace="", spec=spec)
    text = "OverLimit: team-a quota has reached the allowable limit of CPU cores. Limit is 1, currently 0 allocated"
    objects = gang(
        status=unschedulable(text.replace("team-a", "Team A"), reasons=[{"reason": "OverLimit", "message": text}])
    )
    objects[0]["spec"]["queue"] = "capped"
    found = explained(capped, *objects)
    assert (found.verdict, found.code) == ("POLICY", "QUEUE_LIMIT")
    assert found.scheduler.match in {"agree", "less_specific"}


def test_unlimited_in_the_details_of_a_condition_is_no_amount() -> None:
    """There -1 appears as cpu "-1m", memory "-1" and GPU "0"."""
    limits = {"cpu": "-1m", "memory": "-1", "nvidia.com/gpu": "0"}
    details = {"queueDetails": {"name": "q", "queueResourceLimits": limits}}
    reasons = [{"reason": "PodSchedulingErrors", "message": "no nodes", "details": details}]
    snapshot = w.snapshot(*gang(cpu="99", status=unschedulable(reasons=reasons)))
    assert snapshot.oddities == ()


def test_delay_that_is_over_is_not_waited_for() -> None:
    """The second reason stays in the condition after its time, and while victims go."""
    reasons = [
        {"reason": "PodSchedulingErrors", "message": "no nodes"},
        {"reason": "PreemptionDelayNotElapsed", "message": f"preemption delay ends at {w.ago(200)}"},
    ]
    assert explained(*gang(cpu="99", status=unschedulable(reasons=reasons))).code != "PREEMPTION_DELAY"


# Events


def test_events_that_stand_still_at_25_are_no_silent_scheduler() -> None:
    """The client's spam filter ends them 25 s after the start; the gang goes on waiting."""
    objects = gang(cpu="99", age=3600, status=unschedulable(age=3500))
    told = w.event(objects[0], "Unschedulable", "not enough", age=3400)
    told["count"], told["type"] = 25, "Normal"
    found = explained(*objects, told)
    assert found.verdict == "NO_FIT"


def test_one_eviction_told_by_two_schedulers_is_one() -> None:
    """A restart makes new Event objects beside the old ones for the same cause."""
    objects = gang(cpu="99")
    text = "Pod team/g-0 was preempted by workload other/w."
    told = [w.event(objects[0], "Evict", text, age=60), w.event(objects[0], "Evict", text, age=60)]
    told[1]["metadata"]["name"] = "another"
    found = explained(*objects, *told)
    assert (found.verdict, found.code) == ("EVICTED", "RECLAIMED"), "the word preempted is used for reclaim too"


def test_event_without_event_time_and_series_is_read() -> None:
    told = w.event(gang()[0], "NotReady", "x")
    told |= {"eventTime": None, "reportingComponent": "", "reportingInstance": "", "series": None}
    snapshot = w.snapshot(told)
    assert (len(snapshot.events), snapshot.oddities) == (1, ())


def test_repeated_evictions_of_pods_whose_names_recur_are_one_event_with_a_count() -> None:
    objects = gang(cpu="99")
    told = w.event(objects[0], "Evict", "Pod team/g-0 was preempted by workload other/w.", age=30)
    told |= {"count": 4, "firstTimestamp": w.ago(500)}
    assert explained(*objects, told).code == "EVICTION_LOOP"


# Order and times


def test_gang_that_is_being_bound_pod_by_pod_is_not_partly_placed() -> None:
    objects = gang(pods=3, least=3, nodes=("n1",), age=2)
    objects[1]["status"]["conditions"] = [w.condition("PodScheduled", "True", age=1)]
    waiting = [request(pod, age=1, status={"phase": "Pending"}) for pod in objects[2:]]
    assert explained(*objects, *waiting, read=SEVERAL).verdict != "PARTIAL"


def test_victims_hold_their_nodes_until_they_are_gone() -> None:
    """They have a deletion time in the future, still run and are still counted."""
    snapshot = opened(recorded("e-reclaim-evicting"))
    leaving = [pod for pod in snapshot.pods if pod.meta.deleted is not None]
    assert leaving
    rows = found_rows(snapshot).pods or {}
    assert all(rows[pod.meta.uid].is_terminating and rows[pod.meta.uid].node for pod in leaving)
    assert all(pod.phase == "Running" for pod in leaving)


def test_gang_whose_job_makes_new_pods_after_its_back_off_is_evicted_and_not_empty() -> None:
    """For 15 s the PodGroup has no pod."""
    found = explained(*gang(pods=0, notes={"kai.scheduler/last-eviction-timestamp": w.ago(10)}))
    assert (found.verdict, found.code) == ("EVICTED", "RECLAIMED")


def test_stale_gang_keeps_its_nodes_for_its_grace() -> None:
    """The annotation is there 0.4 s after a pod is gone; eviction comes 60 s after it."""
    notes = {"kai.scheduler/stale-podgroup-timestamp": w.ago(10)}
    found = explained(*gang(pods=1, least=2, nodes=("n1",), notes=notes))
    assert (found.verdict, found.code) == ("PARTIAL", "BELOW_MINIMUM")


# Binding


def test_bind_loop_is_told_by_its_errors_and_not_by_the_age_of_the_request() -> None:
    """The request is remade each second, so it is always young."""
    objects = gang()
    made = [request(pod, age=1, status={"phase": "Failed", "reason": "no such device"}) for pod in objects[1:]]
    told = [
        w.event(pod, "BindingError", "(combined from similar events): no such device", age=5) for pod in objects[1:]
    ]
    for event in told:
        event["count"] = 25
    assert explained(*objects, *made, *told, read=SEVERAL).code == "BIND_LOOP"


def test_bind_request_without_a_status_is_a_binder_that_does_not_answer() -> None:
    objects = gang(age=700)
    made = [request(pod, age=300) for pod in objects[1:]]
    found = explained(*objects, *made, read=SEVERAL)
    assert found.verdict == "STUCK"
    assert "binder" in found.sentence.lower()


def test_node_that_holds_more_than_it_has_is_full_and_not_below_zero() -> None:
    """Once a pod was bound with another's GPU group: nine GPUs on a node of eight."""
    node = w.thing("v1", "Node", "n9", namespace="")
    amounts = {"cpu": "8", "pods": "110", "nvidia.com/gpu": "8"}
    node["status"] = {"allocatable": amounts, "capacity": amounts, "conditions": [w.condition("Ready", "True")]}
    pods = [w.pod(None, f"p{i}", gang="", node="n9", ready=True) for i in range(9)]
    for pod in pods:
        pod["spec"]["containers"][0]["resources"] = {"requests": {"nvidia.com/gpu": "1"}}
    row = (found_rows(w.snapshot(node, *pods)).nodes or {})["n9"]
    assert (row.gpus, row.gpus_used, row.gpus_free, row.gpus_lost) == (8, 9, 0, 0)


# Set-up


def test_queue_without_its_parent_exists_though_the_scheduler_says_not() -> None:
    orphan = w.thing("scheduling.run.ai/v2", "Queue", "lone", namespace="", spec={"parentQueue": "gone"})
    orphan["spec"]["resources"] = _unlimited()
    objects = gang(
        status=unschedulable(reasons=[{"reason": "QueueDoesNotExist", "message": "Queue 'lone' does not exist"}])
    )
    objects[0]["spec"]["queue"] = "lone"
    assert explained(orphan, *objects).code == "QUEUE_ORPHANED"


def test_queue_that_is_no_leaf_is_told_without_any_reason_in_the_condition() -> None:
    objects = gang(status=unschedulable("Unable to schedule podgroup"))
    objects[0]["spec"]["queue"] = "top"
    assert explained(*objects).code == "QUEUE_NOT_LEAF"


def test_missing_parent_of_a_subgroup_is_told_though_the_pod_names_another() -> None:
    spec = {"minMember": 2, "subGroups": [{"name": "a", "minMember": 2, "parent": "nowhere"}]}
    objects = gang()
    objects[0]["spec"] |= spec
    for pod in objects[1:]:
        pod["metadata"]["labels"]["kai.scheduler/subgroup-name"] = "a"
        text = "subgroup a does not exist"
        pod["status"]["conditions"] = [w.condition("PodScheduled", "False", "Unschedulable", text)]
    found = explained(*objects)
    assert found.code == "SUBGROUP_TREE_INVALID"
    assert "nowhere" in found.sentence


def test_node_pool_without_a_shard_leaves_no_trace_but_its_label() -> None:
    """No condition and no event: the pods stay as they were made."""
    objects = gang(labels={"kai.scheduler/node-pool": "lost"})
    for pod in objects[1:]:
        pod["metadata"]["labels"]["kai.scheduler/node-pool"] = "lost"
    shard = w.thing("kai.scheduler/v1", "SchedulingShard", "default", namespace="")
    assert explained(shard, *objects, read=(*w.ALL_READ, "SchedulingShard")).code == "NOT_IN_SHARD"


def test_only_extra_pods_wait_and_the_podgroup_says_nothing() -> None:
    """A PodGroup with any allocated pod never gets a condition; the extra pod has only its own."""
    objects = gang(pods=3, least=2, nodes=("n1", "n2"))
    objects[3]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "99"}}
    objects[3]["status"]["conditions"] = [w.condition("PodScheduled", "False", "Unschedulable", "no nodes")]
    assert explained(*objects).stage == "S26"
