"""What one reading adds to the history: steps of gangs, changes of nodes and of parts of the platform, samples.

Written in the transaction of the rows, so that a poll that breaks adds nothing and one that runs twice adds it once.
A step keeps the time it was first made. What was not read leaves its history alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Max, Q, Sum

from apps.clusters.models import Cluster
from apps.collector.attempts import Progress, progress_of
from apps.collector.rows import node_state
from apps.inventory.models import CapacitySample, Domain, Node, Queue, StateChange
from apps.inventory.selectors import CLUSTER_KEY
from apps.workloads.models import Attempt, Gang
from gangdash.engine.chain.index import Index
from gangdash.engine.chain.platform import DYNAMO_OPERATOR, GROVE_OPERATOR, KAI_PARTS, NVCA, NVCA_OPERATOR, Platform
from gangdash.engine.model.cluster import ClusterSnapshot

BATCH = 500
SAMPLE_EVERY = timedelta(minutes=5)
GONE = "gone"
EVICTIONS_KEPT = 8
"""Times of evictions that an attempt keeps: more than make a loop."""
STEPS = ("requested_at", "created_at", "decided_at", "bound_at", "ready_at")
_WRITTEN = (*STEPS, "gated_at", "gates_removed_at", "evicted_at", "evictions", "eviction_times", "is_bound", "ended_at")
_PARTS = (*KAI_PARTS, GROVE_OPERATOR, DYNAMO_OPERATOR, NVCA, NVCA_OPERATOR)

State = tuple[str, str]
"""State and reason."""


@dataclass(frozen=True, slots=True)
class FoundHistory:
    """What a reading shows; None where what it is made of was not read. ``states`` by kind, then by name."""

    progress: Mapping[str, Progress] | None
    states: Mapping[str, Mapping[str, State]]


def found_history(snapshot: ClusterSnapshot) -> FoundHistory:
    """Return what a reading shows of the things that history follows."""
    states: dict[str, dict[str, State]] = {}
    if snapshot.was_read("Node"):
        states["Node"] = {node.name: _texts(*node_state(node)) for node in snapshot.nodes}
    if snapshot.was_read("Deployment"):
        states["Deployment"] = _parts(snapshot)
    knows_gangs = snapshot.was_read("PodGroup") and snapshot.was_read("Pod")
    return FoundHistory(progress_of(snapshot) if knows_gangs else None, states)


def _texts(state: object, reason: str) -> State:
    return str(state), reason[:253]


def _parts(snapshot: ClusterSnapshot) -> dict[str, State]:
    """Return the parts of the platform that are there, by namespace and name of their Deployment."""
    platform = Platform(Index(snapshot))
    found = (platform.find(part) for part in _PARTS)
    return {
        running.deployment.meta.key[:512]: (
            "ready" if 0 < running.wanted <= running.ready else "partly" if running.ready else "down",
            f"{running.ready} of {running.wanted} replicas ready",
        )
        for running in found
        if running is not None
    }


def history_sync(*, cluster: Cluster, found: FoundHistory, now: datetime) -> None:
    """Write what a reading adds."""
    if found.progress is not None:
        _sync_attempts(cluster, found.progress, now)
    for kind, states in found.states.items():
        _sync_states(cluster, kind, states, now)


# Attempts


def _sync_attempts(cluster: Cluster, progress: Mapping[str, Progress], now: datetime) -> None:
    open_ones = Attempt.objects.filter(cluster=cluster, ended_at=None).select_related("gang")
    known = {attempt.gang.uid: attempt for attempt in open_ones}
    ended = [_ended(attempt, now) for uid, attempt in known.items() if uid not in progress]
    changed = [known[uid] for uid, step in progress.items() if uid in known and attempt_advance(known[uid], step, now)]
    Attempt.objects.bulk_update([*ended, *changed], _WRITTEN, BATCH)
    _open_attempts(cluster, [step for uid, step in progress.items() if uid not in known], now)


def _ended(attempt: Attempt, now: datetime) -> Attempt:
    attempt.ended_at = attempt.gang.gone_at or now
    return attempt


def _open_attempts(cluster: Cluster, steps: list[Progress], now: datetime) -> None:
    """Make the rows of gangs that are new; one that was taken for gone goes on with the row it had."""
    gangs = dict(Gang.objects.filter(cluster=cluster, uid__in=[s.uid for s in steps]).values_list("uid", "pk"))
    back = {row.gang_id: row for row in Attempt.objects.filter(gang__in=list(gangs.values()))}
    counts = _ended_counts(cluster, {step.lineage for step in steps})
    new, returned = [], []
    for step in steps:
        row = back.get(gangs[step.uid])
        if row is None:
            row = Attempt(cluster=cluster, gang_id=gangs[step.uid], lineage=step.lineage, seen_at=now)
            row.number = counts.get(step.lineage, 0) + 1
            new.append(row)
        else:
            row.ended_at = None
            returned.append(row)
        attempt_advance(row, step, now)
    Attempt.objects.bulk_create(new, BATCH)
    Attempt.objects.bulk_update(returned, _WRITTEN, BATCH)


def _ended_counts(cluster: Cluster, lineages: Iterable[str]) -> dict[str, int]:
    rows = Attempt.objects.filter(cluster=cluster, lineage__in=list(lineages)).exclude(ended_at=None)
    return dict(rows.order_by().values_list("lineage").annotate(ended=Count("pk")))


def attempt_advance(attempt: Attempt, step: Progress, now: datetime) -> bool:
    """Apply what a reading shows to an attempt and return whether that changed it."""
    before = [getattr(attempt, name) for name in _WRITTEN]
    for name in STEPS:
        setattr(attempt, name, getattr(attempt, name) or getattr(step, name))
    if step.is_gated:
        attempt.gated_at = attempt.gated_at or now
    elif attempt.gated_at:
        attempt.gates_removed_at = attempt.gates_removed_at or now
    if attempt.is_bound and step.has_lost:
        attempt.evicted_at, attempt.evictions = now, attempt.evictions + 1
        attempt.eviction_times = [*attempt.eviction_times, now.timestamp()][-EVICTIONS_KEPT:]
    attempt.is_bound = not step.has_lost and attempt.bound_at is not None
    return before != [getattr(attempt, name) for name in _WRITTEN]


# Nodes and parts of the platform


def _sync_states(cluster: Cluster, kind: str, found: Mapping[str, State], now: datetime) -> None:
    before = states_now(cluster=cluster, kind=kind)
    changes = {name: state for name, state in found.items() if before.get(name, ("", ""))[0] != state[0]}
    changes |= {name: (GONE, "") for name, (was, _) in before.items() if name not in found and was != GONE}
    StateChange.objects.bulk_create(
        [
            StateChange(
                cluster=cluster, kind=kind, subject=name, at=now, state=state, reason=reason,
                was=before.get(name, ("", ""))[0],
            )
            for name, (state, reason) in changes.items()
        ],
        BATCH,
        ignore_conflicts=True,
    )  # fmt: skip


def states_now(*, cluster: Cluster, kind: str) -> dict[str, State]:
    """Return the newest state of each subject of a kind that was ever seen, gone ones too."""
    rows = StateChange.objects.filter(cluster=cluster, kind=kind)
    newest = rows.order_by().values("subject").annotate(newest=Max("pk")).values("newest")
    found = rows.filter(pk__in=newest).values_list("subject", "state", "reason")
    return {subject: (state, reason) for subject, state, reason in found}


# Samples


def capacity_sample(*, cluster: Cluster, now: datetime) -> None:
    """Keep shares and free capacity as they are now, unless that was done a moment ago or nothing has changed."""
    last = CapacitySample.objects.filter(cluster=cluster).order_by("-at").first()
    if last is not None and now - last.at < SAMPLE_EVERY:
        return
    queues = {
        name: _shares(cycle) for name, cycle in Queue.objects.filter(cluster=cluster).values_list("name", "cycle")
    }
    domains = _capacities(cluster)
    if last is None or (last.queues, last.domains) != (queues, domains):
        CapacitySample.objects.create(cluster=cluster, at=now, queues=queues, domains=domains)


def _shares(cycle: list[dict[str, Any]]) -> list[float | None]:
    """Return what a queue holds and its fair share in GPUs, summed over the shards in which it plays."""
    allocated = [entry["allocated_before"]["gpu"] for entry in cycle]
    shares = [entry["fair_share"]["gpu"] for entry in cycle if entry["fair_share"]]
    return [sum(allocated) if allocated else None, _fair_share(shares)]


def _fair_share(shares: list[float]) -> float | None:
    """Return the sum; unlimited (-1) in one shard is unlimited in all."""
    if not shares:
        return None
    return -1.0 if any(share < 0 for share in shares) else sum(shares)


def _capacities(cluster: Cluster) -> dict[str, list[float]]:
    rows = Domain.objects.filter(cluster=cluster).order_by("topology", "path")
    found = {
        f"{topology}|{path}": amounts
        for topology, path, *amounts in rows.values_list(
            "topology", "path", "gpus", "gpus_free", "gpus_lost", "nodes", "nodes_free"
        )
    }
    with_gpus = Q(gpus__gt=0)
    totals = Node.objects.filter(cluster=cluster).aggregate(
        total=Sum("gpus", default=0.0),
        free=Sum("gpus_free", default=0.0),
        lost=Sum("gpus_lost", default=0.0),
        nodes=Count("pk", filter=with_gpus),
        nodes_free=Count("pk", filter=with_gpus & Q(gpus_free=F("gpus"))),
    )
    return {CLUSTER_KEY: [totals[name] for name in ("total", "free", "lost", "nodes", "nodes_free")], **found}
