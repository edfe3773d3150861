"""Rules on evictions that keep holders where they are: delay, minimum run time, fair share, protection."""

from __future__ import annotations

from dataclasses import replace

from gangdash.engine.explain.blocked import Blocked
from gangdash.engine.explain.build import first, named, spoken
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.holders import holders_on, holding_jobs
from gangdash.engine.explain.lifts import Rule
from gangdash.engine.explain.queues import Resource, chain, used_by
from gangdash.engine.explain.room import UNPROTECTED, Room
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.rules.minruntime import MinRuntime
from gangdash.engine.session import QueueState
from gangdash.engine.verdict import Amount, Certainty, Constraint, FactValue, Finding, Holder, ReasonCode, Waiting


def delay(case: Blocked) -> Finding:
    gang, room = case.gang, case.room
    delay = gang.podgroup.preemption_delay or 0.0
    job = gang.job
    anchor = max(gang.meta.created or 0.0, (job.last_eviction or 0.0) if job is not None else 0.0)
    until = anchor + delay
    holders = _evictable_holders(gang, room)
    return Finding(
        ReasonCode.PREEMPTION_DELAY,
        facts={"until": until, "delay": delay, "holders": _spoken(holders)},
        binding=(
            Constraint(
                ConstraintId.PREEMPTION_DELAY,
                gang.meta.name,
                delay,
                max(gang.as_of - anchor, 0.0),
                Unit.SECONDS,
                f"PodGroup/{gang.podgroup.key} spec.preemptionDelay",
            ),
        ),
        holders=holders,
        waiting=Waiting(helps="yes", until=until, on=("end of the preemption delay",)),
    )


def _evictable_holders(gang: Gang, room: Room) -> tuple[Holder, ...]:
    found = holders_on(gang, room)
    return tuple(holder for holder in found if not holder.evictable.startswith("no")) or found


