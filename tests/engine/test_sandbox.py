"""An attempt tells what a whole cycle would, and leaves no trace."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gangdash.engine.cycle import run_cycle
from gangdash.engine.explain.lifts import LIFTS, Rule
from gangdash.engine.model.cycle import PodOutcome
from gangdash.engine.plugins import open_session
from gangdash.engine.sandbox import attempt, attempts_in_turn
from gangdash.engine.session import Session
from tests.engine.builders import Cluster
from tests.engine.worlds import clusters, state_of

_PLACED = {PodOutcome.BOUND, PodOutcome.PIPELINED, PodOutcome.MOVED}


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
    waiting = {pod.meta.name for pod in snapshot.pods if not pod.node_name}
    for gang in run_cycle(snapshot, snapshot.shards[0]).gangs:
        found = attempt(session, session.jobs[gang.name], alone=False)
        placed = {pod.node for pod in gang.pods if pod.outcome in _PLACED and pod.name in waiting}
        assert found.starts is bool(placed)
        if session.jobs[gang.name].is_preemptible:
            assert found.nodes == placed


@given(cluster=clusters(), lifts=st.sets(st.sampled_from(sorted(LIFTS)), max_size=2))
@settings(max_examples=80)
def test_asking_every_gang_at_its_turn_leaves_no_trace(cluster: Cluster, lifts: set[str]) -> None:
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    before = _everything(session)
    sets = [[], [LIFTS[rule] for rule in sorted(LIFTS) if rule in lifts]]
    found = attempts_in_turn(session, dict.fromkeys(session.jobs, sets))
    assert _everything(session) == before
    for key, (plain, *_) in found.items():
        if not session.jobs[key].is_preemptible:
            assert plain.starts is attempt(session, session.jobs[key], alone=False).starts


def test_a_quota_lifted_at_a_gangs_turn_does_not_let_others_past_it() -> None:
    cluster = Cluster()
    cluster.node("n", 8)
    cluster.queue("q", 2)
    cluster.gang("older", 1, 8, kind="build", age=900)
    cluster.gang("younger", 1, 8, kind="build", age=100)
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    quota = [LIFTS[Rule.QUOTA]]
    found = attempts_in_turn(session, {"older": [quota], "younger": [[], quota]})
    assert found["older"][0].nodes == {"n"}
    assert [attempt_.starts for attempt_ in found["younger"]] == [False, True]


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
