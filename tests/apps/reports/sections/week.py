"""A simulated week: first as plain records, then as rows. What is right is computed from the records alone.

Every moment is a whole minute and every amount a whole number, so that counting minute by minute gives exact sums.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from apps.clusters.models import Cluster, PollRun
from apps.diagnosis.models import ExplanationRecord, ReasonTimeline, Snapshot
from apps.inventory.models import CapacitySample, Node, Queue, StateChange, Topology
from apps.workloads.models import Attempt, Gang

START = datetime(2026, 11, 16, 8, 0, tzinfo=UTC)
MINUTES = 7 * 24 * 60
END = START + timedelta(minutes=MINUTES)
QUEUES = {"chat": (24, -1), "batch": (8, 20), "lab": (16, 16), "open": (-1, -1)}
"""Quota and limit; all are children of one parent."""
WAITS = (("NO_FIT", "GPUS_BUSY"), ("NO_FIT", "DOMAIN_BUSY"), ("POLICY", "QUEUE_LIMIT"), ("CONFIG", "QUEUE_MISSING"),
         ("GATED", "SCHEDULING_GATE"), ("EVICTED", "RECLAIMED"), ("STUCK", "BIND_FAILING"), ("NO_FIT", "DOMAIN_TOO_SMALL"))  # fmt: skip  # noqa: E501
RACKS, NODES_A_RACK, GPUS_A_NODE = 4, 5, 8


@dataclass(slots=True)
class Stretch:
    """From one minute to another (None: still open) of the week; negative minutes are before it."""

    verdict: str
    code: str
    state: str
    gpus: int
    opened: int
    closed: int | None


@dataclass(slots=True)
class SimGang:
    name: str
    queue: str
    gpus: int
    created: int
    stretches: list[Stretch] = field(default_factory=list)
    gone: int | None = None
    bound: int | None = None
    evicted: int | None = None


@dataclass(slots=True)
class Week:
    gangs: list[SimGang]
    samples: list[tuple[int, dict[str, int], dict[str, tuple[int, int, int, int, int]]]]
    changes: list[tuple[str, int, str, str]]
    """Node, minute, state, state before."""
    polls: list[tuple[int, str, list[str]]]
    """Minute, outcome, kinds that were not read."""


def simulate(seed: int, *, gangs: int = 120) -> Week:
    dice = random.Random(seed)
    return Week(
        gangs=[_gang(dice, number) for number in range(gangs)],
        samples=[_sample(dice, minute) for minute in range(-9 * 1440, MINUTES, 97)],
        changes=_changes(dice),
        polls=_polls(),
    )


def _gang(dice: random.Random, number: int) -> SimGang:
    gpus = dice.choice((1, 2, 4, 8, 8, 16, 32, 72))
    gang = SimGang(f"gang-{number}", dice.choice(sorted(QUEUES)), gpus, dice.randrange(-MINUTES // 2, MINUTES - 60))
    at = gang.created
    steps = dice.choice((1, 2, 3, 8, 30))
    for step in range(steps):
        length = dice.choice((3, 5, 9, 40, 600, 3000))
        verdict, code = dice.choice(WAITS)
        runs = step and dice.random() < 0.4
        if runs and gang.stretches[-1].state == "waits":
            verdict, code = "HEALTHY", "RUNNING"
            gang.bound = at if gang.bound is None else gang.bound
        elif verdict == "EVICTED" and not (gang.stretches and gang.stretches[-1].state == "fine"):
            verdict, code = WAITS[0]
        state = "fine" if verdict == "HEALTHY" else "waits"
        if gang.stretches and (gang.stretches[-1].verdict, gang.stretches[-1].code) == (verdict, code):
            continue
        if verdict == "EVICTED":
            gang.evicted = at
        gang.stretches.append(Stretch(verdict, code, state, gpus if state == "waits" else 0, at, at + length))
        at += length
    if dice.random() < 0.5:
        gang.gone = at
    else:
        gang.stretches[-1].closed = None
    return gang


def _sample(dice: random.Random, minute: int) -> tuple[int, dict[str, int], dict[str, tuple[int, int, int, int, int]]]:
    held = {name: dice.randrange(0, 30) for name in QUEUES}
    domains: dict[str, tuple[int, int, int, int, int]] = {}
    for rack in range(RACKS):
        free = dice.randrange(NODES_A_RACK + 1)
        part = dice.randrange(8) if free < NODES_A_RACK else 0
        lost = dice.choice((0, 0, 8)) if free < NODES_A_RACK - 1 else 0
        gpus = NODES_A_RACK * GPUS_A_NODE
        domains[f"main|rack-{rack}"] = (gpus, free * GPUS_A_NODE + part, lost, NODES_A_RACK, free)
    sums = [sum(entry[at] for entry in domains.values()) for at in range(5)]
    return minute, held, {"": (sums[0], sums[1], sums[2], sums[3], sums[4]), **domains}


def _changes(dice: random.Random) -> list[tuple[str, int, str, str]]:
    found: list[tuple[str, int, str, str]] = []
    for number in range(RACKS * NODES_A_RACK):
        name, state, at = f"node-{number}", "ready", -4000
        found.append((name, at, state, ""))
        for _ in range(dice.choice((0, 0, 1, 2, 5))):
            at += dice.randrange(60, 5000)
            other = dice.choice([s for s in ("ready", "cordoned", "not_ready", "tainted") if s != state])
            if at < MINUTES:
                found.append((name, at, other, state))
                state = other
    return sorted(found, key=lambda change: change[1])


def _polls() -> list[tuple[int, str, list[str]]]:
    found: list[tuple[int, str, list[str]]] = []
    for minute in range(MINUTES):
        if 3000 <= minute < 3010 or 7000 <= minute < 7003:
            found.append((minute, "failed", []))
            continue
        unread = ["ResourceClaim"] if 5000 <= minute < 5100 else []
        found.append((minute, "partial" if unread else "read", unread))
    return found


def at(minute: int) -> datetime:
    return START + timedelta(minutes=minute)


def store(week: Week, *, name: str = "fjord-1") -> Cluster:
    """Write the week as the store would have kept it."""
    cluster = Cluster.objects.create(name=name, source="folder", read_as_of=END, diagnosed_as_of=END)
    Cluster.objects.filter(pk=cluster.pk).update(added_at=START - timedelta(days=20))
    Queue.objects.create(cluster=cluster, name="dept", is_leaf=False, gpu_quota=48, gpu_limit=-1, fingerprint="-")
    for queue, (quota, limit) in QUEUES.items():
        Queue.objects.create(cluster=cluster, name=queue, parent="dept", gpu_quota=quota, gpu_limit=limit,
                             fingerprint="-")  # fmt: skip
    Topology.objects.create(cluster=cluster, name="main", fingerprint="-",
                            levels=[{"label": "example.com/rack", "alias": "rack"},
                                    {"label": "kubernetes.io/hostname", "alias": ""}])  # fmt: skip
    Node.objects.bulk_create(
        Node(cluster=cluster, name=f"node-{number}", state="ready", gpus=GPUS_A_NODE, fingerprint="-")
        for number in range(RACKS * NODES_A_RACK)
    )
    _store_gangs(cluster, week)
    CapacitySample.objects.bulk_create(
        CapacitySample(cluster=cluster, at=at(minute), domains=domains,
                       queues={queue: [amount, None] for queue, amount in held.items()})
        for minute, held, domains in week.samples
    )  # fmt: skip
    StateChange.objects.bulk_create(
        StateChange(cluster=cluster, kind="Node", subject=node, at=at(minute), state=state, was=was)
        for node, minute, state, was in week.changes
    )
    PollRun.objects.bulk_create(
        PollRun(cluster=cluster, started_at=at(minute), ended_at=at(minute), outcome=outcome,
                detail="refused" if outcome == "failed" else "",
                kinds=[{"kind": kind, "reason": "403"} for kind in unread])
        for minute, outcome, unread in week.polls
    )  # fmt: skip
    return cluster


def _store_gangs(cluster: Cluster, week: Week) -> None:
    snapshot = Snapshot.objects.create(
        cluster=cluster, as_of=END, engine="1.0.0", started_at=END, ended_at=END, outcome="done"
    )
    for number, gang in enumerate(week.gangs):
        row = Gang.objects.create(
            cluster=cluster, uid=gang.name, namespace="team", name=gang.name, queue=gang.queue, gpus=gang.gpus,
            created_at=at(gang.created), first_seen_at=at(gang.created), last_seen_at=END,
            gone_at=None if gang.gone is None else at(gang.gone),
            waiting_since=at(MINUTES + 60) if number % 2 else None,
        )  # fmt: skip
        ReasonTimeline.objects.bulk_create(
            ReasonTimeline(
                gang=row, verdict=part.verdict, code=part.code, who="cluster_admin", state=part.state,
                sentence=f"Waits under {part.code}.", gpus=part.gpus, opened_at=at(part.opened),
                closed_at=None if part.closed is None else at(part.closed),
            )
            for part in gang.stretches
        )  # fmt: skip
        Attempt.objects.create(
            cluster=cluster, gang=row, lineage=f"lineage-{number % 7}", created_at=at(gang.created),
            seen_at=at(gang.created), bound_at=None if gang.bound is None else at(gang.bound),
            ended_at=None if gang.gone is None else at(gang.gone),
            evictions=sum(part.verdict == "EVICTED" for part in gang.stretches),
            evicted_at=None if gang.evicted is None else at(gang.evicted),
        )  # fmt: skip
        ExplanationRecord.objects.create(
            snapshot=snapshot, gang=row, verdict=gang.stretches[-1].verdict, code=gang.stretches[-1].code,
            who="cluster_admin", certainty="proved", sentence="-", document=document(number, gang),
        )  # fmt: skip


def document(number: int, gang: SimGang) -> str:
    """Return an explanation: what a report reads of it, and the least that a page needs."""
    match = ("agree", "less_specific", "disagree", "silent", "stale")[number % 5]
    binding = {"id": "domain.gpu", "scope": "rack-1", "need": gang.gpus, "have": max(gang.gpus - 3, 0), "unit": "gpu",
               "source": "Topology/main"}  # fmt: skip
    content: dict[str, object] = {
        "gang": {"namespace": "team", "name": gang.name, "uid": gang.name, "kind": "PodGroup", "owner": None},
        "verdict": gang.stretches[-1].verdict, "code": gang.stretches[-1].code, "who": "cluster_admin",
        "certainty": "proved" if number % 3 else "unproven", "sentence": "-", "shard": "", "stage": None,
        "waiting_since": None, "binding": [binding], "slack": [], "nodes": [], "holders": [], "fixes": [],
        "members": {"needed": 1, "fit": 0, "unfit": 1, "not_evaluated": 0}, "fixes_refused": number % 4,
        "waiting": {"helps": "unknown", "until": None, "on": []}, "also": [],
        "scheduler": {"text": None, "at": None, "match": match}, "as_of": "2026-11-23T08:00:00Z", "digest": "sha256:0",
        "engine": "1.0.0", "not_read": [], "not_modelled": [],
    }  # fmt: skip
    return msgspec.json.encode(content).decode()
