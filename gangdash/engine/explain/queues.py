"""A gang's queue and its parents: what each allows, what the scheduler counts as used. Units are the documents'."""

from __future__ import annotations

from dataclasses import dataclass

from gangdash.engine.explain.gang import Gang
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.statement import QueueState


@dataclass(frozen=True, slots=True)
class Resource:
    """One of the three resources that queues count; ``index`` is its place in an amounts tuple."""

    name: str
    index: int
    unit: Unit
    limit_id: ConstraintId
    quota_id: ConstraintId
    share_id: ConstraintId


RESOURCES = (
    Resource(
        "CPU",
        0,
        Unit.MILLICORES,
        ConstraintId.QUEUE_LIMIT_CPU,
        ConstraintId.QUEUE_QUOTA_CPU,
        ConstraintId.QUEUE_FAIR_SHARE_CPU,
    ),
    Resource(
        "memory",
        1,
        Unit.BYTES,
        ConstraintId.QUEUE_LIMIT_MEMORY,
        ConstraintId.QUEUE_QUOTA_MEMORY,
        ConstraintId.QUEUE_FAIR_SHARE_MEMORY,
    ),
    Resource(
        "GPU",
        2,
        Unit.GPU,
        ConstraintId.QUEUE_LIMIT_GPU,
        ConstraintId.QUEUE_QUOTA_GPU,
        ConstraintId.QUEUE_FAIR_SHARE_GPU,
    ),
)


def chain(gang: Gang) -> tuple[QueueState, ...]:
    """Return the scheduler's view of the gang's queue and of every queue above it, the leaf first."""
    if gang.shard is None:
        return ()
    found = gang.context.session(gang.shard).queues.get(gang.podgroup.queue)
    return found.ancestors if found is not None else ()


def used_by(queue: QueueState, resource: Resource, *, non_preemptible: bool = False) -> float:
    """Return what the scheduler counts as used in a queue when its session opens."""
    amounts = queue.allocated_non_preemptible if non_preemptible else queue.allocated
    return amounts[resource.index]


def is_unset(queue: QueueState, resource: Resource, field: str) -> bool:
    """Whether the spec does not name the number at all, so that it counts as 0."""
    spec = queue.queue
    part = (spec.cpu, spec.memory, spec.gpu)[resource.index]
    return part is None or getattr(part, field) is None