def _spoken(holders: tuple[Holder, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(spoken(holder.gang.rsplit("/", 1)[-1]) for holder in holders))


def min_runtime(case: Blocked) -> Finding:
    gang, room = case.gang, case.room
    until = _protected_until(gang, room)
    holders = _evictable_holders(gang, room)
    return Finding(
        ReasonCode.HOLDERS_PROTECTED,
        form="min_runtime" if until is not None else "min_runtime_open",
        facts={
            "queue": gang.podgroup.queue,
            "need": case.need,
            "holders": _spoken(holders),
            "count": len(holders),
            "until": until,
        },
        binding=(
            named(
                ConstraintId.PREEMPTION_MIN_RUNTIME,
                ", ".join(holder.gang for holder in holders[:3]),
                "minimum run time over",
                "still protected",
                "Queue minimum run times and last start of the holders",
            ),
        ),
        holders=tuple(replace(holder, evictable="not yet: minimum run time") for holder in holders),
        waiting=Waiting(helps="yes", until=until, on=("end of the holders' minimum run time",)),
    )


def _protected_until(gang: Gang, room: Room) -> float | None:
    """Return the earliest end of a holder's protection."""
    rules = MinRuntime(room.session)
    ends = []
    for other in room.session.jobs.values():
        if other is room.job or not other.active_allocated or not other.is_preemptible:
            continue
        same = other.queue == room.job.queue
        end = rules.protected_until_preempt(other) if same else rules.protected_until_reclaim(room.job, other)
        if end is not None and end > gang.as_of:
            ends.append(end)
    return min(ends, default=None)


def share(case: Blocked) -> Finding:
    gang, room = case.gang, case.room
    need = case.need
    resource = case.resource
    queue = _tightest(gang, resource, need.value)
    share, used = queue.fair_share[resource.index], used_by(queue, resource)
    holders = _evictable_holders(gang, room)
    over = share >= 0 and used + need.value > share
    return Finding(
        ReasonCode.FAIR_SHARE_REACHED,
        form="" if over else "others_within",
        facts={
            "queue": queue.name,
            "used": Amount(used, need.unit),
            "share": Amount(share, need.unit),
            "need": need,
            "holders": _spoken(holders),
            "count": len(holders),
        },
        binding=(
            Constraint(
                resource.share_id,
                queue.name,
                used + need.value,
                share,
                need.unit,
                f"fair share of Queue/{queue.name} in this cycle",
            ),
        ),
        holders=holders,
        waiting=Waiting(helps="unknown", on=first(f"PodGroup/{holder.gang}" for holder in holders)),
    )


def _tightest(gang: Gang, resource: Resource, need: float) -> QueueState:
    """Return the gang's own queue if it would pass its share, else the one above that would pass its own by most.

    The scheduler asks the own queue before it looks for victims, and the others when it weighs them.
    """
    queues = chain(gang)

    def excess(queue: QueueState) -> float:
        share = queue.fair_share[resource.index]
        return used_by(queue, resource) + need - share if share >= 0 else float("-inf")

    return queues[0] if excess(queues[0]) > 0 else max(queues, key=excess)


def protected(case: Blocked) -> Finding | None:
    """Return that non-preemptible holders of queues above their quota are all that keeps a claim from being met."""
    gang, room, resource, need = case.gang, case.room, case.resource, case.need
    if case.broken or not room.may_help(UNPROTECTED) or not _is_within_quota(case):
        return None
    other = _holding_queue(room, resource)
    if other is None or not case.trials.starts(Rule.ORDER, Rule.PROTECTION):
        return None
    own = chain(gang)[0]
    holders = tuple(h for h in holders_on(gang, room) if h.evictable.startswith("no: non-preemptible"))
    held = used_by(other, resource)
    facts: dict[str, FactValue] = {
        "queue": own.name,
        "quota": Amount(own.deserved[resource.index], need.unit),
        "used": Amount(used_by(own, resource), need.unit),
        "need": need,
        "other": other.name,
        "held": Amount(held, need.unit),
        "other_quota": Amount(other.deserved[resource.index], need.unit),
    }
    binding = (
        named(
            ConstraintId.PREEMPTION_PROTECTED,
            ", ".join(holder.gang for holder in holders[:3]),
            "preemptible",
            "non-preemptible",
            "priority and preemptibility of the holders",
        ),
        Constraint(
            resource.quota_id, other.name, held, other.deserved[resource.index], need.unit, f"Queue/{other.name} quota"
        ),
    )
    return Finding(
        ReasonCode.HOLDERS_PROTECTED,
        facts=facts,
        binding=binding,
        slack=(
            Constraint(
                resource.quota_id,
                own.name,
                used_by(own, resource) + need.value,
                own.deserved[resource.index],
                need.unit,
                f"Queue/{own.name} quota",
            ),
        ),
        holders=holders,
        waiting=Waiting(helps="unknown", on=first(f"PodGroup/{holder.gang}" for holder in holders)),
        certainty=Certainty.PROVED,
    )


def _is_within_quota(case: Blocked) -> bool:
    """Whether the gang's own queue stays within its quota with the step added."""
    resource, queues = case.resource, chain(case.gang)
    if not queues:
        return False
    quota = queues[0].deserved[resource.index]
    return quota < 0 or used_by(queues[0], resource) + case.need.value <= quota


def _holding_queue(room: Room, resource: Resource) -> QueueState | None:
    """Return the queue furthest above its quota among those of non-preemptible gangs on nodes that the step may use."""
    names = {job.queue for job in holding_jobs(room) if not job.is_preemptible and job.queue != room.job.queue}
    above = [
        queue
        for name in sorted(names)
        if (queue := room.session.queues.get(name)) is not None
        and 0 <= queue.deserved[resource.index] < used_by(queue, resource)
    ]
    return max(above, key=lambda queue: used_by(queue, resource) - queue.deserved[resource.index], default=None)
