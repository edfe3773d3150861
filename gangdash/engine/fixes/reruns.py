"""The same cycle on changed snapshots, each run once, as far as the work that a diagnosis may cost goes.

Every answer is a whole cycle with the changes beside the whole cycle without. Work is counted in operations of the
cycles, never by a clock, so that the same snapshot gives the same fixes on every machine. A cycle that costs more than
its part of the budget is broken off: what it would have shown is not known and so not claimed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from gangdash.engine.changes import Change, ChangeError, apply
from gangdash.engine.changes.change import gang_key
from gangdash.engine.fixes.boundary import safely
from gangdash.engine.fixes.outcome import Check, Outcome
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.session import NodeState, TaskState
from gangdash.engine.verdict import FixKind
from gangdash.engine.whatif import Cycles, Effect, difference, run_all

WORK = 450_000
WORK_PER_NODE = 450
"""Units of work for all re-runs of one diagnosis. A unit is one pod put on a node or taken off it in a simulation, and
took 25 to 30 microseconds of one core of a small virtual machine; so this is 12 seconds, and 12 more for 1,000 nodes.
"""
_PARTS = 20
"""One re-run may take one of so many parts of the budget: a bit more than a second at 1,000 nodes."""
_PER_OBJECT = 4
"""What a session costs to open and to read, in the same unit, by its pods and nodes."""

Key = tuple[tuple[tuple[str, str], ...], ...]


def key_of(changes: Sequence[Change]) -> Key:
    """Return what is equal for changes that make the same snapshot."""
    return tuple(tuple(sorted(_plain(change).describe().items())) for change in changes)


def _plain(change: Change) -> Change:
    if change.kind is FixKind.WAIT_FOR and change.values.get("state") == "ended":
        return Change(FixKind.EVICT_GANG, gang_key(change), {"ends": "true"})
    return change


@dataclass(frozen=True, slots=True)
class Rerun:
    """What changes do to every gang; ``effect`` is None where they cannot be made, or where the run was broken off.

    ``checks`` says of gangs with a check of their own whether their trouble is over, of those that asked.
    """

    effect: Effect | None = None
    is_cut: bool = False
    checks: Mapping[str, bool] = field(default_factory=dict)


class Reruns:
    """Re-runs of one snapshot; ``left`` is the work that may still be spent, ``runs`` counts cycles."""

    def __init__(self, snapshot: ClusterSnapshot, cycles: Cycles) -> None:
        self.snapshot = snapshot
        self.before = cycles
        self.left = WORK + WORK_PER_NODE * len(snapshot.nodes)
        self.runs = 0
        self._most = self.left // _PARTS
        self._known: dict[Key, Rerun] = {}

    def get(self, key: Key) -> Rerun | None:
        """Return what is known already."""
        return self._known.get(key)

    def run(self, changes: Sequence[Change], checks: Mapping[str, Check]) -> Rerun:
        """Run the cycle with the changes and keep what they do; ``checks`` are by key of the gang."""
        key = key_of(changes)
        # What fails is not tried again.
        self._known[key] = Rerun()
        self._known[key] = self._run(changes, checks)
        return self._known[key]

    def _run(self, changes: Sequence[Change], checks: Mapping[str, Check]) -> Rerun:
        try:
            changed = apply(self.snapshot, changes)
        except ChangeError:
            return Rerun()
        self.runs += 1
        meter = _Meter(self._most)
        try:
            after = run_all(changed, (meter,))
        except _TooDearError:
            return Rerun(is_cut=True)
        finally:
            self.left -= meter.work + _PER_OBJECT * (len(changed.pods) + len(changed.nodes))
        outcome = Outcome(changed, after)
        told = {key: safely(key, partial(check, outcome), False) for key, check in checks.items()}
        return Rerun(difference(self.before, after), checks=told)


class _TooDearError(Exception):
    """Breaks a cycle off; its session is thrown away with it."""


class _Meter:
    """Counts the operations of a cycle."""

    def __init__(self, most: int) -> None:
        self.work = 0
        self._most = most

    def node_added(self, task: TaskState, node: NodeState) -> None:
        self.work += 1
        if self.work > self._most:
            raise _TooDearError

    def node_removed(self, task: TaskState, node: NodeState) -> None:
        self.work += 1

    def allocated(self, task: TaskState, node: NodeState) -> None:
        """Counted as the node's change."""

    def released(self, task: TaskState, node: NodeState) -> None:
        """Counted as the node's change."""
