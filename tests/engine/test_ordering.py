"""The heap that queues are made of, and the order in which gangs leave the tree of queues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangdash.engine.actions.heap import Heap
from gangdash.engine.actions.ordering import JobsByQueue, Selection, delay_end, go_duration, rank_of_job, takes_part
from gangdash.engine.model.podgroup import SubGroupSpec
from gangdash.engine.model.queue import QueueResource
from gangdash.engine.plugins import open_session
from gangdash.engine.rules.queue_order import rank_of
from gangdash.engine.session import Session
from tests.engine.builders import NOW, Cluster, places, texts


@given(st.lists(st.integers()))
def test_heap_sorts(numbers: list[int]) -> None:
    heap: Heap[int] = Heap(lambda left, right: left < right)
    for number in numbers:
        heap.push(number)
    assert [heap.pop() for _ in numbers] == sorted(numbers)
    assert len(heap) == 0


def test_bounded_heap_drops_what_lies_at_the_limit() -> None:
    heap: Heap[int] = Heap(lambda left, right: left < right, 2)
    for number in (5, 3, 4, 1):
        heap.push(number)
    assert [heap.pop(), heap.pop()] == [1, 5]


def test_top_that_lost_its_rank_sinks_when_fixed() -> None:
    ranks = {"a": 1, "b": 2, "c": 3}
    heap: Heap[str] = Heap(lambda left, right: ranks[left] < ranks[right])
    for name in ranks:
        heap.push(name)
    ranks["a"] = 9
    assert heap.peek() == "a"
    heap.fix_top()
    assert [heap.pop() for _ in range(3)] == ["b", "c", "a"]


def _open(cluster: Cluster) -> Session:
    snapshot = cluster.snapshot()
    return open_session(snapshot, snapshot.shards[0])


def _names(jobs: JobsByQueue) -> Iterator[str]:
    while not jobs.is_empty:
        yield jobs.pop().name


def _departments() -> Cluster:
    """Two departments with two queues each; one holds more than the other."""
    cluster = Cluster()
    cluster.node("n0", 16)
    for dept in ("d1", "d2"):
        cluster.queue(dept, 4, created=NOW - 100)
        for index in (1, 2):
            cluster.queue(f"{dept}-q{index}", 2, parent=dept, created=NOW - 50 + index)
    cluster.gang("held", 1, 3, queue="d1-q1", on=["n0"])
    for index, queue in enumerate(("d1-q1", "d1-q2", "d2-q1", "d2-q2")):
        cluster.gang(f"{queue}-early", 1, 1, queue=queue, age=500 - index)
        cluster.gang(f"{queue}-late", 1, 1, queue=queue, age=400 - index)
    return cluster


def test_departments_and_queues_that_hold_less_come_first() -> None:
    session = _open(_departments())
    jobs = JobsByQueue(session)
    jobs.add(session.jobs.values(), Selection(only_pending=True))
    order = list(_names(jobs))
    assert order[:4] == ["d2-q1-early", "d2-q1-late", "d2-q2-early", "d2-q2-late"]
    assert order[4:] == ["d1-q2-early", "d1-q2-late", "d1-q1-early", "d1-q1-late"]


def test_victims_come_in_reverse() -> None:
    cluster = Cluster()
    cluster.node("n0", 16)
    cluster.queue("a", 2)
    cluster.queue("b", 2)
    for queue, gpus in (("a", 6), ("b", 3)):
        for index in range(2):
            cluster.gang(f"{queue}{index}", 1, gpus // 3, queue=queue, on=["n0"], age=500 - index)
    session = _open(cluster)
    jobs = JobsByQueue(session, victims=True)
    jobs.add(session.jobs.values(), Selection(only_active=True))
    assert list(_names(jobs)) == ["a1", "a0", "b1", "b0"]


def test_a_gang_pushed_back_counts_again() -> None:
    session = _open(_departments())
    jobs = JobsByQueue(session)
    job = session.jobs["d2-q1-early"]
    jobs.push(job)
    assert jobs.pop() is job
    assert jobs.is_empty
    jobs.push(job)
    assert list(_names(jobs)) == ["d2-q1-early"]


@pytest.mark.parametrize(
    "gang, selection, expected",
    [
        ("ready", Selection(only_ready=True), True),
        ("short", Selection(only_ready=True), False),
        ("run", Selection(only_pending=True), False),
        ("run", Selection(only_active=True), True),
        ("ready", Selection(only_active=True), False),
        ("firm", Selection(only_preemptible=True), False),
        ("ready", Selection(only_preemptible=True), True),
        ("lost", Selection(), False),
        ("high", Selection(), False),
    ],
)
def test_who_takes_part(gang: str, selection: Selection, expected: bool) -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.queue("top")
    cluster.queue("q", parent="top")
    cluster.gang("ready", 1)
    cluster.gang("short", 1, minimum=2)
    cluster.gang("run", 1, on=["n0"])
    cluster.gang("firm", 1, kind="build")
    cluster.gang("lost", 1, queue="none")
    cluster.gang("high", 1, queue="top")
    session = _open(cluster)
    assert takes_part(session, session.jobs[gang], selection) is expected


def _delayed(age: float, delay: float | None) -> Cluster:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.gang("g", 1, age=age, group={"preemption_delay": delay})
    return cluster


def test_preemption_delay_keeps_a_gang_out_and_tells_it_once() -> None:
    session = _open(_delayed(60, 600))
    job = session.jobs["g"]
    for _ in range(2):
        assert not takes_part(session, job, Selection(outside_preemption_delay=True))
    assert [(error.reason, error.messages[0]) for error in job.errors] == [
        (
            "PreemptionDelayNotElapsed",
            (
                "Workload is within its preemption delay window (10m0s) and may not trigger evictions before "
                "2027-01-15T08:09:00Z"
            ),
        )
    ]


def test_delay_begins_anew_with_an_eviction() -> None:
    session = _open(_delayed(6000, 600))
    job = session.jobs["g"]
    assert takes_part(session, job, Selection(outside_preemption_delay=True))
    job.last_eviction = NOW - 10
    assert delay_end(job) == NOW + 590
    assert not takes_part(session, job, Selection(outside_preemption_delay=True))


@pytest.mark.parametrize("delay", [None, 0.0, -5.0])
def test_no_delay(delay: float | None) -> None:
    assert delay_end(_open(_delayed(1, delay)).jobs["g"]) is None


@pytest.mark.parametrize(
    "seconds, text", [(600, "10m0s"), (3600, "1h0m0s"), (90, "1m30s"), (1.5, "1.5s"), (7265, "2h1m5s"), (0, "0s")]
)
def test_durations_as_go_prints_them(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text


def test_unknown_queue_is_told() -> None:
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.gang("g", 1, queue="none")
    assert texts(cluster.run("allocate"), "g") == [("QueueDoesNotExist", "Queue 'none' does not exist")]


@pytest.mark.parametrize("is_ordered, first", [(True, "b"), (False, "a")])
def test_subgroups_go_by_need_or_by_name_without_the_plugin(*, is_ordered: bool, first: str) -> None:
    """Subgroup ``a`` is optional, ``b`` is not yet there: with the order, what is needed comes first."""
    cluster = Cluster()
    cluster.node("n0", 1)
    cluster.gang("g", 0, sub_groups=(SubGroupSpec("a", min_member=0), SubGroupSpec("b", min_member=1)), min_sub_group=0)
    for part in ("a", "b"):
        cluster.pod("g", 0, sub_group=part)
    if not is_ordered:
        plugins = tuple(plugin for plugin in cluster.config.plugins if plugin.name != "subgrouporder")
        cluster.config = replace(cluster.config, plugins=plugins)
    placed = places(cluster.run("allocate"), "g")
    assert [name for name, node in placed.items() if node] == [f"g-{first}-0"]


def test_waiting_gangs_begun_in_order_come_as_if_pushed_one_by_one() -> None:
    cluster = _departments()
    session = _open(cluster)
    waiting = [job for job in session.jobs.values() if job.pending]
    pushed, seeded = JobsByQueue(session), JobsByQueue(session)
    for queue in dict.fromkeys(job.queue for job in waiting):
        jobs = [job for job in waiting if job.queue == queue]
        pushed.add(jobs, Selection())
        seeded.seed(sorted(jobs, key=lambda job: rank_of_job(session, job)), jobs[0])
    held = session.jobs["held"]
    for order in (pushed, seeded):
        order.push(held)
    assert list(_names(seeded)) == list(_names(pushed))


def test_rank_of_a_queue_says_in_order_what_speaks_against_it() -> None:
    """Beyond fair share in all resources, beyond quota, low priority, without a share, and by how much it holds."""
    nothing = QueueResource(0, -1, 0)
    cluster = Cluster()
    cluster.node("n0", 8)
    cluster.queue("none", 0, weight=0, cpu=nothing, memory=nothing)
    cluster.queue("half", 4, priority=7)
    cluster.gang("held", 1, 2, queue="half", on=["n0"])
    session = _open(cluster)
    none, half = session.queues["none"], session.queues["half"]
    assert rank_of(session, none, (0, 0, 1)) == (False, True, -100, True, 1000, 0)
    assert rank_of(session, none, (0, 0, 0)) == (False, False, -100, False, 0, 0)
    assert rank_of(session, half, (0, 0, 2)) == (False, False, -7, False, 1.0, 0.5)
    assert rank_of(session, half, (0, 0, 3), (0, 0, 1))[1:5] == (True, -7, False, 1.0)
    session.charges_queues = False
    assert rank_of(session, half, (0, 0, 3)) == (half.created, "half")


def test_cpu_that_victims_give_up_counts_for_the_next_one() -> None:
    cluster = Cluster()
    cluster.node("n0", cpu=64)
    for queue, cores in (("a", 4), ("b", 3)):
        cluster.queue(queue, cpu=QueueResource(10_000, -1, 1))
        for index in range(2):
            cluster.gang(f"{queue}{index}", 1, 0, cpu=cores, queue=queue, on=["n0"], age=500 - index)
    session = _open(cluster)
    jobs = JobsByQueue(session, victims=True)
    jobs.add(session.jobs.values(), Selection(only_active=True))
    assert list(_names(jobs)) == ["a1", "b1", "a0", "b0"]
