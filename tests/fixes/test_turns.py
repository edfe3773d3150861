"""One pass over a cycle asks for many gangs, and ends when all are answered."""

from __future__ import annotations

from gangdash.engine.explain.lifts import LIFTS, Rule
from gangdash.engine.plugins import open_session
from gangdash.engine.sandbox import attempts_in_turn
from gangdash.engine.session import JobState
from tests.engine.builders import Cluster
from tests.engine.worlds import state_of


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
