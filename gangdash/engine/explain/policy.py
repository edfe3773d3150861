"""A placement exists and a queue rule forbids it: which one, with the numbers it goes by.

POLICY means that the scheduler itself starts the gang once queue-side rules alone are lifted, with its own victim
search and priorities unchanged. The smallest set of rules that does it is the binding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from gangdash.engine.explain import behind, caps, evictions
from gangdash.engine.explain.blocked import Blocked
from gangdash.engine.explain.build import named
from gangdash.engine.explain.caps import Violation, violations
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.lifts import Rule
from gangdash.engine.explain.room import EVICTABLE, Room
from gangdash.engine.explain.trial import Trials
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.verdict import Certainty, Finding, ReasonCode, Waiting

_BUILDERS: Mapping[Rule, Callable[[Blocked], Finding]] = {
    Rule.LIMIT: lambda case: caps.limit_finding(case.broken),
    Rule.QUOTA: lambda case: caps.quota_finding(case.broken),
    Rule.ORDER: behind.queued,
    Rule.DELAY: evictions.delay,
    Rule.MIN_RUNTIME: evictions.min_runtime,
    Rule.SHARE: evictions.share,
}
"""In the order in which a rule is told before the others."""


def policy(gang: Gang, room: Room) -> Iterator[Finding]:
    """Yield the queue rules in the way when lifting them starts the gang; nothing otherwise."""
    case = Blocked(gang, room, Trials(gang), violations(gang))
    smallest = None
    if room.may_help(EVICTABLE):
        smallest = case.trials.smallest(_lifts(gang, case.broken, evict=not room.fits()))
    if smallest is not None:
        found = [build(case) for rule, build in _BUILDERS.items() if rule in smallest]
        # Only all of them together start the gang, so the first one, which is the verdict, carries what binds in each.
        together = tuple(dict.fromkeys(constraint for finding in found for constraint in finding.binding))
        yield replace(found[0], binding=together, certainty=Certainty.PROVED)
        for finding in found[1:]:
            yield replace(finding, certainty=Certainty.PROVED)
    elif room.fits():
        yield missed(gang, room)
    else:
        protected = evictions.protected(case)
        if protected is not None:
            yield protected


def limits_beside(gang: Gang) -> Iterator[Finding]:
    """Yield limits and quotas that would stop the gang too, once what stops it first is gone."""
    broken = violations(gang)
    if any(violation.is_limit for violation in broken):
        yield caps.limit_finding(broken)
    if any(not violation.is_limit for violation in broken):
        yield caps.quota_finding(broken)


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
