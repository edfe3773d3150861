"""A placement exists and a queue rule forbids it: which one, with the numbers it goes by.

POLICY means that the scheduler itself starts the gang once queue-side rules alone are lifted, with its own victim
search and priorities unchanged. The smallest set of rules that does it is the binding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from gangdash.engine.explain.binding import bind_trouble
from gangdash.engine.explain.build import first, named, spoken
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.holders import holders_on
from gangdash.engine.explain.queues import RESOURCES, Resource, chain, is_unset, used_by
from gangdash.engine.explain.room import EVICTABLE, NOTHING, UNPROTECTED, Lift, Room
from gangdash.engine.explain.trial import Rule, Trials
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.cycle import GangOutcome, GangResult
from gangdash.engine.rules.minruntime import MinRuntime
from gangdash.engine.rules.steps import step_amounts
from gangdash.engine.session import QueueState
from gangdash.engine.verdict import Amount, Certainty, Constraint, FactValue, Finding, Holder, ReasonCode, Waiting

_ORDER = (Rule.LIMIT, Rule.QUOTA, Rule.ORDER, Rule.DELAY, Rule.MIN_RUNTIME, Rule.SHARE)
_NEAR = 1e-6
_STEP = 0.01
"""The smallest step in which people write a GPU quota."""


class Violation(NamedTuple):
    """A limit or quota that the next step would pass."""

    queue: QueueState
    resource: Resource
    is_limit: bool
    cap: float
    used: float
    need: float


def violations(gang: Gang) -> list[Violation]:
    """Return every limit and quota that the next step would pass, limits first, the leaf queue first."""
    job = gang.job
    if job is None or gang.shard is None:
        return []
    asked = step_amounts(gang.context.session(gang.shard), job, real=True)
    found = []
    for is_limit in (True, False):
        if not is_limit and job.is_preemptible:
            continue
        for queue in chain(gang):
            for resource in RESOURCES:
                need = asked[resource.index]
                cap = (queue.limit if is_limit else queue.deserved)[resource.index]
                used = used_by(queue, resource, non_preemptible=not is_limit)
                if need and cap >= 0 and cap < used + need:
                    found.append(Violation(queue, resource, is_limit, cap, used, need))
    return found


def policy(gang: Gang, room: Room) -> Iterator[Finding]:
    """Yield the queue rules in the way when lifting them starts the gang; nothing otherwise."""
    broken = violations(gang)
    trials = Trials(gang)
    smallest = trials.smallest(_lifts(gang, broken, evict=not room.fits())) if _may_help(room, EVICTABLE) else None
    if smallest is None and room.fits():
        yield missed(gang, room)
        return
    if smallest is None:
        protected = _protected(gang, room, trials, broken)
        if protected is not None:
            yield protected
        return
    for rule in _ORDER:
        if rule in smallest:
            yield replace(_BUILDERS[rule](gang, room, trials, broken), certainty=Certainty.PROVED)


def _may_help(room: Room, lift: Lift) -> bool:
    """Whether there is room now or after the most generous evictions; a trial cannot start the gang otherwise."""
    return room.fits() is not False or room.fits(frozenset({lift})) is not False


def limits_beside(gang: Gang) -> Iterator[Finding]:
    """Yield limits and quotas that would stop the gang too, once what stops it first is gone."""
    broken = violations(gang)
    if any(violation.is_limit for violation in broken):
        yield limit_finding(broken)
    if any(not violation.is_limit for violation in broken):
        yield quota_finding(broken)


def _lifts(gang: Gang, broken: list[Violation], *, evict: bool) -> list[Rule]:
    """Return the rules that exist here and could be in the way; those on evictions only where one is needed."""
    lifts = []
    if any(violation.is_limit for violation in broken):
        lifts.append(Rule.LIMIT)
    if any(not violation.is_limit for violation in broken):
        lifts.append(Rule.QUOTA)
    lifts.append(Rule.ORDER)
    if not evict:
        return lifts
    if gang.podgroup.preemption_delay:
        lifts.append(Rule.DELAY)
    if _has_min_runtime(gang):
        lifts.append(Rule.MIN_RUNTIME)
    lifts.append(Rule.SHARE)
    return lifts


def _has_min_runtime(gang: Gang) -> bool:
    plugin = gang.shard.config.plugin("minruntime") if gang.shard is not None else None
    if plugin is None:
        return False
    named_ = any(queue.preempt_min_runtime or queue.reclaim_min_runtime for queue in gang.context.snapshot.queues)
    return named_ or bool(plugin.arguments)


def missed(gang: Gang, room: Room) -> Finding:
    """Return that an exact search places the step now and the scheduler's walk does not."""
    shared = _common_domain(room)
    return Finding(
        ReasonCode.GREEDY_MISS,
        form="common_domain" if shared else "",
        facts={"where": room.placement, "pods": len(room.tasks), "level": room.level, "domain": shared},
        binding=(
            named(
                ConstraintId.SCHEDULER_WALK,
                gang.meta.name,
                "a walk that finds the placement",
                "none",
                f"exact search: {', '.join(room.placement[:3])}",
            ),
        ),
        waiting=Waiting(helps="unknown"),
        certainty=Certainty.PROVED if room.is_exact else Certainty.UNPROVEN,
    )


