"""Fixes do not depend on the order of lists, on what things are called, or on what cannot matter."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.pod import Pod
from gangdash.engine.verdict import Explanation
from tests.engine.builders import Cluster
from tests.engine.worlds import clusters, contended
from tests.fixes.helpers import effects, fixed

_POOL = "kai.scheduler/node-pool"
_ADDED = "elsewhere"
T = TypeVar("T")
Answer = dict[str, tuple[str, str, list[str], int]]


def answer(explanations: Iterable[Explanation], prefix: str = "") -> Answer:
    """Return by gang what is told about it and its fixes, as text; a ``prefix`` of names is taken off again."""
    found: Answer = {}
    for item in explanations:
        if item.gang.namespace == _ADDED:
            continue
        fixes = [
            json.dumps([fix.kind, fix.form, {**fix.change}, effects(fix), fix.cost], sort_keys=True, default=str)
            for fix in item.fixes
        ]
        told = (str(item.finding.code), str(item.certainty), fixes, item.fixes_refused)
        found[item.gang.key] = told
    text = json.dumps(found)
    back: Answer = json.loads(text.replace(prefix, "") if prefix else text)
    return back


@given(cluster=st.one_of(clusters(), contended()), seed=st.integers(0, 2**16))
@settings(max_examples=5, deadline=None)
def test_the_order_of_lists_changes_no_verdict_and_no_fix(cluster: Cluster, seed: int) -> None:
    snapshot = cluster.snapshot()
    rng = random.Random(seed)

    def shuffled_of(items: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(rng.sample(items, len(items)))

    shuffled = replace(
        snapshot,
        nodes=shuffled_of(snapshot.nodes),
        pods=shuffled_of(snapshot.pods),
        podgroups=shuffled_of(snapshot.podgroups),
        queues=shuffled_of(snapshot.queues),
        priority_classes=shuffled_of(snapshot.priority_classes),
    )
    assert answer(fixed(shuffled)) == answer(fixed(snapshot))


def renamed(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot with namespaces and queues called otherwise; their order by name stays."""

    def called(meta: Meta) -> Meta:
        return replace(meta, namespace=f"zz-{meta.namespace}") if meta.namespace else meta

    parents = {queue.name: f"zz-{queue.parent}" if queue.parent else "" for queue in snapshot.queues}
    queues = tuple(
        replace(queue, meta=replace(queue.meta, name=f"zz-{queue.name}"), parent=parents[queue.name])
        for queue in snapshot.queues
    )
    return replace(
        snapshot,
        queues=queues,
        pods=tuple(replace(pod, meta=called(pod.meta)) for pod in snapshot.pods),
        podgroups=tuple(
            replace(group, meta=called(group.meta), queue=f"zz-{group.queue}") for group in snapshot.podgroups
        ),
    )


@given(cluster=st.one_of(clusters(), contended()))
@settings(max_examples=5, deadline=None)
def test_a_consistent_rename_renames_the_answer(cluster: Cluster) -> None:
    snapshot = cluster.snapshot()
    assert answer(fixed(renamed(snapshot)), "zz-") == answer(fixed(snapshot))


def beside(cluster: Cluster) -> ClusterSnapshot:
    """Return the cluster with nodes, a queue and gangs of a node pool that its scheduler does not serve."""
    snapshot = cluster.snapshot()
    label = {_POOL: "other"}
    node = snapshot.nodes[0]
    labels = {**node.meta.labels, **label}
    names = [f"a-{index}" for index in range(3)]
    nodes = tuple(replace(node, meta=replace(node.meta, name=name, uid=name, labels=labels)) for name in names)
    queue = snapshot.queues[-1]
    queues = (replace(queue, meta=Meta("a-queue", uid="a-queue", created=queue.meta.created, labels=label)),)
    group = snapshot.podgroups[0]
    meta = Meta("a-gang", _ADDED, uid="a-gang", created=group.meta.created, labels=label)
    groups = (replace(group, meta=meta, queue="a-queue"),)
    made = Meta(
        "a-gang-0", _ADDED, uid="a-gang-0", created=group.meta.created, annotations={"pod-group-name": "a-gang"}
    )
    pods = (Pod(meta=made, scheduler_name="kai-scheduler", containers=snapshot.pods[0].containers),)
    return replace(
        snapshot,
        nodes=(*nodes, *snapshot.nodes),
        queues=(*snapshot.queues, *queues),
        podgroups=(*groups, *snapshot.podgroups),
        pods=(*pods, *snapshot.pods),
    )


@given(cluster=st.one_of(clusters(), contended()))
@settings(max_examples=5, deadline=None)
def test_what_is_added_to_another_node_pool_changes_no_verdict_and_no_fix(cluster: Cluster) -> None:
    cluster.params(node_pool_label_key=_POOL)
    assert answer(fixed(beside(cluster))) == answer(fixed(cluster.snapshot()))
