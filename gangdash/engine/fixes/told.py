"""Fixes that findings themselves name: those that a replay can see are re-run like any other.

A finding tells what its code means: a label that is missing, a reference that is wrong, a controller that owes the
next step. Where the change can be made to the snapshot, it is proved; where it cannot, it stays unproved and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches

from gangdash.engine.changes import Change, is_modelled
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.placeable import placed_by_replay
from gangdash.engine.fixes.candidate import Candidate
from gangdash.engine.session.build import in_pool
from gangdash.engine.verdict import Explanation, FactValue, Fix, FixKind, Verdict, Who

_BY_PROCESS = frozenset({FixKind.RESTART_COMPONENT, FixKind.RECREATE_WORKLOAD, FixKind.UPGRADE})
"""Kinds whose effect no replay knows."""
_REFERENCES = 2
_CLOSE = 0.6


def candidates(gang: Gang, fix: Fix) -> list[Candidate]:
    """Return the changes that a told fix stands for; empty where the replay cannot see it."""
    if fix.kind in _BY_PROCESS or not is_modelled(fix.kind):
        return []
    if fix.kind is FixKind.FIX_REFERENCE:
        return list(_references(gang, fix))
    translate = _TRANSLATIONS.get(fix.kind, _as_told)
    change = translate(gang, fix)
    return [] if change is None else [Candidate(fix.kind, (change,), fix.facts, fix.form, fix.who)]


def awaited(gang: Gang, item: Explanation) -> list[Fix]:
    """Return what an evicted gang waits for where its finding names no fix: its turn, or its pods."""
    if item.finding.verdict is not Verdict.EVICTED:
        return []
    if placed_by_replay(gang):
        return [_wait("scheduler", "the next scheduling cycle")]
    if not gang.is_ready or not gang.waits:
        return [_wait(gang.owner_ref or f"PodGroup/{gang.podgroup.key}", "its evicted pods to be made again")]
    return []


def _wait(object_: str, what: str) -> Fix:
    return Fix(FixKind.WAIT_FOR, {"object": object_}, {"what": what}, who=Who.WAIT)


def _text(value: FactValue) -> str:
    return "" if value is None else str(value)


def _object(fix: Fix) -> str:
    return _text(fix.change.get("object"))


def _as_told(_gang: Gang, fix: Fix) -> Change:
    values = {key: _text(value) for key, value in fix.change.items() if key != "object"}
    return Change(fix.kind, _object(fix), values)


def _created(_gang: Gang, fix: Fix) -> Change | None:
    """Objects whose content nobody can guess, such as a Topology's levels or a node's label, are not made up."""
    kind = _object(fix).partition("/")[0]
    return _as_told(_gang, fix) if kind in {"Queue", "PriorityClass", "ConfigMap"} else None


def _shrunk(_gang: Gang, fix: Fix) -> Change:
    return Change(fix.kind, _object(fix), {"pods": _text(fix.change.get("to"))})


def _labelled(_gang: Gang, fix: Fix) -> Change | None:
    key, value = _text(fix.change.get("key")), _text(fix.change.get("value"))
    known = _object(fix).partition("/")[0] in {"Node", "Queue", "PodGroup", "ResourceClaim"}
    return Change(fix.kind, _object(fix), {key: value}) if known and key and value else None


def _relaxed(_gang: Gang, fix: Fix) -> Change:
    return Change(fix.kind, _object(fix), {"topology": "none", "required": "none", "preferred": "none"})


def _evicted(_gang: Gang, fix: Fix) -> Change | None:
    return None if _object(fix).startswith("Pod/") else _as_told(_gang, fix)


def _waited(gang: Gang, fix: Fix) -> Change | None:
    kind, _, name = _object(fix).partition("/")
    if kind == "Node":
        return Change(fix.kind, _object(fix), {"state": "repaired"})
    if kind == "Pod" and any(pod.key == name and pod.gates for pod in gang.pods):
        return Change(fix.kind, f"PodGroup/{gang.podgroup.key}", {"state": "ungated"})
    return None


_TRANSLATIONS: Mapping[FixKind, Callable[[Gang, Fix], Change | None]] = {
    FixKind.CREATE_OBJECT: _created,
    FixKind.SHRINK_GANG: _shrunk,
    FixKind.SET_LABEL: _labelled,
    FixKind.RELAX_TOPOLOGY: _relaxed,
    FixKind.EVICT_GANG: _evicted,
    FixKind.WAIT_FOR: _waited,
}


# A reference to something that is not there


def _references(gang: Gang, fix: Fix) -> Iterator[Candidate]:
    """Yield what the reference could have meant: names that are near, in the order of likeness."""
    of = _object(fix)
    if of == f"PodGroup/{gang.podgroup.key}" and fix.change.get("field") == "spec.queue":
        for name in _meant(gang.podgroup.queue, _leaf_queues(gang)):
            yield _pointing(gang, fix, "queue", name)
    elif fix.change.get("field") == "topologyConstraint":
        yield from _levels(gang, fix)
    elif _text(fix.change.get("field")).startswith("label") and of.startswith("Pod/"):
        pod = of.rpartition("/")[2]
        for name in _meant(_text(fix.facts.get("found")), list(gang.parts)):
            values = {"subgroup_label": name, "pod": pod}
            yield _corrected(gang, fix, values, name)


def _meant(found: str, known: list[str]) -> list[str]:
    close = get_close_matches(found, known, n=_REFERENCES, cutoff=_CLOSE)
    return close or known[:_REFERENCES]


def _leaf_queues(gang: Gang) -> list[str]:
    """Return the queues of the gang's shard that take gangs, by name."""
    context = gang.context
    names = [queue.name for queue in context.snapshot.queues if in_pool(queue.meta, gang.params)]
    return sorted(name for name in names if not context.children.get(name))


def _levels(gang: Gang, fix: Fix) -> Iterator[Candidate]:
    constraint = gang.podgroup.topology
    topology = gang.context.topologies.get(constraint.topology) if constraint is not None else None
    if constraint is None or topology is None:
        return
    labels = [level.node_label for level in topology.levels]
    wrong = constraint.required_level not in labels
    for label in _meant(constraint.required_level or constraint.preferred_level, labels):
        values = {"required": label} if constraint.required_level else {"preferred": label}
        if not wrong:
            values = {"required": constraint.required_level, "preferred": "none"}
        yield _corrected(gang, fix, values, label if wrong else constraint.required_level)


def _pointing(gang: Gang, fix: Fix, key: str, name: str) -> Candidate:
    return _corrected(gang, fix, {key: name}, name)


def _corrected(gang: Gang, fix: Fix, values: Mapping[str, str], wanted: str) -> Candidate:
    facts: dict[str, FactValue] = {**fix.facts, "field": fix.change.get("field"), "object": _object(fix)}
    facts["wanted"] = wanted
    change = Change(FixKind.FIX_REFERENCE, gang.podgroup.key, dict(values))
    return Candidate(FixKind.FIX_REFERENCE, (change,), facts, who=fix.who)