def _common_domain(room: Room) -> str:
    """Return the one domain of the required level that all nodes share: the scheduler starts its walk below it then."""
    domains = room.domains or []
    constraint = room.job.root.constraint
    preferred = constraint.preferred_level if constraint is not None else ""
    return domains[0].name if len(domains) == 1 and not room.is_pinned and not preferred else ""


# Limits and quotas


def _cap_constraint(violation: Violation) -> Constraint:
    id_ = violation.resource.limit_id if violation.is_limit else violation.resource.quota_id
    total = violation.used + violation.need
    source = f"Queue/{violation.queue.name} {'limit' if violation.is_limit else 'quota of non-preemptible gangs'}"
    return Constraint(id_, violation.queue.name, total, violation.cap, violation.resource.unit, source)


def _limit(gang: Gang, room: Room, trials: Trials, broken: list[Violation]) -> Finding:
    return limit_finding(broken)


def limit_finding(broken: list[Violation]) -> Finding:
    own = [violation for violation in broken if violation.is_limit]
    worst = max(own, key=lambda v: (v.resource.unit is Unit.GPU, v.used + v.need - v.cap))
    unit = worst.resource.unit
    unset = is_unset(worst.queue, worst.resource, "limit")
    alone = worst.need > worst.cap
    return Finding(
        ReasonCode.QUEUE_LIMIT,
        form="zero" if unset and worst.cap == 0 else "alone" if alone else "",
        facts={
            "queue": worst.queue.name,
            "resource": worst.resource.name,
            "limit": Amount(worst.cap, unit),
            "used": Amount(worst.used, unit),
            "need": Amount(worst.need, unit),
            "wanted": Amount(worst.used + worst.need, unit),
        },
        binding=tuple(_cap_constraint(violation) for violation in own),
        waiting=Waiting(helps="no" if alone else "unknown", on=() if alone else (f"Queue/{worst.queue.name}",)),
        certainty=Certainty.PROVED,
    )


def _quota(gang: Gang, room: Room, trials: Trials, broken: list[Violation]) -> Finding:
    return quota_finding(broken)


def quota_finding(broken: list[Violation]) -> Finding:
    own = [violation for violation in broken if not violation.is_limit]
    worst = max(own, key=lambda v: (v.resource.unit is Unit.GPU, v.used + v.need - v.cap))
    unit = worst.resource.unit
    near = abs(worst.used + worst.need - worst.cap) < _NEAR
    resources = tuple(dict.fromkeys(violation.resource.name for violation in own))
    if len(resources) > 1:
        form = "zero" if all(violation.cap == 0 for violation in own) else "many"
    else:
        form = "rounding" if near else "zero" if worst.cap == 0 else ""
    return Finding(
        ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA,
        form=form,
        facts={
            "queue": worst.queue.name,
            "quota": Amount(worst.cap, unit),
            "used": Amount(worst.used, unit),
            "need": Amount(worst.need, unit),
            "wanted": Amount(worst.cap + _STEP if near else worst.used + worst.need, unit),
            "resources": resources,
        },
        binding=tuple(_cap_constraint(violation) for violation in own),
        waiting=Waiting(helps="no" if worst.need > worst.cap else "unknown"),
        certainty=Certainty.PROVED,
    )


