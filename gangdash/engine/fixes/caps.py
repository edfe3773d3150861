"""Limits and quotas in the way: raise them, move the gang under others, or take it out of their reach."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gangdash.engine.changes import Change
from gangdash.engine.explain.caps import Violation
from gangdash.engine.explain.queues import RESOURCES, Resource, used_by
from gangdash.engine.fixes.candidate import Candidate, Case
from gangdash.engine.identifiers import Unit
from gangdash.engine.rules.steps import step_amounts
from gangdash.engine.session import Amounts, QueueState
from gangdash.engine.verdict import Amount, FixKind, Who

_MOST_QUEUES = 3
_FINEST = 0.01
"""GPUs are written down to hundredths in quotas and limits."""
_MEGABYTE = 1_000_000


def raised(case: Case) -> Iterator[Candidate]:
    """Yield all caps in the way raised by what is short; then by enough for the other gangs that wait there too."""
    for broken in dict.fromkeys((tuple(case.broken), tuple(_with_others(case, item) for item in case.broken))):
        limits = [item for item in broken if item.is_limit]
        quotas = [item for item in broken if not item.is_limit]
        if limits and quotas:
            yield replace(raise_all(limits), beside=(raise_all(quotas),))
        elif broken:
            yield raise_all(broken)


def _with_others(case: Case, item: Violation) -> Violation:
    """Return the violation as if the other gangs that wait below the queue had gone first."""
    session, slot = case.session, item.resource.index
    others = [
        job
        for job in session.jobs.values()
        if job is not case.job and job.pending and job.is_ready and job.queue in session.queues
        if item.queue in session.queues[job.queue].ancestors and (item.is_limit or not job.is_preemptible)
    ]
    return item._replace(used=item.used + sum(step_amounts(session, job, real=True)[slot] for job in others))


def raise_all(broken: Sequence[Violation]) -> Candidate:
    """Return the change of every queue concerned to hold what is used and asked, the one with most missing first."""
    worst = max(broken, key=lambda item: (item.resource.unit is Unit.GPU, item.used + item.need - item.cap))
    queues = list(dict.fromkeys([worst.queue.name, *(item.queue.name for item in broken)]))
    kind = FixKind.RAISE_LIMIT if worst.is_limit else FixKind.RAISE_QUOTA
    changes = tuple(
        Change(kind, name, dict(_value(item) for item in broken if item.queue.name == name)) for name in queues
    )
    return Candidate(
        kind,
        changes,
        {
            "queue": worst.queue.name,
            "queues": tuple(queues),
            "resource": worst.resource.name,
            "now": Amount(worst.cap, worst.resource.unit),
            "to": Amount(wanted(worst.resource, worst.used + worst.need, worst.cap), worst.resource.unit),
        },
        form="several" if len(queues) > 1 else "",
        who=Who.QUEUE_ADMIN,
    )


def _value(item: Violation) -> tuple[str, str]:
    return cap_value(item.resource, wanted(item.resource, item.used + item.need, item.cap))


def wanted(resource: Resource, total: float, cap: float) -> float:
    """Return the smallest amount that people write which is at least the total and really above the cap in the way."""
    if resource.unit is not Unit.GPU:
        return float(math.ceil(total))
    steps = math.ceil(total / _FINEST - 1e-6)
    if steps * _FINEST <= cap or steps * _FINEST < total:
        steps += 1
    return round(steps * _FINEST, 2)


def cap_value(resource: Resource, amount: float) -> tuple[str, str]:
    """Return key and value by which a change names an amount: millicores, MB, GPUs."""
    if resource.unit is Unit.BYTES:
        return "memory", str(math.ceil(amount / _MEGABYTE))
    return ("gpu" if resource.unit is Unit.GPU else "cpu"), str(int(amount) if amount == int(amount) else amount)


def claimed(case: Case) -> Iterator[Candidate]:
    """Yield a quota for the gang's queues that covers the step, so that they have a claim to what others hold."""
    chain = case.session.queues[case.job.queue].ancestors if case.job.queue in case.session.queues else ()
    short = [
        Violation(queue, resource, False, queue.deserved[resource.index], used_by(queue, resource), need)
        for queue in chain
        for resource in RESOURCES
        if (need := case.asked[resource.index])
        and 0 <= queue.deserved[resource.index] < used_by(queue, resource) + need
    ]
    if short:
        yield raise_all(short)


def moved(case: Case) -> Iterator[Candidate]:
    """Yield other leaf queues in which the step breaks no cap."""
    yield from moved_with(case, case.asked)


def moved_with(case: Case, amounts: Amounts) -> Iterator[Candidate]:
    """Yield other leaf queues that have room for the amounts, those with most of their quota unused first."""
    session = case.session
    open_ = [
        queue
        for queue in session.queues.values()
        if queue.is_leaf and queue.parent in {"", *session.queues} and queue.name != case.job.queue
        if _takes(case, queue, amounts)
    ]
    for queue in sorted(open_, key=lambda queue: (-_unused(queue), queue.name))[:_MOST_QUEUES]:
        change = Change(FixKind.MOVE_QUEUE, case.key, {"queue": queue.name})
        yield Candidate(FixKind.MOVE_QUEUE, (change,), {"queue": queue.name})


def _takes(case: Case, queue: QueueState, amounts: Amounts) -> bool:
    for member in queue.ancestors:
        for slot, need in enumerate(amounts):
            if need and 0 <= member.limit[slot] < member.allocated[slot] + need:
                return False
            if need and not case.job.is_preemptible:
                held = member.allocated_non_preemptible[slot]
                if 0 <= member.deserved[slot] < held + need:
                    return False
    return True


def _unused(queue: QueueState) -> float:
    """Return the GPUs that the queue deserves beyond what it holds; unlimited quotas come first."""
    quota = queue.deserved[2]
    return math.inf if quota < 0 else quota - queue.allocated[2]


def preemptible(case: Case) -> Iterator[Candidate]:
    """Yield that the gang gives up its own protection, so that quotas no longer bound it."""
    if not case.job.is_preemptible:
        change = Change(FixKind.MAKE_PREEMPTIBLE, case.key)
        yield Candidate(FixKind.MAKE_PREEMPTIBLE, (change,), {"gang": "the gang"})
