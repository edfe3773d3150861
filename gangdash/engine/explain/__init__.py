"""Why each gang waits: facts from the objects and from replays, one verdict by the order of the contract.

``explain_in`` is the entry. Each module beside this one answers for some codes and returns findings; the
order in which they are asked is in ``decide``. No words are made here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial

from gangdash.engine.explain.context import Context
from gangdash.engine.explain.decide import explain_gang
from gangdash.engine.explain.gang import Gang, gangs_of
from gangdash.engine.explain.ungrouped import explain_workload
from gangdash.engine.explain.upstream import explain_top, in_chain, tops_without_gangs
from gangdash.engine.explain.workloads import workloads
from gangdash.engine.verdict import Certainty, Explanation, Finding, GangRef, ReasonCode

logger = logging.getLogger(__name__)


def explain_in(context: Context, *, only: str | None = None) -> list[Explanation]:
    """Return the explanations for an indexed snapshot, which keeps what was worked out for who asks next.

    Gangs come in the order of namespace and name. A fault of the engine costs one gang its verdict, no other.
    """
    found = [
        _safely(GangRef(gang.meta.namespace, gang.meta.name, gang.meta.uid), partial(_explain_in_chain, gang))
        for gang in gangs_of(context)
        if only in {None, gang.podgroup.key}
    ]
    found += [_safely(ref, explain) for ref, explain in _without_podgroup(context) if only in {None, ref.key}]
    return sorted(found, key=lambda item: (item.gang.namespace, item.gang.name, item.gang.kind))


def _explain_in_chain(gang: Gang) -> Explanation:
    return in_chain(gang, explain_gang(gang))


def _without_podgroup(context: Context) -> Iterator[tuple[GangRef, Callable[[], Explanation]]]:
    """Yield what should have a PodGroup and has none: by its stage before the pods, else by its pods."""
    ungrouped = {(item.kind, item.namespace, item.name): item for item in workloads(context)}
    for top, standing in tops_without_gangs(context, ungrouped):
        ungrouped.pop((top.kind, top.meta.namespace, top.meta.name), None)
        ref = GangRef(top.meta.namespace, top.meta.name, top.meta.uid, top.kind)
        yield ref, partial(explain_top, context, top, standing)
    for item in ungrouped.values():
        yield GangRef(item.namespace, item.name, item.uid, item.kind), partial(explain_workload, item)


def _safely(ref: GangRef, explain: Callable[[], Explanation]) -> Explanation:
    try:
        return explain()
    except Exception as error:  # per-gang boundary: the other gangs keep their verdicts
        logger.exception("explain_failed", extra={"gang": ref.key})
        return fault(ref, error)


def fault(ref: GangRef, error: Exception) -> Explanation:
    """Return that the engine failed on a gang, without the error's text: it may quote the cluster."""
    return Explanation(
        gang=ref,
        finding=Finding(ReasonCode.ENGINE_FAULT, facts={"fault": type(error).__name__}),
        certainty=Certainty.NO_VERDICT,
    )
