"""What-if and free capacity as documents: the entry for commands and workers beside ``gangdash.replay``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from gangdash import __version__
from gangdash.documents.compose import whole
from gangdash.documents.times import stamp
from gangdash.documents.whatif import Capacity, DomainEntry, Totals, WhatIf
from gangdash.engine.capacity import DomainCapacity, capacity
from gangdash.engine.changes import Change, apply
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.cycle import CycleResult, PodOutcome
from gangdash.engine.model.digest import snapshot_digest
from gangdash.engine.model.pod import Pod
from gangdash.engine.plugins import open_session
from gangdash.engine.session.requests import asked_gpus
from gangdash.engine.whatif import Cycles, Effect, difference, gangs_by_key, run_all
from gangdash.reasons.wording import counted

_WAITING = frozenset({PodOutcome.PENDING, PodOutcome.GATED})
_PLACED = frozenset({PodOutcome.BOUND, PodOutcome.PIPELINED, PodOutcome.MOVED, PodOutcome.KEPT})


Counts = Callable[[str], bool]
"""Whether gangs of a namespace are counted in totals."""


def _all(_namespace: str) -> bool:
    return True


class Compared(NamedTuple):
    """The cycles of every shard on a snapshot and on the snapshot with changes made."""

    snapshot: ClusterSnapshot
    changed: ClusterSnapshot
    wanted: Sequence[Change]
    before: Cycles
    after: Cycles


def compare(snapshot: ClusterSnapshot, wanted: Sequence[Change], *, before: Cycles | None = None) -> Compared:
    """Run every shard's cycle with the changes, and without them unless that was done before.

    Raises ``ChangeError`` for a change that cannot be made.
    """
    changed = apply(snapshot, wanted)
    return Compared(snapshot, changed, wanted, run_all(snapshot) if before is None else before, run_all(changed))


def what_if(snapshot: ClusterSnapshot, wanted: Sequence[Change], *, counts: Counts = _all) -> WhatIf:
    """Return what the changes do to every gang; raises ``ChangeError`` for one that cannot be made."""
    return difference_of(compare(snapshot, wanted), counts=counts)


def difference_of(found: Compared, *, counts: Counts = _all) -> WhatIf:
    """Put the difference of two runs into its document."""
    effect = difference(found.before, found.after)
    touched = {*effect.starts, *effect.moves, *effect.delays, *effect.sets_back, *effect.evicts}
    new = gangs_by_key(found.after)
    return WhatIf(
        digest=snapshot_digest(found.snapshot),
        as_of=stamp(found.snapshot.as_of) or "",
        engine=__version__,
        changes=[dict(change.describe()) for change in found.wanted],
        sentence=_sentence(effect),
        starts=list(effect.starts),
        moves=list(effect.moves),
        delays=list(effect.delays),
        sets_back=list(effect.sets_back),
        evicts=list(effect.evicts),
        before=_totals(found.snapshot.pods, found.before, counts),
        after=_totals(found.changed.pods, found.after, counts),
        one_of_several=sorted(key for key in touched if new[key].one_of_several),
        not_modelled=sorted({part for key in touched for part in new[key].not_modelled}),
    )


def _sentence(effect: Effect) -> str:
    """Say the whole effect in one line; an empty effect is said too."""
    parts = [
        f"starts {counted(len(effect.starts), 'gang', 'gangs')}",
        f"delays {len(effect.delays) or 'none'}",
        f"sets {len(effect.sets_back) or 'none'} back",
        f"moves {len(effect.moves) or 'none'}",
        f"evicts {len(effect.evicts) or 'none'}",
    ]
    if not any((effect.starts, effect.delays, effect.sets_back, effect.moves, effect.evicts)):
        return "Changes nothing for any gang in this cycle."
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _totals(pods: Iterable[Pod], cycles: Sequence[CycleResult], counts: Counts) -> Totals:
    by_uid = {pod.meta.uid: pod for pod in pods}
    counted_gangs = [gang for cycle in cycles for gang in cycle.gangs if counts(gang.namespace)]
    results = [pod for gang in counted_gangs for pod in gang.pods if pod.uid in by_uid]
    waiting = sum(asked_gpus(by_uid[pod.uid]) for pod in results if pod.outcome in _WAITING)
    placed = sum(
        asked_gpus(by_uid[pod.uid]) for pod in results if pod.outcome in _PLACED and not _is_over(by_uid[pod.uid])
    )
    gangs = sum(any(pod.outcome in _WAITING for pod in gang.pods) for gang in counted_gangs)
    return Totals(gangs, whole(round(waiting, 2)), whole(round(placed, 2)))


def _is_over(pod: Pod) -> bool:
    return pod.phase in {"Succeeded", "Failed"}


def free_capacity(snapshot: ClusterSnapshot) -> Capacity:
    """Return every domain of every shard with the gangs that still fit there."""
    rows = [_entry(shard.name, row) for shard in snapshot.shards for row in capacity(open_session(snapshot, shard))]
    return Capacity(snapshot_digest(snapshot), stamp(snapshot.as_of) or "", __version__, rows)


def _entry(shard: str, row: DomainCapacity) -> DomainEntry:
    return DomainEntry(
        shard=shard,
        topology=row.topology,
        level=row.level,
        path=list(row.path),
        nodes=row.nodes,
        gpus=row.gpus,
        free=row.free,
        held=row.held,
        largest=dict(row.largest),
        blocked=dict(row.blocked),
        fragmentation=None if row.fragmentation is None else whole(round(row.fragmentation, 4)),
    )
