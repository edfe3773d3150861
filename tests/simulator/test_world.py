"""The demo cluster is possible at every step, and never short of reasons to wait."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from gangdash.replay import replay
from gangdash.simulator.demo import Demo
from gangdash.simulator.objects import PLANTED_SECRET, cluster_objects, event_object
from gangdash.simulator.store import ObjectStore
from gangdash.simulator.world import World
from gangdash.snapshot.archive import load_bytes, snapshot_of
from tests.simulator.ground import Gang, Truth, deleted

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
pytestmark = pytest.mark.slow
ALWAYS = {
    "scheduler down",
    "queue missing",
    "members missing",
    "gated",
    "base gang",
    "queue limit",
    "over quota",
    "no such node",
    "node too small",
    "domain too small",
    "domain busy",
    "cordoned",
    "fragmented",
}


CODES = {
    "QUEUE_MISSING",
    "MEMBERS_MISSING",
    "SCHEDULING_GATE",
    "WAITS_FOR_BASE_GANG",
    "QUEUE_LIMIT",
    "NON_PREEMPTIBLE_OVER_QUOTA",
    "SELECTOR_MISMATCH",
    "NODE_TOO_SMALL",
    "DOMAIN_TOO_SMALL",
    "DOMAIN_BUSY",
    "NODES_CORDONED",
    "FRAGMENTED",
}


# Steps by seed: some 7 minutes of one piece, one of another.
_STEPS = {1: 24, 8: 4}


@dataclass(frozen=True)
class Moment:
    """What one step showed; the objects themselves would fill the memory."""

    wrong: list[str]
    causes: set[str]
    states: dict[str, str]
    nodes: int
    waiting: int
    releasing: bool
    unanswered: bool
    reasons: set[str]


@dataclass(frozen=True)
class History:
    moments: list[Moment]
    last: Truth
    now: datetime


@pytest.fixture(params=list(_STEPS), scope="module")
def history(request: pytest.FixtureRequest) -> History:
    demo, now = Demo(ObjectStore(), request.param, NOW), NOW
    moments, placed = [], dict[str, str]()
    for number in range(_STEPS[request.param]):
        now += timedelta(seconds=(5, 20, 10, 2, 40)[number % 5])
        demo.step(now)
        truth = Truth(cluster_objects(demo.world))
        moments.append(_moment(truth, placed))
        placed = _placed(truth)
    events = [event_object(demo.world, event) for event in demo.world.events]
    return History(moments, Truth([*cluster_objects(demo.world), *events]), now)


def _placed(truth: Truth) -> dict[str, str]:
    return {pod["metadata"]["uid"]: node for pod in truth.by_kind["Pod"] for node in [truth.node_of(pod)] if node}


def _moment(truth: Truth, before: dict[str, str]) -> Moment:
    wrong = [*_overfull(truth), *_torn(truth), *_over_terms(truth), *_misreported(truth)]
    return Moment(
        wrong=[*wrong, *_on_cordoned(truth, before)] if before else wrong,
        causes={cause for cause in truth.causes.values() if cause},
        states={gang.name: _state(truth, gang) for gang in truth.gangs},
        nodes=len(truth.by_kind["Node"]),
        waiting=sum(bool(gang.waiting) for gang in truth.gangs),
        releasing=any(map(deleted, truth.by_kind["Pod"])),
        unanswered=any("status" not in request for request in truth.by_kind["BindRequest"]),
        reasons={reason["reason"] for gang in truth.gangs for c in _conditions(gang) for reason in c["reasons"]},
    )


def _overfull(truth: Truth) -> Iterator[str]:
    for node in truth.by_kind["Node"]:
        name, room = node["metadata"]["name"], node["status"]["allocatable"]
        limits = {
            "gpu": int(room.get("nvidia.com/gpu", 0)),
            "cpu": int(room["cpu"].removesuffix("m")),
            "memory": int(room["memory"].removesuffix("Mi")),
            "pods": int(room["pods"]),
        }
        yield from (f"{name} has too much {what}" for what, most in limits.items() if truth.used[name][what] > most)


def _torn(truth: Truth) -> Iterator[str]:
    """Yield gangs that are placed in part, or where their own constraints forbid."""
    labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in truth.by_kind["Node"]}
    for gang in truth.gangs:
        nodes = [node for node in map(truth.node_of, gang.pods) if node]
        selector = gang.selector
        if len(nodes) not in (0, len(gang.pods)):
            yield f"{gang.name} is placed in part"
        if not all(selector.items() <= labels[node].items() for node in nodes):
            yield f"{gang.name} is on a node it did not select"
        if gang.level and len({labels[node][gang.level] for node in nodes}) > 1:
            yield f"{gang.name} is spread over several domains"


def _over_terms(truth: Truth) -> Iterator[str]:
    for name, queue in truth.queues.items():
        terms = queue["spec"]["resources"]["gpu"]
        if terms["limit"] != -1 and truth.allocated(name) > terms["limit"]:
            yield f"{name} is over its limit"
        if truth.allocated(name, protected_only=True) > terms["quota"]:
            yield f"{name} has more non-preemptible work than its quota"


def _conditions(gang: Gang) -> list[Any]:
    return list(gang.group["status"].get("schedulingConditions", ()))


def _misreported(truth: Truth) -> Iterator[str]:
    for gang in truth.gangs:
        ready = len(gang.pods) >= gang.minimum and not any(pod["spec"].get("schedulingGates") for pod in gang.pods)
        if _conditions(gang) and not (gang.waiting and ready):
            yield f"{gang.name} has a condition though it runs or is not ready"


def _on_cordoned(truth: Truth, before: dict[str, str]) -> Iterator[str]:
    cordoned = {node["metadata"]["name"] for node in truth.by_kind["Node"] if node["spec"].get("unschedulable")}
    new = {uid: node for uid, node in _placed(truth).items() if uid not in before}
    yield from (f"{uid} was placed on {node}, which is cordoned" for uid, node in new.items() if node in cordoned)


def _state(truth: Truth, gang: Gang) -> str:
    return truth.causes[gang.name] or "starts" if gang.waiting else "placed"


def test_nothing_impossible_ever_happens(history: History) -> None:
    """No node or queue over its amounts, all of a gang or nothing, in one rack where it must be."""
    assert [(number, moment.wrong) for number, moment in enumerate(history.moments) if moment.wrong] == []


def test_every_cause_is_there_at_every_step(history: History) -> None:
    missing = [(number, ALWAYS - moment.causes) for number, moment in enumerate(history.moments)]
    assert [entry for entry in missing if entry[1]] == []


def test_about_sixty_gangs_of_which_a_third_waits(history: History) -> None:
    for moment in history.moments:
        assert moment.nodes == 40
        assert 45 <= len(moment.states) <= 75
        assert 15 <= moment.waiting <= 35


def test_timelines_move(history: History) -> None:
    """In any four minutes gangs come, go, start, or change the cause they wait for, many times."""
    window = 19
    for start in range(0, len(history.moments) - window, window):
        steps = list(pairwise(moment.states for moment in history.moments[start : start + window + 1]))
        changes = sum(old[name] != new[name] for old, new in steps for name in old.keys() & new.keys())
        assert changes >= 8
        assert sum(len(old.keys() ^ new.keys()) for old, new in steps) >= 8


def test_some_release_and_some_are_being_bound(history: History) -> None:
    assert any(moment.releasing for moment in history.moments)
    assert any(moment.unanswered for moment in history.moments)


def test_conditions_name_every_reason(history: History) -> None:
    reasons = set[str]().union(*(moment.reasons for moment in history.moments))
    words = {"OverLimit", "NonPreemptibleOverQuota", "QueueDoesNotExist", "PodSchedulingErrors"}

    assert reasons == words | {"Not enough resources for the workload"}


def test_every_owner_and_every_pod_group_exists(history: History) -> None:
    everything = [obj for objects in history.last.by_kind.values() for obj in objects]
    uids = {obj["metadata"]["uid"]: obj for obj in everything}
    assert len(uids) == len(everything)
    for obj in everything:
        for reference in obj["metadata"].get("ownerReferences", ()):
            owner = uids[reference["uid"]]
            assert (owner["kind"], owner["metadata"]["name"]) == (reference["kind"], reference["name"])
    evicted = "kai.scheduler/last-eviction-timestamp"
    assert all(gang.pods or evicted in gang.group["metadata"]["annotations"] for gang in history.last.gangs)


def test_events_stop_at_their_allowance(history: History) -> None:
    events = history.last.by_kind["Event"]
    reasons = {(event["involvedObject"]["kind"], event["reason"]) for event in events}

    # 25 at once and one each five minutes, of which an event sees three before it is forgotten.
    counts = {event["count"] for event in events}
    assert 25 in counts
    assert max(counts) <= 25 + 20
    assert {("PodGroup", "Unschedulable"), ("Pod", "Unschedulable"), ("PodGroup", "NotReady")} <= reasons
    assert {("Pod", "Scheduled"), ("Pod", "Bound"), ("Pod", "Failed")} <= reasons
    assert ("Pod", "Pipelined") in reasons


def test_replay_explains_each_scene_by_its_own_code(history: History) -> None:
    items = [obj for objects in history.last.by_kind.values() for obj in objects]
    dump = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()
    diagnosis = replay(snapshot_of(load_bytes(dump, name="demo", as_of=history.now)))

    assert {str(entry.code) for entry in diagnosis.explanations} >= CODES
    assert diagnosis.oddities == []


def test_secrets_are_planted_where_people_put_them(history: History) -> None:
    pod = next(gang.pods[0] for gang in history.last.gangs if not gang.group["metadata"].get("ownerReferences"))
    container = pod["spec"]["containers"][0]

    for part in (container["env"], container["args"], container["command"], pod["spec"]["imagePullSecrets"]):
        assert PLANTED_SECRET in json.dumps(part)
    assert PLANTED_SECRET in pod["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]


def test_same_seed_plays_the_same_piece() -> None:
    def play(seed: int) -> str:
        world = World(seed, NOW)
        for number in range(1, 4):
            world.step(NOW + timedelta(seconds=60 * number))
        return json.dumps(list(cluster_objects(world)))

    assert play(5) == play(5)
    assert play(5) != play(6)


def test_publishing_writes_changes_only() -> None:
    demo = Demo(ObjectStore(), 1, NOW)
    before = demo.store.revision
    demo.publish()
    assert demo.store.revision == before
    demo.step(NOW + timedelta(seconds=5))
    assert before < demo.store.revision < before + 300
