"""Short ways to make the constraints and findings that the modules of this package return."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.pod import Pod
from gangdash.engine.verdict import Constraint

SHOWN = 5
"""How many examples an answer carries; the count beside them says how many there are."""


def named(id_: ConstraintId, scope: str, wanted: str, found: str | None, source: str) -> Constraint:
    """Return a constraint whose need is a name or a state, not a number."""
    return Constraint(id_, scope, wanted, found, Unit.NAME, source)


def names(pods: Iterable[Pod]) -> tuple[str, ...]:
    """Return the names of pods in order."""
    return tuple(sorted(pod.meta.name for pod in pods))


def first(items: Iterable[str], count: int = SHOWN) -> tuple[str, ...]:
    return tuple(sorted(items))[:count]


_GROUPER_NAME = re.compile(r"pg-(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def spoken(name: str) -> str:
    """Return a PodGroup's name as a person says it: without the prefix and the uid that KAI's pod grouper adds."""
    found = _GROUPER_NAME.fullmatch(name)
    return found[1] if found else name


_ACTION_NOUNS = {
    "allocate": "allocation",
    "preempt": "preemption",
    "stalegangeviction": "eviction of stale gangs",
}


def action_noun(action: str | None) -> str:
    """Return one of the scheduler's actions as a sentence names it."""
    return _ACTION_NOUNS.get(action or "", action or "an eviction")
