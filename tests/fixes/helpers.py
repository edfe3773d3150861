"""Fixes of a cluster, and an independent account of what a change does to the whole cycle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from gangdash.engine.changes import apply, changes_from_mapping
from gangdash.engine.explain import explain_in
from gangdash.engine.explain.context import Context
from gangdash.engine.fixes import with_fixes
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.cycle import CycleResult
from gangdash.engine.verdict import Explanation, Fix
from gangdash.engine.whatif import run_all
from tests.engine.builders import Cluster
from tests.explain.helpers import recorded, scenes

_LISTS = ("starts", "moves", "delays", "sets_back", "evicts")


def fixed(snapshot: ClusterSnapshot) -> list[Explanation]:
    """Return the explanations of a snapshot with their fixes."""
    cycles = run_all(snapshot)
    context = Context(snapshot, cycles)
    return with_fixes(context, cycles, explain_in(context))


@cache
def all_fixed() -> tuple[tuple[ClusterSnapshot, tuple[Explanation, ...]], ...]:
    """Return the recorded clusters and the scenes with all explanations, worked out once for all tests."""
    return tuple((snapshot, tuple(fixed(snapshot))) for snapshot in (*recorded(), *scenes()))


def fixes_of(cluster: Cluster, gang: str = "team/g") -> tuple[Fix, ...]:
    return next(item.fixes for item in fixed(cluster.snapshot()) if item.gang.key == gang)


def kinds(fixes: tuple[Fix, ...]) -> set[str]:
    return {fix.kind.value for fix in fixes}


def changed(snapshot: ClusterSnapshot, fix: Fix) -> ClusterSnapshot:
    """Make the change of a fix the way a reader would: from the JSON of its document."""
    printed = json.loads(json.dumps({"kind": fix.kind.value, **fix.change}))
    return apply(snapshot, changes_from_mapping(printed))


def effects(fix: Fix) -> dict[str, tuple[str, ...]]:
    return {name: getattr(fix, name) for name in _LISTS}


# The slow path: what each gang does is read off its pods alone

Standing = tuple[str, frozenset[str], frozenset[str], int]


def standings(cycles: tuple[CycleResult, ...]) -> dict[str, Standing]:
    """Return by gang: whether it waits, is given room or holds it; pods evicted; pods moved; pods that fitted."""
    found: dict[str, Standing] = {}
    for cycle in cycles:
        for gang in cycle.gangs:
            by_outcome: dict[str, set[str]] = {}
            for pod in gang.pods:
                by_outcome.setdefault(pod.outcome.value, set()).add(pod.name)
            given = by_outcome.keys() & {"bound", "pipelined"}
            state = "given" if given else "waits" if by_outcome.keys() & {"pending", "gated"} else "holds"
            evicted, moved = by_outcome.get("evicted", set()), by_outcome.get("moved", set())
            if state == "holds" and moved and not evicted:
                state = "moved"
            fit = -1 if gang.fit is None else gang.fit
            found[f"{gang.namespace}/{gang.name}"] = (state, frozenset(evicted), frozenset(moved), fit)
    return found


def told(before: Mapping[str, Standing], after: Mapping[str, Standing]) -> dict[str, tuple[str, ...]]:
    """Return what a change does to every gang."""
    lists: dict[str, list[str]] = {name: [] for name in _LISTS}
    nothing: Standing = ("waits", frozenset(), frozenset(), -1)
    for key in sorted(after):
        is_new = key not in before
        old, new = before.get(key, nothing), after[key]
        if old[0] == "waits" and new[0] in {"given", "moved"}:
            lists["starts"].append(key)
        elif new[1] - old[1]:
            lists["evicts"].append(key)
        elif new[2] - old[2]:
            lists["moves"].append(key)
        elif new[0] == "waits" and not is_new:
            if old[0] == "given":
                lists["delays"].append(key)
            elif old[0] == "waits" and 0 <= new[3] < old[3]:
                lists["sets_back"].append(key)
            elif old[0] in {"holds", "moved"} and not old[1]:
                lists["evicts"].append(key)
    return {name: tuple(keys) for name, keys in lists.items()}
