"""The manual checks V1 to V22 and the rules of consistency C1 to C20, as one list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apps.checks.rules import addons, gangs, nvcf, queues, topology
from apps.checks.rules.base import Check, Outcome, Severity, State, View
from gangdash.engine.model.cluster import ClusterSnapshot

CHECKS: Mapping[str, Check] = {
    check.id: check
    for check in sorted(
        (*addons.CHECKS, *gangs.CHECKS, *nvcf.CHECKS, *queues.CHECKS, *topology.CHECKS),
        key=lambda check: (check.id[0] == "C", int(check.id[1:])),
    )
}


def run(snapshot: ClusterSnapshot) -> Iterator[tuple[Check, Outcome]]:
    """Yield every check with what it found, in the order of the list."""
    view = View(snapshot)
    for check in CHECKS.values():
        yield check, check.rule(view)


__all__ = ["CHECKS", "Check", "Outcome", "Severity", "State", "View", "run"]
