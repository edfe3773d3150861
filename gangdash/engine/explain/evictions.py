"""Rules on evictions that keep holders where they are: delay, minimum run time, fair share, protection."""

from __future__ import annotations

from dataclasses import replace

from gangdash.engine.explain.blocked import Blocked
from gangdash.engine.explain.build import first, named, spoken
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.holders import holders_on, holding_jobs, usable_nodes
from gangdash.engine.explain.lifts import Rule
from gangdash.engine.explain.queues import Resource, chain, used_by
from gangdash.engine.explain.room import NOTHING, UNPROTECTED, Room
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.rules.minruntime import MinRuntime
from gangdash.engine.rules.queue_order import allocatable_share
from gangdash.engine.rules.reclaim_limit import levels
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
    """Return that the queue may not take the room from others: by its own share, or because they are within theirs."""
    gang, room, resource = case.gang, case.room, case.resource
    holders = _evictable_holders(gang, room)
    rivals = _rivals(case, holders)
    own = _over_share(case, rivals)
    facts: dict[str, FactValue] = {
        "queue": chain(gang)[0].name,
        "need": case.need,
        "holders": _spoken(holders),
        "count": len(holders),
    }
    waiting = Waiting(helps="unknown", on=first(f"PodGroup/{holder.gang}" for holder in holders))
    if own is None:
        return replace(_others_within(case, rivals, facts), holders=holders, waiting=waiting)
    cap, used = own.fair_share[resource.index], used_by(own, resource)
    unit = case.need.unit
    return Finding(
        ReasonCode.FAIR_SHARE_REACHED,
        facts=facts | {"queue": own.name, "used": Amount(used, unit), "share": Amount(cap, unit)},
        binding=(
            Constraint(
                resource.share_id,
                own.name,
                used + case.need.value,
                cap,
                unit,
                f"fair share of Queue/{own.name} in this cycle",
            ),
        ),
        holders=holders,
        waiting=waiting,
    )


def _rivals(case: Blocked, holders: tuple[Holder, ...]) -> list[tuple[QueueState, QueueState]]:
    """Return the pairs that the scheduler compares: on each holder's way up and on ours, the first that part.

    What the queues have in common above them does not change by a reclaim between them.
    """
    session, own = case.room.session, chain(case.gang)[0]
    names = {job.queue for job in session.jobs.values() if job.full_name in {holder.gang for holder in holders}}
    queues = [queue for name in sorted(names - {own.name}) if (queue := session.queues.get(name)) is not None]
    return list(dict.fromkeys(levels(own, queue) for queue in queues))


def _over_share(case: Blocked, rivals: list[tuple[QueueState, QueueState]]) -> QueueState | None:
    """Return the gang's own queue if it would pass its share, else one above it that is compared and would."""
    resource, need = case.resource, case.need.value
    own = chain(case.gang)[0]
    for queue in dict.fromkeys([own, *(mine for mine, _ in rivals)]):
        cap = queue.fair_share[resource.index]
        if 0 <= cap < used_by(queue, resource) + need:
            return queue
    return None


def _others_within(case: Blocked, rivals: list[tuple[QueueState, QueueState]], facts: dict[str, FactValue]) -> Finding:
    """Return that the holders' queues hold no more above their share than the step lacks."""
    resource, unit = case.resource, case.need.unit
    lacks = max(case.need.value - _free_of(case), 0.0) or case.need.value
    kept = {theirs.name: allocatable_share(theirs)[resource.index] for _, theirs in rivals}
    ranked = sorted((theirs for _, theirs in rivals), key=lambda queue: (-used_by(queue, resource), queue.name))
    spare = sum(max(used_by(queue, resource) - kept[queue.name], 0.0) for queue in ranked if kept[queue.name] >= 0)
    top = ranked[0] if ranked else None
    binding = [
        Constraint(
            resource.share_id,
            queue.name,
            kept[queue.name] + lacks,
            used_by(queue, resource),
            unit,
            f"Queue/{queue.name} keeps its share of {kept[queue.name]:g} when others reclaim",
        )
        for queue in ranked
        if kept[queue.name] >= 0 and used_by(queue, resource) < kept[queue.name] + lacks
    ]
    told: dict[str, FactValue] = {
        "other": top.name if top is not None else "",
        "held": Amount(used_by(top, resource) if top is not None else 0.0, unit),
        "share": Amount(kept[top.name] if top is not None else 0.0, unit),
        "spare": Amount(spare, unit),
        "lacks": Amount(lacks, unit),
    }
    endless = [queue.name for queue in ranked if kept[queue.name] < 0]
    form = "unlimited" if endless and not spare else "surplus" if spare else "others_within"
    if form == "unlimited":
        told["other"] = endless[0]
        binding.append(named(resource.quota_id, endless[0], "a quota that it exceeds", "unlimited", "Queue quota"))
    elif spare >= lacks or not binding:
        form = "rules"
        scope = ", ".join(queue.name for queue in ranked[:3]) or chain(case.gang)[0].name
        binding = [named(resource.share_id, scope, "shares that let go", "shares that do not", "fair shares")]
    return Finding(
        ReasonCode.FAIR_SHARE_REACHED,
        form=form,
        facts=facts | told,
        binding=tuple(binding),
        slack=_own_share(case),
    )


def _free_of(case: Blocked) -> float:
    """Return how much of what the step lacks is free on nodes that it may use."""
    slot = case.room.session.layout.index["gpu" if case.need.unit is Unit.GPU else "cpu"]
    return sum(max(case.room.supply(node, NOTHING)[slot], 0.0) for node in usable_nodes(case.room))


def _own_share(case: Blocked) -> tuple[Constraint, ...]:
    own, resource = chain(case.gang)[0], case.resource
    cap, total = own.fair_share[resource.index], used_by(own, resource) + case.need.value
    source = f"fair share of Queue/{own.name} in this cycle"
    return (Constraint(resource.share_id, own.name, total, cap, case.need.unit, source),) if cap >= total else ()


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
