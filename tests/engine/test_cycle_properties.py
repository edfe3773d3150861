"""What holds for every cycle, whatever the cluster looks like."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from gangdash.engine.actions import allocate
from gangdash.engine.cycle import ACTIONS, close_session, run_cycle
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.cycle import PodOutcome
from gangdash.engine.plugins import open_session
from gangdash.engine.session import ACTIVE_ALLOCATED, Status
from tests.engine.builders import Cluster
from tests.engine.worlds import clusters, contended

T = TypeVar("T")


def _shuffled(snapshot: ClusterSnapshot, seed: int) -> ClusterSnapshot:
    def mixed(items: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(random.Random(seed).sample(items, len(items)))

    return replace(
        snapshot,
        nodes=mixed(snapshot.nodes),
        pods=mixed(snapshot.pods),
        podgroups=mixed(snapshot.podgroups),
        queues=mixed(snapshot.queues),
        priority_classes=mixed(snapshot.priority_classes),
    )


@given(cluster=clusters(), seed=st.integers(0, 2**16))
@settings(max_examples=60)
def test_order_of_the_lists_does_not_matter(cluster: Cluster, seed: int) -> None:
    snapshot = cluster.snapshot()
    assert run_cycle(_shuffled(snapshot, seed), snapshot.shards[0]) == run_cycle(snapshot, snapshot.shards[0])


@given(cluster=st.one_of(clusters(), contended()))
@settings(max_examples=150)
def test_shortcuts_change_nothing(cluster: Cluster) -> None:
    snapshot = cluster.snapshot()
    results = []
    for shortcuts in (True, False):
        session = open_session(snapshot, snapshot.shards[0])
        session.shortcuts = shortcuts
        ready = {key: job.is_ready for key, job in session.jobs.items()}
        for name in session.config.actions:
            ACTIONS[name](session)
        results.append(close_session(session, ready))
    assert results[0] == results[1]


@given(cluster=contended())
@settings(max_examples=60)
def test_a_gang_that_evicts_runs_whole_and_queues_stay_in_their_limits(cluster: Cluster) -> None:
    """Pods that are being evicted still count for their own gang's minimum, as in the scheduler."""
    result = cluster.run()
    minimum = {group.meta.name: group.min_member or 0 for group in cluster.podgroups}
    for gang in result.gangs:
        outcomes = [pod.outcome for pod in gang.pods]
        there = len(outcomes) - outcomes.count(PodOutcome.PENDING)
        assert there == outcomes.count(PodOutcome.EVICTED) or there >= minimum[gang.name]
    for use in result.queues:
        limit = next(queue.gpu.limit for queue in cluster.queues if queue.name == use.name and queue.gpu)
        assert limit == -1 or use.allocated_after[2] <= max(limit or 0, use.allocated_before[2])


@given(cluster=clusters())
@settings(max_examples=100)
def test_no_node_over_capacity_and_all_or_nothing(cluster: Cluster) -> None:
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    before = {name: list(node.idle) for name, node in session.nodes.items()}
    allocate.execute(session)
    for name, node in session.nodes.items():
        assert all(idle >= min(0, was) for idle, was in zip(node.idle, before[name], strict=True))
        promised = [i + r for i, r in zip(node.idle, node.releasing, strict=True)]
        assert all(amount >= min(0, was) for amount, was in zip(promised, before[name], strict=True))
        assert all(memory <= node.gpu_memory for memory in node.shared.allocated.values())
    placed = {operation.task.uid for _, operation in session.done}
    for job in session.jobs.values():
        new = [task for task in job.tasks.values() if task.uid in placed]
        if new and job.active_allocated == len(new):
            assert job.root.is_satisfied
        assert not [task for task in new if not task.status & ACTIVE_ALLOCATED]


@given(cluster=clusters())
@settings(max_examples=60)
def test_limits_hold_after_a_cycle(cluster: Cluster) -> None:
    result = cluster.run()
    for use in result.queues:
        limit = next(queue.gpu.limit for queue in cluster.queues if queue.name == use.name and queue.gpu)
        if limit is not None and limit >= 0:
            assert use.allocated_after[2] <= max(limit, use.allocated_before[2])


@given(cluster=clusters())
@settings(max_examples=60)
def test_every_pod_has_one_outcome_that_fits_its_node(cluster: Cluster) -> None:
    snapshot = cluster.snapshot()
    result = cluster.run()
    listed = [pod.uid for gang in result.gangs for pod in gang.pods]
    assert sorted(listed) == sorted(pod.meta.uid for pod in snapshot.pods)
    for gang in result.gangs:
        for pod in gang.pods:
            waits = pod.outcome in (PodOutcome.PENDING, PodOutcome.GATED)
            assert (pod.node is None) == waits
            assert (pod.action is None) == (waits or pod.outcome is PodOutcome.KEPT)


@given(cluster=clusters())
@settings(max_examples=40)
def test_a_cycle_without_actions_only_looks(cluster: Cluster) -> None:
    snapshot = cluster.snapshot()
    shard = replace(snapshot.shards[0], config=replace(snapshot.shards[0].config, actions=()))
    result = run_cycle(snapshot, shard)
    assert {str(pod.outcome) for gang in result.gangs for pod in gang.pods} <= {"kept", "pending", "gated"}
    assert all(use.allocated_before == use.allocated_after for use in result.queues)
    session = open_session(snapshot, shard)
    assert not any(task.status is Status.ALLOCATED for task in session.tasks.values())
