"""What would end that a placed gang breaks a rule: change the rule, the gang's place, or the gang.

Relies on the finding for the rule and its numbers. Nothing here is about waiting gangs.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.changes import Change
from gangdash.engine.explain.build import spoken
from gangdash.engine.explain.caps import Violation
from gangdash.engine.explain.queues import RESOURCES
from gangdash.engine.fixes import caps, demands, holders
from gangdash.engine.fixes.candidate import Candidate, Case
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.verdict import Constraint, FixKind, ReasonCode, Who

_OWNER = "PodCliqueSet"


def lawful(case: Case) -> Iterator[Candidate]:
    """Yield changes after which the gang may break no rule any more."""
    for finding in case.findings:
        if finding.code is ReasonCode.LIMIT_EXCEEDED:
            yield from _within_caps(case, finding.binding)
        elif finding.code is ReasonCode.TOPOLOGY_NOT_KEPT:
            yield from _together(case, finding.binding)


def _within_caps(case: Case, binding: tuple[Constraint, ...]) -> Iterator[Candidate]:
    broken = [violation for constraint in binding if (violation := _passed(case, constraint)) is not None]
    if not broken:
        return
    yield caps.raise_all(broken)
    if not broken[0].is_limit:
        yield from caps.preemptible(case)
    yield from caps.moved_with(case, case.gang.held)
    yield from holders.stop(case, [case.job])


def _passed(case: Case, constraint: Constraint) -> Violation | None:
    """Return the cap that a constraint is about: all that is used counts, nothing more is asked."""
    queue = case.session.queues.get(constraint.scope)
    for resource in RESOURCES:
        if queue is not None and constraint.id in {resource.limit_id, resource.quota_id}:
            is_limit = constraint.id is resource.limit_id
            cap = (queue.limit if is_limit else queue.deserved)[resource.index]
            return Violation(queue, resource, is_limit, cap, float(constraint.need), 0.0)
    return None


def _together(case: Case, binding: tuple[Constraint, ...]) -> Iterator[Candidate]:
    yield from demands.relaxed(case)
    for constraint in binding:
        owner = constraint.source.partition("/")[0]
        if constraint.id is ConstraintId.DOMAIN_PINNED and owner == _OWNER:
            change = Change(FixKind.RELAX_TOPOLOGY, constraint.source, {"required": "none"})
            facts = {"object": constraint.source.replace("/", " ", 1)}
            yield Candidate(FixKind.RELAX_TOPOLOGY, (change,), facts, form="owner")
    again = Change(FixKind.EVICT_GANG, case.key)
    yield Candidate(FixKind.EVICT_GANG, (again,), {"gang": spoken(case.job.name)}, "again", Who.CLUSTER_ADMIN)
