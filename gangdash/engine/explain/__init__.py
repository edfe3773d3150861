"""Why each gang waits: facts from the objects and from replays, one verdict by the order of the contract.

``explain_snapshot`` is the entry. Each module beside this one answers for some codes and returns findings; the
order in which they are asked is in ``decide``. No words are made here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from gangdash.engine.explain.context import Context
from gangdash.engine.explain.decide import explain_gang
from gangdash.engine.explain.gang import Gang, gangs_of
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.cycle import CycleResult
from gangdash.engine.verdict import Certainty, Explanation, Finding, GangRef, ReasonCode

logger = logging.getLogger(__name__)


def explain_snapshot(
    snapshot: ClusterSnapshot, cycles: Iterable[CycleResult], *, only: str | None = None
) -> list[Explanation]:
    """Return the explanation of every gang, healthy ones too, or of the one called ``namespace/name``.

    Gangs come in the order of namespace and name. A fault of the engine costs one gang its verdict, no other.
    """
    context = Context(snapshot, cycles)
    found = [_explain_safely(gang) for gang in gangs_of(context) if only is None or gang.podgroup.key == only]
    return sorted(found, key=lambda item: (item.gang.namespace, item.gang.name, item.gang.kind))


def _explain_safely(gang: Gang) -> Explanation:
    try:
        return explain_gang(gang)
    except Exception as error:  # per-gang boundary: the other gangs keep their verdicts
        logger.exception("explain_failed", extra={"gang": gang.podgroup.key})
        return Explanation(
            gang=GangRef(gang.meta.namespace, gang.meta.name, gang.meta.uid),
            finding=Finding(ReasonCode.ENGINE_FAULT, facts={"fault": type(error).__name__}),
            certainty=Certainty.NO_VERDICT,
        )
