"""Statements take back exactly what they did, in whatever order things were done."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangdash.engine.plugins import open_session
from gangdash.engine.session import ACTIVE_ALLOCATED, GPU, Kind, NodeState, Session, Statement, Status, TaskState
from tests.engine.builders import Cluster
from tests.engine.worlds import clusters, state_of


def _open(cluster: Cluster) -> Session:
    snapshot = cluster.snapshot()
    return open_session(snapshot, snapshot.shards[0])


def _step(draw: st.DataObject, session: Session, statement: Statement) -> None:
    """Do one random operation that the present state allows."""
    members = [task for task in session.tasks.values() if task.job is not None and task.pod_set is not None]
    pending = [task for task in members if task.status is Status.PENDING]
    holding = [task for task in members if task.status & ACTIVE_ALLOCATED and task.node_name in session.nodes]
    evicted = statement.evicted()
    choices = ["allocate", "pipeline"] * bool(pending) + ["evict"] * bool(holding) + ["back"] * bool(evicted)
    if not choices:
        return
    kind = draw.draw(st.sampled_from(choices))
    node = draw.draw(st.sampled_from(session.all_nodes))
    if kind == "evict":
        statement.evict(draw.draw(st.sampled_from(holding)))
        return
    if kind == "back":
        statement.pipeline(draw.draw(st.sampled_from(evicted)), node, update_if_on_node=draw.draw(st.booleans()))
        return
    task = draw.draw(st.sampled_from(pending))
    groups = ("shared",) if task.asks_shared_gpu else ()
    if kind == "allocate":
        statement.allocate(task, node, groups=groups)
    else:
        statement.pipeline(task, node, update_if_on_node=True, groups=groups)


@given(cluster=clusters(), draw=st.data())
@settings(max_examples=120)
def test_rollback_restores_every_field(cluster: Cluster, draw: st.DataObject) -> None:
    session = _open(cluster)
    statement = session.statement()
    before = state_of(session)
    for _ in range(draw.draw(st.integers(0, 4))):
        _step(draw, session, statement)
    middle, checkpoint = state_of(session), statement.checkpoint()
    for _ in range(draw.draw(st.integers(1, 5))):
        _step(draw, session, statement)
    statement.rollback(checkpoint)
    assert state_of(session) == middle
    statement.discard()
    assert state_of(session) == before
    assert len(statement) == 0


def _one_gang(pods: int = 2) -> Session:
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.node("n1", 4)
    cluster.gang("run", 1, 2, on=["n0"])
    cluster.gang("wait", pods, 1)
    return _open(cluster)


def test_commit_binds_and_makes_evictions_final() -> None:
    session = _one_gang()
    run = next(task for task in session.tasks.values() if task.name == "run-0")
    wait = next(task for task in session.tasks.values() if task.name == "wait-0")
    statement = session.statement()
    statement.allocate(wait, session.nodes["n1"])
    statement.evict(run, "make room")
    session.commit("allocate", statement)
    assert wait.status is Status.BINDING
    assert run.status is Status.RELEASING
    assert not run.is_virtual
    assert [(action, op.kind, op.node) for action, op in session.done] == [
        ("allocate", Kind.ALLOCATE, "n1"),
        ("allocate", Kind.EVICT, "n0"),
    ]
    assert session.jobs["run"].last_eviction == session.as_of


def test_queue_is_charged_and_released() -> None:
    session = _one_gang()
    wait = next(task for task in session.tasks.values() if task.name == "wait-0")
    queue = session.queues["q"]
    assert queue.allocated[2] == 2
    statement = session.statement()
    statement.allocate(wait, session.nodes["n1"])
    assert queue.allocated[2] == 3
    statement.discard()
    assert queue.allocated[2] == 2


def test_evicted_pod_that_returns_to_its_node_was_never_evicted() -> None:
    session = _one_gang()
    run = next(task for task in session.tasks.values() if task.name == "run-0")
    before = state_of(session)["queues"]
    statement = session.statement()
    statement.evict(run)
    assert session.nodes["n0"].releasing[GPU] == 2
    statement.pipeline(run, session.nodes["n0"], update_if_on_node=False)
    assert run.status is Status.RUNNING
    assert session.nodes["n0"].releasing[GPU] == 0
    assert state_of(session)["queues"] == before
    assert statement.commit() == []


def test_evicted_pod_may_be_promised_another_node() -> None:
    session = _one_gang()
    run = next(task for task in session.tasks.values() if task.name == "run-0")
    statement = session.statement()
    statement.evict(run)
    statement.pipeline(run, session.nodes["n1"], update_if_on_node=False)
    assert run.status is Status.PIPELINED
    assert run.node_name == "n1"
    assert run.key in session.nodes["n0"].placed
    assert session.nodes["n1"].releasing[GPU] == -2
    assert [op.kind for op in statement.commit()] == [Kind.EVICT, Kind.PIPELINE]


def test_allocations_turn_into_promises_on_the_same_nodes() -> None:
    session = _one_gang()
    job = session.jobs["wait"]
    statement = session.statement()
    before = state_of(session)
    for index, task in enumerate(job.tasks.values()):
        statement.allocate(task, session.nodes[f"n{index}"])
    statement.pipeline_allocated(job)
    assert {task.status for task in job.tasks.values()} == {Status.PIPELINED}
    assert [session.nodes[name].releasing[GPU] for name in ("n0", "n1")] == [-1, -1]
    statement.discard()
    assert state_of(session) == before


def test_unevict_of_a_pod_that_was_not_evicted_fails() -> None:
    session = _one_gang()
    run = next(task for task in session.tasks.values() if task.name == "run-0")
    with pytest.raises(LookupError, match="was not evicted"):
        session.statement().unevict(run)


def test_a_pod_of_no_gang_cannot_be_changed() -> None:
    cluster = Cluster()
    cluster.node("n0", 4)
    cluster.pod("", 0, 1, on="n0")
    session = _open(cluster)
    with pytest.raises(LookupError, match="no gang"):
        session.statement().evict(next(iter(session.tasks.values())))


class _Diary:
    """Listens to a session and writes down what it is told."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def node_added(self, task: TaskState, node: NodeState) -> None:
        self.entries.append(f"+{node.name}")

    def node_removed(self, task: TaskState, node: NodeState) -> None:
        self.entries.append(f"-{node.name}")

    def allocated(self, task: TaskState, node: NodeState) -> None:
        self.entries.append(f"holds {node.name}")

    def released(self, task: TaskState, node: NodeState) -> None:
        self.entries.append(f"leaves {node.name}")

    def told(self) -> list[str]:
        told, self.entries = self.entries, []
        return told


