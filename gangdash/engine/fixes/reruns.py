"""The same cycle on changed snapshots, each run once, as many as a diagnosis may cost.

Every answer is a whole cycle with the changes beside the whole cycle without. What the budget leaves out is not run
and so not claimed; the budget is counted in cycles by the size of the snapshot, never by a clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangdash.engine.changes import Change, ChangeError, apply
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.cycle import CycleResult
from gangdash.engine.whatif import Cycles, Effect, difference, gangs_by_key, is_waiting, run_all

WORK = 40_000
"""Nodes times waiting gangs that all re-runs of one diagnosis may come to: seconds for a cluster of forty nodes."""
_LEAST_WORK = 500
"""What a cycle costs however small it is, in the same unit."""
LEAST_RUNS = 4

Key = tuple[tuple[tuple[str, str], ...], ...]


def key_of(changes: Sequence[Change]) -> Key:
    return tuple(tuple(sorted(change.describe().items())) for change in changes)


class Reruns:
    """Re-runs of one snapshot; ``left`` is how many cycles may still be run."""

    def __init__(self, snapshot: ClusterSnapshot, cycles: Cycles) -> None:
        self.snapshot = snapshot
        self.before = cycles
        self.left = _affordable(snapshot, cycles)
        self._known: dict[Key, Effect | None] = {}

    def knows(self, changes: Sequence[Change]) -> bool:
        return key_of(changes) in self._known

    def effect(self, changes: Sequence[Change]) -> Effect | None:
        """Return what the changes do to every gang; None where they cannot be made or the budget is spent."""
        key = key_of(changes)
        if key not in self._known and self.left > 0:
            self._known[key] = self._run(changes)
        return self._known.get(key)

    def starts(self, key: str) -> list[tuple[Key, Effect]]:
        """Return the runs so far that start a gang, given as ``namespace/name``."""
        return [(changes, effect) for changes, effect in self._known.items() if effect and key in effect.starts]

    def _run(self, changes: Sequence[Change]) -> Effect | None:
        try:
            changed = apply(self.snapshot, changes)
        except ChangeError:
            return None
        self.left -= 1
        return difference(self.before, run_all(changed))


def _affordable(snapshot: ClusterSnapshot, cycles: Sequence[CycleResult]) -> int:
    waiting = sum(is_waiting(gang) for gang in gangs_by_key(cycles).values())
    return max(LEAST_RUNS, WORK // max(len(snapshot.nodes) * waiting, _LEAST_WORK))
