"""An attempt tells what a whole cycle would, and leaves no trace."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gangdash.engine.cycle import run_cycle
from gangdash.engine.explain.trial import LIFTS
from gangdash.engine.model.cycle import GangOutcome
from gangdash.engine.plugins import open_session
from gangdash.engine.sandbox import attempt
from gangdash.engine.session import Session
from tests.engine.builders import Cluster
from tests.engine.worlds import clusters, state_of

_PLACED = {GangOutcome.BOUND, GangOutcome.PIPELINED}


def _everything(session: Session) -> dict[str, object]:
    notes = {
        key: (list(job.errors), dict(job.task_errors), job.last_start, job.last_eviction, job.stale_since)
        for key, job in session.jobs.items()
    }
    queues = {name: (q.request, q.fair_share, q.limit, q.deserved) for name, q in session.queues.items()}
    beside = (list(session.done), dict(session.fits), set(session.one_of_several), session.journal)
    kept = {key: (job.is_preemptible, job.podgroup) for key, job in session.jobs.items()}
    return {**state_of(session), "notes": notes, "queues+": queues, "beside": beside, "kept": kept}


@given(cluster=clusters(), alone=st.booleans(), lifts=st.sets(st.sampled_from(sorted(LIFTS))))
@settings(max_examples=80)
def test_an_attempt_leaves_no_trace(cluster: Cluster, alone: bool, lifts: set[str]) -> None:
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    before = _everything(session)
    for job in session.jobs.values():
        attempt(session, job, alone=alone, lifts=[LIFTS[rule] for rule in sorted(LIFTS) if rule in lifts])
    assert _everything(session) == before


@given(cluster=clusters())
@settings(max_examples=80)
def test_an_attempt_without_lifts_tells_what_the_cycle_does(cluster: Cluster) -> None:
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    for gang in run_cycle(snapshot, snapshot.shards[0]).gangs:
        found = attempt(session, session.jobs[gang.name], alone=False)
        given_nodes = {pod.node for pod in gang.pods if pod.action and gang.outcome in _PLACED}
        assert found.starts is (gang.outcome in _PLACED)
        if found.starts and gang.action == found.action:
            assert found.nodes <= given_nodes


def test_alone_nobody_else_takes_the_room() -> None:
    cluster = Cluster()
    cluster.node("n", 8)
    cluster.gang("first", 1, 8, age=900)
    cluster.gang("second", 1, 8, age=100)
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    second = session.jobs["second"]
    assert not attempt(session, second, alone=False).starts
    assert attempt(session, second, alone=True).nodes == {"n"}


def test_alone_fair_shares_are_those_of_a_cluster_where_nobody_else_asks() -> None:
    """A third of the node is too little to reclaim four GPUs, a half is enough."""
    cluster = Cluster()
    cluster.node("n", 8)
    for name in ("mine", "theirs", "third"):
        cluster.queue(name, 0)
    cluster.gang("running", 8, 1, queue="theirs", minimum=1, on=["n"] * 8)
    cluster.gang("wants-four", 1, 4, queue="mine")
    cluster.gang("other", 1, 16, queue="third")
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    wants = session.jobs["wants-four"]
    assert not attempt(session, wants, alone=False).starts
    assert attempt(session, wants, alone=True).action == "reclaim"
