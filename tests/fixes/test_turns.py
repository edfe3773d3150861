"""One pass over a cycle asks for many gangs, and ends when all are answered."""

from __future__ import annotations

from gangdash.engine.explain.lifts import LIFTS, Rule
from gangdash.engine.plugins import open_session
from gangdash.engine.rules.affinity import remembered
from gangdash.engine.sandbox import attempt, attempts_in_turn
from gangdash.engine.session import JobState
from tests.engine.builders import Cluster
from tests.engine.worlds import LONELY, state_of


def limited() -> Cluster:
    """Return a queue whose limit two gangs would pass, one after the other."""
    cluster = Cluster()
    cluster.queue("q", -1, 1)
    cluster.node("n", 8)
    cluster.gang("g", 1, 2, age=900)
    cluster.gang("later", 2, 8, queue="q")
    return cluster


def test_a_pass_ends_with_the_last_answer_and_leaves_no_trace() -> None:
    snapshot = limited().snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    before, turns = state_of(session), list[str]()

    def count(action: str, job: JobState) -> None:
        turns.append(f"{action} {job.key}")

    session.hooks.before_turn.append(count)
    found = attempts_in_turn(session, {"g": [[], [LIFTS[Rule.LIMIT]]]})
    assert [attempt.starts for attempt in found["g"]] == [False, True]
    assert set(turns) == {"allocate g"}
    assert state_of(session) == before


def test_a_gang_that_nothing_starts_is_asked_to_the_end() -> None:
    snapshot = limited().snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    turns = list[str]()
    session.hooks.before_turn.append(lambda action, job: turns.append(f"{action} {job.key}"))
    found = attempts_in_turn(session, {"g": [[]]})
    assert [attempt.starts for attempt in found["g"]] == [False]
    assert {"allocate g", "allocate later"} < set(turns)


def test_what_an_attempt_settles_about_a_pods_neighbours_is_forgotten() -> None:
    """The scheduler asks once in a session whether terms reach a pod; an attempt may ask before the cycle would."""
    cluster = limited()
    cluster.gang("lonely", 1, 1, queue="q", pod={"affinity": LONELY})
    snapshot = cluster.snapshot()
    session = open_session(snapshot, snapshot.shards[0])
    seen = list[set[str]]()
    session.hooks.before_turn.append(lambda *_: seen.append(set(remembered(session).free)))
    assert attempt(session, session.jobs["g"], alone=False, lifts=[LIFTS[Rule.LIMIT]]).starts
    assert any(seen)
    known = remembered(session)
    assert (known.states, known.free, known.indifferent) == ({}, set(), set())
