"""What is remembered: steps of gangs over attempts, changes of nodes and parts, samples of shares and capacity."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from apps.accounts.models import User
from apps.accounts.scope import scope_of
from apps.clusters.models import Cluster
from apps.diagnosis import tasks
from apps.inventory.models import CapacitySample, Queue, StateChange
from apps.workloads.models import Attempt, Gang
from apps.workloads.selectors import LOOP_TIMES, attempt_list, loop_list
from tests.apps import raw
from tests.apps.diagnosis.conftest import NOW, Store
from tests.apps.raw import Object


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def stamp(minutes: float) -> str:
    return at(minutes).strftime("%Y-%m-%dT%H:%M:%SZ")


def placed(pod: Object, *, bound: float, ready: float | None = None) -> Object:
    """Put a pod on a node, with the times at which it was bound and became ready."""
    pod["spec"]["nodeName"] = "n1"
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(bound)}]
    if ready is not None:
        conditions.append({"type": "Ready", "status": "True", "lastTransitionTime": stamp(ready)})
    pod["status"] |= {"conditions": conditions, "phase": "Running" if ready is not None else "Pending"}
    return pod


def two(minimum: int = 2) -> tuple[Object, Object, Object]:
    return raw.podgroup("g", minimum=minimum), raw.pod("g-0", "g"), raw.pod("g-1", "g")


def test_each_step_of_an_attempt_keeps_the_time_it_was_first_made(east: Cluster, store: Store) -> None:
    group, first, second = two()
    first["spec"]["schedulingGates"] = [{"name": "grove.io/podgang-pending-creation"}]
    store(raw.cluster(group, first, second), at(0))
    first["spec"]["schedulingGates"] = []
    store(raw.cluster(group, first, second), at(1))
    store(raw.cluster(group, placed(first, bound=1.5), second), at(2))
    store(raw.cluster(group, first, placed(second, bound=2.5)), at(3))
    store(raw.cluster(group, placed(first, bound=1.5, ready=4), placed(second, bound=2.5, ready=4.5)), at(5))
    found = Attempt.objects.get()
    assert found.created_at is not None
    assert found.created_at.isoformat() == "2026-11-30T08:00:00+00:00"
    steps = (found.seen_at, found.gated_at, found.gates_removed_at, found.decided_at, found.bound_at, found.ready_at)
    assert steps == tuple(at(minute) for minute in (0, 0, 1, 1.5, 2.5, 4.5))
    assert (found.evictions, found.ended_at, found.number) == (0, None, 1)


def test_a_gang_that_never_had_gates_has_none_removed(east: Cluster, store: Store) -> None:
    store(raw.cluster(*two()), at(0))
    found = Attempt.objects.get()
    assert (found.gated_at, found.gates_removed_at, found.decided_at, found.bound_at) == (None, None, None, None)


def test_falling_below_the_minimum_is_an_eviction_and_counts_once(east: Cluster, store: Store) -> None:
    group, first, second = two()
    runs = placed(first, bound=0, ready=0), placed(second, bound=0, ready=0)
    for minute, pods in ((0, runs), (1, (runs[0], raw.pod("g-1", "g"))), (2, (raw.pod("g-0", "g"),)), (3, runs)):
        store(raw.cluster(group, *pods), at(minute))
    found = Attempt.objects.get()
    assert (found.evictions, found.evicted_at, found.is_bound) == (1, at(1), True)


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_pods_that_end_by_themselves_are_no_eviction(east: Cluster, store: Store, end: str) -> None:
    group, first, second = two()
    store(raw.cluster(group, placed(first, bound=0, ready=0), placed(second, bound=0, ready=0)), at(0))
    second["status"]["phase"] = end
    store(raw.cluster(group, first, second), at(1))
    assert Attempt.objects.get().evictions == 0


def test_a_gang_that_its_owner_deletes_was_not_evicted(east: Cluster, store: Store) -> None:
    group, first, second = two()
    store(raw.cluster(group, placed(first, bound=0, ready=0), placed(second, bound=0, ready=0)), at(0))
    for item in (group, first, second):
        item["metadata"]["deletionTimestamp"] = stamp(1)
    store(raw.cluster(group, first, second), at(1))
    store(raw.cluster(), at(2))
    found = Attempt.objects.get()
    assert (found.evictions, found.ended_at) == (0, at(2))


def test_a_gang_made_anew_is_the_next_attempt(east: Cluster, store: Store) -> None:
    store(raw.cluster(raw.podgroup("g", uid="one")), at(0))
    store(raw.cluster(raw.podgroup("g", uid="two"), raw.podgroup("other")), at(1))
    store(raw.cluster(raw.podgroup("g", uid="three")), at(2))
    newest = Gang.objects.get(uid="three")
    assert [(a.gang.uid, a.number, a.ended_at) for a in attempt_list(gang=newest)] == [
        ("one", 1, at(1)), ("two", 2, at(2)), ("three", 3, None),
    ]  # fmt: skip


def test_a_reading_without_podgroups_ends_no_attempt(east: Cluster, store: Store, monkeypatch: Any) -> None:
    store(raw.cluster(raw.podgroup("g")), at(0))
    monkeypatch.setattr("tests.apps.diagnosis.conftest.READ", ["Node", "Pod", "Queue"])
    store([item for item in raw.cluster(raw.node("n3")) if item["kind"] != "PodGroup"], at(1))
    assert Attempt.objects.get().ended_at is None


def function_gang(number: int) -> list[Object]:
    """Return one instance of a function as a purge re-creates it: another namespace, name and uid each time."""
    namespace = f"sr-{number:08x}-0000-4000-8000-000000000000"
    group = raw.podgroup(f"pg-{namespace}-workers", namespace=namespace, uid=f"uid-{number}")
    group["metadata"]["labels"] = {"function-version-id": "5a0c"}
    return [group]


def test_the_loop_of_a_function_that_is_purged_and_made_again_is_found(
    alice: User, east: Cluster, store: Store, clock: Any
) -> None:
    for number in range(LOOP_TIMES):
        store(raw.cluster(function_gang(number)), at(10 * number))
        assert loop_list(scope=scope_of(alice), now=at(10 * number)) == []
    store(raw.cluster(function_gang(LOOP_TIMES)), at(10 * LOOP_TIMES))
    [loop] = loop_list(scope=scope_of(alice), now=at(10 * LOOP_TIMES))
    assert (loop.gang.uid, loop.failures, loop.evictions) == (f"uid-{LOOP_TIMES}", LOOP_TIMES, 0)
    assert Attempt.objects.get(gang__uid=f"uid-{LOOP_TIMES}").number == LOOP_TIMES + 1
    assert loop_list(scope=scope_of(alice), now=at(600)) == []


def test_bob_sees_no_loop_of_another_namespace(bob: User, east: Cluster, store: Store) -> None:
    for number in range(LOOP_TIMES + 1):
        store(raw.cluster(function_gang(number)), at(10 * number))
    assert loop_list(scope=scope_of(bob), now=at(40)) == []


def test_other_functions_and_instances_that_became_ready_are_no_loop(alice: User, east: Cluster, store: Store) -> None:
    for number in range(LOOP_TIMES + 2):
        group = function_gang(number)[0]
        pod = placed(
            raw.pod("p", group["metadata"]["name"], namespace=group["metadata"]["namespace"]), bound=1, ready=1
        )
        store(raw.cluster([group, pod]), at(10 * number))
    assert loop_list(scope=scope_of(alice), now=at(60)) == []


def deployment(ready: int, *, wanted: int = 1) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kai-scheduler-default", "namespace": "kai-scheduler", "uid": "d"},
        "spec": {"replicas": wanted},
        "status": {"readyReplicas": ready},
    }


def changes(kind: str) -> list[tuple[str, str, str, datetime]]:
    rows = StateChange.objects.filter(kind=kind).order_by("pk")
    return [(row.subject, row.was, row.state, row.at) for row in rows]


def test_nodes_and_parts_leave_a_row_for_each_change_and_none_between(east: Cluster, store: Store) -> None:
    store([raw.node("n1"), deployment(1)], at(0))
    store([raw.node("n1"), deployment(1), raw.queue("x")], at(1))
    store([raw.node("n1", cordoned=True), deployment(0)], at(2))
    store([raw.node("n2"), deployment(0, wanted=0)], at(3))
    store([raw.node("n1"), raw.node("n2")], at(4))
    assert changes("Node") == [
        ("n1", "", "ready", at(0)),
        ("n1", "ready", "cordoned", at(2)),
        ("n2", "", "ready", at(3)),
        ("n1", "cordoned", "gone", at(3)),
        ("n1", "gone", "ready", at(4)),
    ]
    part = "kai-scheduler/kai-scheduler-default"
    assert changes("Deployment") == [
        (part, "", "ready", at(0)),
        (part, "ready", "down", at(2)),
        (part, "down", "gone", at(4)),
    ]


def test_capacity_is_sampled_when_it_changed_and_not_too_often(east: Cluster, store: Store, clock: Any) -> None:
    def step(minutes: float, *objects: Any) -> None:
        clock.move_to(at(minutes))
        store(raw.cluster(*objects), at(minutes))
        tasks.diagnose_due()

    step(0)
    step(1, raw.gang("a", gpus=8, on="n1"))
    step(6, raw.gang("a", gpus=8, on="n1"))
    step(12, raw.gang("a", gpus=8, on="n1"))
    step(20, raw.gang("a", gpus=8, on="n1"))
    samples = list(CapacitySample.objects.order_by("at"))
    assert [sample.at for sample in samples] == [at(0), at(6)]
    assert [sample.domains[""] for sample in samples] == [[16, 16, 0, 2, 2], [16, 8, 0, 2, 1]]
    assert samples[1].queues["leaf"][0] == 8
    assert set(samples[1].queues) == set(Queue.objects.values_list("name", flat=True))