def test_listeners_hear_of_everything_and_of_its_undo() -> None:
    session = _one_gang()
    diary = _Diary()
    session.listeners.append(diary)
    run = next(task for task in session.tasks.values() if task.name == "run-0")
    wait = next(task for task in session.tasks.values() if task.name == "wait-0")
    statement = session.statement()
    statement.allocate(wait, session.nodes["n1"])
    assert diary.told() == ["+n1", "holds n1"]
    statement.evict(run)
    assert diary.told() == ["-n0", "+n0", "leaves n0"]
    statement.pipeline(run, session.nodes["n1"], update_if_on_node=False)
    assert diary.told() == ["+n1", "holds n1"]
    statement.discard()
    assert diary.told() == [
        *["leaves n1", "-n1"],
        *["-n0", "+n0", "holds n0"],
        *["leaves n1", "-n1"],
    ]


def test_listeners_hear_when_an_eviction_is_taken_back() -> None:
    session = _one_gang()
    diary = _Diary()
    session.listeners.append(diary)
    run = next(task for task in session.tasks.values() if task.name == "run-0")
    statement = session.statement()
    statement.evict(run)
    diary.told()
    statement.unevict(run)
    assert diary.told() == ["-n0", "+n0", "holds n0"]
    statement.discard()
    assert diary.told() == ["leaves n0", "-n0", "+n0", "-n0", "+n0", "holds n0"]


def test_listeners_hear_when_allocations_turn_into_promises() -> None:
    session = _one_gang(1)
    diary = _Diary()
    statement = session.statement()
    job = session.jobs["wait"]
    statement.allocate(next(iter(job.tasks.values())), session.nodes["n1"])
    session.listeners.append(diary)
    statement.pipeline_allocated(job)
    assert diary.told() == ["-n1", "leaves n1", "+n1", "holds n1"]
