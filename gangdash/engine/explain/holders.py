"""Who holds what the gang needs, and could the scheduler take it from them?

A holder may be evicted by reclaim (another queue, preemptible, its queue above its share) or by preemption (same queue,
preemptible, lower priority). Pods outside any gang are never evicted by KAI.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.room import NOTHING, Room
from gangdash.engine.session import GPU, JobState, NodeState, Placed, TaskState
from gangdash.engine.verdict import Holder

SHOWN = 10


def holders_on(
    gang: Gang, room: Room, *, slot: int = GPU, nodes: Iterable[NodeState] | None = None
) -> tuple[Holder, ...]:
    """Return who holds the resource of ``slot`` on nodes that the step may use, or on those given; largest first."""
    held: dict[str, float] = defaultdict(float)
    gpus: dict[str, float] = defaultdict(float)
    why: dict[str, str] = {}
    for node in usable_nodes(room) if nodes is None else nodes:
        for placed in node.placed.values():
            task = placed.task
            amount = gpus_held(placed) if slot == GPU else placed.charge[slot]
            if task.job is room.job or task.is_reservation or amount <= 0:
                continue
            key = holder_key(task)
            held[key] += amount
            gpus[key] += gpus_held(placed)
            why[key] = evictable(gang, room.job, task)
    ranked = sorted(held, key=lambda key: (-held[key], key))[:SHOWN]
    return tuple(Holder(key, round(gpus[key], 6), why[key]) for key in ranked)


def holding_jobs(room: Room) -> list[JobState]:
    """Return the gangs that hold GPUs, or anything for a step without GPUs, on nodes that the step may use."""
    wants_gpu = any(item.task.asks_gpu for item in room.classes)
    found = {
        placed.task.job.key: placed.task.job
        for node in usable_nodes(room)
        for placed in node.placed.values()
        if placed.task.job is not None and placed.task.job is not room.job and (gpus_held(placed) > 0 or not wants_gpu)
    }
    return [found[key] for key in sorted(found)]


def usable_nodes(room: Room) -> list[NodeState]:
    """Return the nodes that some class of the step may use, amounts aside."""
    return [node for node in room.nodes if any(room.allows(i, node, NOTHING) for i in range(len(room.classes)))]


def gpus_held(placed: Placed) -> float:
    return placed.task.accepted_amounts[2] or placed.charge[2]


def holder_key(task: TaskState) -> str:
    """Return ``namespace/name`` of the holder's gang, or of the pod where it is in none."""
    return task.job.full_name if task.job is not None else task.key


def evictable(gang: Gang, job: JobState, task: TaskState) -> str:
    """Return whether KAI could evict the holder for the gang, and if not, why not."""
    if task.pod.meta.deleted is not None:
        return "yes: already terminating"
    owner = task.job
    if owner is None:
        name = task.pod.scheduler_name
        return f"no: placed by {name}, in no gang" if name not in gang.context.scheduler_names else "no: in no gang"
    if not owner.is_preemptible:
        return "no: non-preemptible"
    if owner.queue == job.queue:
        return _within_queue(job, owner)
    return "by reclaim, if its queue is above its share"


def _within_queue(job: JobState, owner: JobState) -> str:
    if owner.priority >= job.priority:
        relation = "equal" if owner.priority == job.priority else "higher"
        return f"no: {relation} priority in the same queue"
    return "by preemption: lower priority in the same queue"
