"""Limits and quotas that the next step of a gang would pass, on the way from its queue to the top."""

from __future__ import annotations

from typing import NamedTuple

from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.queues import RESOURCES, Resource, chain, is_unset, used_by
from gangdash.engine.identifiers import Unit
from gangdash.engine.rules.steps import step_amounts
from gangdash.engine.session import QueueState
from gangdash.engine.verdict import Amount, Certainty, Constraint, Finding, ReasonCode, Waiting

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


def _cap_constraint(violation: Violation) -> Constraint:
    id_ = violation.resource.limit_id if violation.is_limit else violation.resource.quota_id
    total = violation.used + violation.need
    source = f"Queue/{violation.queue.name} {'limit' if violation.is_limit else 'quota of non-preemptible gangs'}"
    return Constraint(id_, violation.queue.name, total, violation.cap, violation.resource.unit, source)


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