# Order


def _ahead(gang: Gang, trials: Trials) -> list[GangResult]:
    """Return the gangs that take nodes in this cycle which the gang would take if it were alone."""
    wanted = trials.result({Rule.ORDER}).nodes
    placed = [
        other
        for other in gang.context.results.values()
        if other.outcome in {GangOutcome.BOUND, GangOutcome.PIPELINED}
        and (other.namespace, other.name) != (gang.meta.namespace, gang.meta.name)
    ]
    near = [other for other in placed if any(pod.node in wanted and pod.action for pod in other.pods)]
    return sorted(near or placed, key=lambda other: (other.namespace, other.name))


def _queued(gang: Gang, room: Room, trials: Trials, broken: list[Violation]) -> Finding:
    ahead = _ahead(gang, trials)
    names = tuple(spoken(other.name) for other in ahead)
    keys = [f"{other.namespace}/{other.name}" for other in ahead]
    need = _need(gang)
    refused = _bind_refused(gang, ahead)
    form = "bind_refused" if refused else _why_first(gang, ahead)
    facts: dict[str, FactValue] = {
        "need": need,
        "ahead": names,
        "count": len(ahead),
        "first": names[0] if names else "another gang",
        "free": _free(room),
        "queue": gang.podgroup.queue,
        "priority": gang.priority,
    }
    return Finding(
        ReasonCode.QUEUED_BEHIND,
        form=form,
        facts=facts,
        binding=(
            named(
                ConstraintId.QUEUE_ORDER,
                gang.podgroup.queue,
                "goes first",
                f"behind {', '.join(keys[:3]) or 'other gangs'}",
                "order of queues and gangs in this cycle",
            ),
        ),
        holders=tuple(
            Holder(key, _gpus_given(gang, other), "no: placed in this cycle")
            for key, other in zip(keys, ahead, strict=True)
        ),
        waiting=Waiting(helps="unknown", on=first(f"PodGroup/{key}" for key in keys)),
    )


def _gpus_given(gang: Gang, other: GangResult) -> float:
    given = [gang.context.pods.get((pod.namespace or other.namespace, pod.name)) for pod in other.pods if pod.action]
    return sum(gang.gpus(pod) for pod in given if pod is not None)


def _free(room: Room) -> Amount:
    return Amount(sum(max(room.supply(node, NOTHING)[2], 0) for node in room.nodes), Unit.GPU)


def _need(gang: Gang) -> Amount:
    job = gang.job
    if job is None or gang.shard is None:
        return Amount(0, Unit.GPU)
    asked = step_amounts(gang.context.session(gang.shard), job, real=True)
    return Amount(asked[2], Unit.GPU) if asked[2] else Amount(asked[0], Unit.MILLICORES)


def _bind_refused(gang: Gang, ahead: list[GangResult]) -> bool:
    """Whether the first gang ahead is given the room again and again and never bound."""
    for other in ahead[:1]:
        podgroup = gang.context.podgroups.get((other.namespace, other.name))
        if podgroup is not None and next(bind_trouble(Gang(gang.context, podgroup)), None) is not None:
            return True
    return False


def _why_first(gang: Gang, ahead: list[GangResult]) -> str:
    """Return why the first gang ahead comes before this one: its queue, its priority or its age."""
    podgroup = gang.context.podgroups.get((ahead[0].namespace, ahead[0].name)) if ahead else None
    if podgroup is None:
        return ""
    other = Gang(gang.context, podgroup)
    if other.podgroup.queue != gang.podgroup.queue:
        return "queue"
    if other.priority != gang.priority:
        return "priority"
    return "older"


