"""What was checked for a waiting gang and holds: queue limits and quotas, room on one node, in all, in one domain.

Margins say what is not the cause, so that nobody turns the wrong screw. They are read from the session as it opened;
what binds is never repeated here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.holders import usable_nodes
from gangdash.engine.explain.queues import RESOURCES, chain, used_by
from gangdash.engine.explain.room import NOTHING, Room
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.rules.steps import step_amounts
from gangdash.engine.session import GPU
from gangdash.engine.verdict import Constraint

SHOWN = 8
_PER_NODE = (
    ("gpu", ConstraintId.NODE_GPU, Unit.GPU),
    ("cpu", ConstraintId.NODE_CPU, Unit.MILLICORES),
    ("memory", ConstraintId.NODE_MEMORY, Unit.BYTES),
)


def is_met(entry: Constraint) -> bool | None:
    """Whether a numeric constraint holds; None for one whose need is a name or whose state is not known."""
    if isinstance(entry.need, str) or isinstance(entry.have, str | None):
        return None
    return entry.need <= entry.have


def split(binding: Iterable[Constraint], slack: Iterable[Constraint]) -> tuple[list[Constraint], list[Constraint]]:
    """Return what binds without what is met, and what is met without what binds, each thing once."""
    entries = list(dict.fromkeys(binding))
    bound = [entry for entry in entries if is_met(entry) is not True]
    taken = {(entry.id, entry.scope) for entry in bound}
    met: dict[tuple[ConstraintId, str], Constraint] = {}
    for entry in [*slack, *(entry for entry in entries if is_met(entry))]:
        if is_met(entry) and (entry.id, entry.scope) not in taken:
            met.setdefault((entry.id, entry.scope), entry)
    return bound, list(met.values())[:SHOWN]


def margins(gang: Gang, room: Room | None) -> Iterator[Constraint]:
    """Yield what holds for the gang's next step, the gang's own queue first; met and unmet alike, ``split`` chooses."""
    job = gang.job
    if job is None or room is None:
        return
    yield from _queues(gang, room)
    for name, id_, unit in _PER_NODE:
        slot = room.session.layout.index[name]
        if any(item.task.request[slot] > 0 for item in room.classes) and not (slot == GPU and _shares(room)):
            yield _best_node(room, slot, id_, unit)
    if not _shares(room) and (need := sum(task.request[GPU] for task in room.tasks)):
        free = sum(max(room.supply(node, NOTHING)[GPU], 0.0) for node in usable_nodes(room))
        yield Constraint(ConstraintId.CLUSTER_GPU, "nodes it may use", need, free, Unit.GPU, "free GPUs")


def _shares(room: Room) -> bool:
    """Whether some pod asks for part of a device, which sums of devices say nothing about."""
    return any(item.task.asks_shared_gpu for item in room.classes)


def _queues(gang: Gang, room: Room) -> Iterator[Constraint]:
    asked = step_amounts(room.session, room.job, real=True)
    for queue in chain(gang):
        for resource in RESOURCES[::-1]:
            need, limit, quota = asked[resource.index], queue.limit[resource.index], queue.deserved[resource.index]
            if need and limit >= 0:
                total = used_by(queue, resource) + need
                yield Constraint(
                    resource.limit_id, queue.name, total, limit, resource.unit, f"Queue/{queue.name} limit"
                )
            if need and quota >= 0 and not room.job.is_preemptible:
                total = used_by(queue, resource, non_preemptible=True) + need
                source = f"Queue/{queue.name} quota of non-preemptible gangs"
                yield Constraint(resource.quota_id, queue.name, total, quota, resource.unit, source)


def _best_node(room: Room, slot: int, id_: ConstraintId, unit: Unit) -> Constraint:
    """Return what the largest pod asks of one resource beside what the node with most of it has free."""
    free = {node.name: max(room.supply(node, NOTHING)[slot], 0.0) for node in usable_nodes(room)}
    best = max(sorted(free), key=lambda name: free[name], default="no node")
    each = max(item.task.request[slot] for item in room.classes)
    return Constraint(id_, best, each, free.get(best, 0.0), unit, "free on the best node")
