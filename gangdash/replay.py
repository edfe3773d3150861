"""From a snapshot to the documents: the one entry for commands, workers, what-if and offline use.

Runs one scheduling cycle per shard, explains the gangs that wait or have something to tell, and puts words to the
facts. Pure: the same snapshot gives the same document.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence

from gangdash import __version__, timeless
from gangdash.documents import (
    Amounts,
    Cycle,
    CycleError,
    CycleGang,
    CyclePod,
    CycleQueue,
    Diagnosis,
    ExplanationDocument,
    NotModelledEntry,
    NotReadEntry,
    OddityEntry,
)
from gangdash.documents.compose import explanation_document, whole
from gangdash.documents.times import stamp
from gangdash.engine.explain import explain_in, fault
from gangdash.engine.explain.context import Context
from gangdash.engine.fixes import with_fixes
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.cycle import Amounts as RawAmounts
from gangdash.engine.model.cycle import CycleResult, GangOutcome, GangResult, PodOutcome, QueueUse
from gangdash.engine.model.digest import snapshot_digest
from gangdash.engine.verdict import Explanation, ReasonCode, Verdict
from gangdash.engine.whatif import Cycles, run_all
from gangdash.reasons import REGISTRY

logger = logging.getLogger(__name__)

_NOTHING_TO_TELL = frozenset({ReasonCode.RUNNING, ReasonCode.COMPLETED})
_NOT_WAITING = frozenset({Verdict.HEALTHY, Verdict.VIOLATED})
_WAITING_PODS = frozenset({PodOutcome.BOUND, PodOutcome.PIPELINED, PodOutcome.PENDING, PodOutcome.GATED})


def replay(
    snapshot: ClusterSnapshot,
    *,
    cycle_only: bool = False,
    gang: str | None = None,
    include_all: bool = False,
    cycles: Cycles | None = None,
    known: Sequence[ExplanationDocument] = (),
) -> Diagnosis:
    """Return document one; ``gang`` (``namespace/name``) narrows the explanations to that one, healthy or not.

    ``cycles`` are those of this very snapshot where they were run already. ``known`` are all answers to the same
    objects at an earlier moment: they are taken over where nothing in them turns with time.
    """
    if cycles is None:
        cycles = run_all(snapshot)
    digest = snapshot_digest(snapshot)
    explanations: Sequence[Explanation] = ()
    is_known = bool(known) and timeless.holds(snapshot, known)
    if not cycle_only and not is_known:
        context = Context(snapshot, cycles)
        explanations = with_fixes(context, cycles, explain_in(context, only=gang))
    told = [_worded(item, snapshot, digest) for item in explanations]
    if is_known:
        told = timeless.restamped(known, as_of=stamp(snapshot.as_of) or "", digest=digest)
    shows_all = gang is not None or include_all
    return Diagnosis(
        snapshot=snapshot.name,
        digest=digest,
        as_of=stamp(snapshot.as_of) or "",
        engine=__version__,
        cycle=_cycle(cycles),
        explanations=[document for document in told if shows_all or document.code not in _NOTHING_TO_TELL],
        not_read=_not_read(snapshot, told),
        not_modelled=_not_modelled(told),
        oddities=[OddityEntry(odd.object, odd.field, odd.problem) for odd in snapshot.oddities],
    )


def _worded(item: Explanation, snapshot: ClusterSnapshot, digest: str) -> ExplanationDocument:
    """Put words to one explanation; where that fails, the gang has none and the others keep theirs."""
    try:
        return explanation_document(item, snapshot, digest)
    except Exception as error:  # per-gang boundary
        logger.exception("wording_failed", extra={"gang": item.gang.key})
        return explanation_document(fault(item.gang, error), snapshot, digest)


def exit_code(diagnosis: Diagnosis) -> int:
    """Return 0 when nothing waits, 1 when something waits, 2 when something can never start as it is."""
    if any(REGISTRY[entry.code].never for entry in diagnosis.explanations):
        return 2
    waits = any(entry.verdict not in _NOT_WAITING for entry in diagnosis.explanations)
    return int(waits or any(_waits(gang) for gang in diagnosis.cycle.gangs))


def _waits(gang: CycleGang) -> bool:
    return gang.outcome is GangOutcome.NOT_READY or any(pod.outcome in _WAITING_PODS for pod in gang.pods)


def _cycle(cycles: Iterable[CycleResult]) -> Cycle:
    gangs = [_gang(gang) for cycle in cycles for gang in cycle.gangs]
    queues = [_queue(queue) for cycle in cycles for queue in cycle.queues]
    return Cycle(gangs=gangs, queues=queues)


def _gang(gang: GangResult) -> CycleGang:
    return CycleGang(
        namespace=gang.namespace,
        name=gang.name,
        shard=gang.shard,
        queue=gang.queue,
        ready=gang.ready,
        outcome=gang.outcome,
        action=gang.action,
        pods=[CyclePod(pod.name, pod.outcome, pod.node, pod.action) for pod in gang.pods],
        errors=[CycleError(error.reason, error.message) for error in gang.errors],
        one_of_several=gang.one_of_several,
    )


def _queue(queue: QueueUse) -> CycleQueue:
    return CycleQueue(
        name=queue.name,
        shard=queue.shard,
        fair_share=_amounts(queue.fair_share) if queue.fair_share else None,
        allocated_before=_amounts(queue.allocated_before),
        allocated_after=_amounts(queue.allocated_after),
    )


def _amounts(amounts: RawAmounts) -> Amounts:
    return Amounts(cpu=whole(amounts[0]), memory=whole(amounts[1]), gpu=whole(amounts[2]))


def _not_read(snapshot: ClusterSnapshot, explanations: Iterable[ExplanationDocument]) -> list[NotReadEntry]:
    matters = Counter(kind for item in explanations for kind in item.not_read)
    return [NotReadEntry(gap.kind, gap.reason, matters[gap.kind]) for gap in snapshot.not_read]


def _not_modelled(explanations: Iterable[ExplanationDocument]) -> list[NotModelledEntry]:
    matters = Counter(part for item in explanations for part in item.not_modelled)
    return [NotModelledEntry(what, "not replayed", count) for what, count in sorted(matters.items())]


__all__ = ["Diagnosis", "ExplanationDocument", "exit_code", "replay"]