# Eviction


def _delay(gang: Gang, room: Room, trials: Trials, broken: list[Violation]) -> Finding:
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


def _min_runtime(gang: Gang, room: Room, trials: Trials, broken: list[Violation]) -> Finding:
    until = _protected_until(gang, room)
    holders = _evictable_holders(gang, room)
    return Finding(
        ReasonCode.HOLDERS_PROTECTED,
        form="min_runtime" if until is not None else "min_runtime_open",
        facts={
            "queue": gang.podgroup.queue,
            "need": _need(gang),
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


def _share(gang: Gang, room: Room, trials: Trials, broken: list[Violation]) -> Finding:
    need = _need(gang)
    resource = next(item for item in RESOURCES if item.unit is need.unit)
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


def _protected(gang: Gang, room: Room, trials: Trials, broken: list[Violation]) -> Finding | None:
    """Return that non-preemptible holders of queues above their quota are all that keeps a claim from being met."""
    if broken or not _may_help(room, UNPROTECTED) or not _is_within_quota(gang):
        return None
    if not trials.starts(Rule.ORDER, Rule.PROTECTION):
        return None
    need = _need(gang)
    resource = next(item for item in RESOURCES if item.unit is need.unit)
    own = chain(gang)[0]
    holders = tuple(h for h in holders_on(gang, room) if h.evictable.startswith("no: non-preemptible"))
    other = _holding_queue(gang, room, resource)
    facts: dict[str, FactValue] = {
        "queue": own.name,
        "quota": Amount(own.deserved[resource.index], need.unit),
        "used": Amount(used_by(own, resource), need.unit),
        "need": need,
        "holders": _spoken(holders),
    }
    binding = [
        named(
            ConstraintId.PREEMPTION_PROTECTED,
            ", ".join(holder.gang for holder in holders[:3]),
            "preemptible",
            "non-preemptible",
            "priority and preemptibility of the holders",
        )
    ]
    if other is not None:
        held = used_by(other, resource)
        facts |= {
            "other": other.name,
            "held": Amount(held, need.unit),
            "other_quota": Amount(other.deserved[resource.index], need.unit),
        }
        binding.append(
            Constraint(
                resource.quota_id,
                other.name,
                held,
                other.deserved[resource.index],
                need.unit,
                f"Queue/{other.name} quota",
            )
        )
    return Finding(
        ReasonCode.HOLDERS_PROTECTED,
        form="" if other is not None else "unnamed",
        facts=facts,
        binding=tuple(binding),
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


def _is_within_quota(gang: Gang) -> bool:
    need = _need(gang)
    resource = next(item for item in RESOURCES if item.unit is need.unit)
    queues = chain(gang)
    if not queues:
        return False
    quota = queues[0].deserved[resource.index]
    return quota < 0 or used_by(queues[0], resource) + need.value <= quota


def _holding_queue(gang: Gang, room: Room, resource: Resource) -> QueueState | None:
    """Return the leaf queue furthest above its quota among those of the holders."""
    names = {
        job.queue for job in room.session.jobs.values() if job.active_allocated and job.queue != gang.podgroup.queue
    }
    above = [
        queue
        for name in sorted(names)
        if (queue := room.session.queues.get(name)) is not None
        and 0 <= queue.deserved[resource.index] < used_by(queue, resource)
    ]
    return max(above, key=lambda queue: used_by(queue, resource) - queue.deserved[resource.index], default=None)


_BUILDERS: Mapping[Rule, Callable[[Gang, Room, Trials, list[Violation]], Finding]] = {
    Rule.LIMIT: _limit,
    Rule.QUOTA: _quota,
    Rule.ORDER: _queued,
    Rule.DELAY: _delay,
    Rule.MIN_RUNTIME: _min_runtime,
    Rule.SHARE: _share,
}
