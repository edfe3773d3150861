"""A placement exists and a queue rule forbids it: which one, by how much, until when?"""

from __future__ import annotations

from dataclasses import replace

from gangdash.engine.model.queue import QueueResource
from tests.engine.builders import NOW, Cluster
from tests.explain.helpers import explain, said


def cluster_with_queues(**limits: tuple[float, float]) -> Cluster:
    """Return a cluster of 16 GPUs with leaf queues by quota and limit below one parent."""
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.node("n2", 8)
    cluster.queue("top")
    for name, (quota, limit) in limits.items():
        cluster.queue(name, quota, limit, parent="top")
    return cluster


def test_limit_says_which_limit_would_do() -> None:
    cluster = cluster_with_queues(q=(4, 4))
    cluster.gang("hold", 1, 3, on=["n1"])
    cluster.gang("g", 1, 2)
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "QUEUE_LIMIT")
    assert entry.sentence == "Queue q may use 4 GPUs and uses 3; this gang needs 2 more, which takes a limit of 5."
    assert [(b.id, b.need, b.have) for b in entry.binding] == [("queue.limit.gpu", 5, 4)]
    assert entry.who == "queue_admin"


def test_gang_larger_than_the_limit_never_starts_under_it() -> None:
    cluster = cluster_with_queues(q=(4, 4))
    cluster.gang("g", 1, 6)
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "QUEUE_LIMIT")
    assert "never starts under that limit" in entry.sentence
    assert entry.waiting.helps == "no"


def test_limit_of_a_parent_counts_too() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.queue("dept", 2, 2)
    cluster.queue("q", parent="dept")
    cluster.gang("g", 1, 4)
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "QUEUE_LIMIT")
    assert entry.binding[0].scope == "dept"


def test_limit_that_is_not_named_counts_as_zero() -> None:
    cluster = cluster_with_queues(q=(8, -1))
    cluster.queues[-1] = replace(cluster.queues[-1], gpu=QueueResource(quota=8))
    cluster.gang("g", 1, 1)
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "QUEUE_LIMIT")
    assert "names no GPU limit, which counts as 0" in entry.sentence


def test_non_preemptible_gang_must_stay_within_quota() -> None:
    cluster = cluster_with_queues(q=(4, -1))
    cluster.gang("g", 1, 6, kind="build")
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "NON_PREEMPTIBLE_OVER_QUOTA")
    assert (entry.binding[0].need, entry.binding[0].have) == (6, 4)


def test_limit_is_not_the_cause_where_nothing_would_fit_without_it() -> None:
    cluster = cluster_with_queues(q=(4, 4))
    cluster.gang("g", 1, 9)
    entry = explain(cluster)
    assert said(entry) == ("NO_FIT", "NODE_TOO_SMALL")
    assert [str(other.code) for other in entry.also] == ["QUEUE_LIMIT"]


def test_older_gang_takes_the_room_first() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("old", 1, 8, age=900)
    cluster.gang("g", 1, 8, age=60)
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "QUEUED_BEHIND")
    assert "old, older and of the same priority, goes first" in entry.sentence
    assert entry.waiting.on == ["PodGroup/team/old"]


def test_fair_share_keeps_a_gang_from_reclaiming() -> None:
    cluster = cluster_with_queues(a=(8, -1), q=(8, -1))
    cluster.gang("mine", 1, 8, queue="q", on=["n1"])
    cluster.gang("theirs", 1, 8, queue="a", on=["n2"])
    cluster.gang("g", 1, 8, queue="q")
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "FAIR_SHARE_REACHED")
    assert "Queue q uses 8 GPUs of its fair share of 8" in entry.sentence


def test_protected_holders_keep_a_claim_from_being_met() -> None:
    cluster = cluster_with_queues(a=(4, -1), q=(8, -1))
    for node in ("n1", "n2"):
        cluster.gang(f"hold-{node}", 1, 8, queue="a", kind="build", on=[node])
    cluster.gang("g", 1, 8, queue="q")
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "HOLDERS_PROTECTED")
    assert "queue a holds 16 GPUs (quota 4) by non-preemptible gangs" in entry.sentence


def test_minimum_run_time_says_until_when() -> None:
    cluster = cluster_with_queues(a=(0, -1), q=(16, -1))
    cluster.queues[1] = replace(cluster.queues[1], reclaim_min_runtime=3600.0)
    for node in ("n1", "n2"):
        cluster.gang(f"hold-{node}", 1, 8, queue="a", on=[node], age=1200)
    started = "2027-01-15T07:40:00Z"
    cluster.podgroups[:] = [
        replace(group, meta=replace(group.meta, annotations={"kai.scheduler/last-start-timestamp": started}))
        for group in cluster.podgroups
    ]
    cluster.gang("g", 1, 8, queue="q")
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "HOLDERS_PROTECTED")
    assert entry.waiting.helps == "yes"
    assert entry.waiting.until == "2027-01-15T08:40:00Z"


def test_preemption_delay_says_until_when() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("low", 1, 8, on=["n1"])
    cluster.gang("g", 1, 8, kind="build-preemptible", age=60, group={"preemption_delay": 300.0})
    entry = explain(cluster)
    assert said(entry) == ("POLICY", "PREEMPTION_DELAY")
    assert entry.waiting.until == "2027-01-15T08:04:00Z"
    assert NOW + 240 == 1_800_000_240


def test_cluster_full_of_equals_is_no_matter_of_policy() -> None:
    cluster = Cluster()
    cluster.node("n1", 8)
    cluster.gang("hold", 1, 8, kind="build", on=["n1"])
    cluster.gang("g", 1, 8)
    assert said(explain(cluster)) == ("NO_FIT", "GPUS_BUSY")


def test_placement_that_the_walk_misses_is_told_as_such() -> None:
    cluster = Cluster()
    cluster.node("small", 4, labels={"kind": "a"})
    cluster.node("big", 8)
    cluster.gang("g", 0, minimum=2)
    cluster.pod("g", 0, 4)
    cluster.pod("g", 1, 8)
    entry = explain(cluster)
    assert said(entry) in {("WILL_START", "FITS_NOW"), ("STUCK", "GREEDY_MISS")}
