"""How far a replay agrees with what the real scheduler was recorded to do.

Counted are gangs that had something to decide. Where the scheduler itself chose differently from run to
run, any of its choices is right, and what cannot be judged is left out (``unstable`` and its kin).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gangdash.engine.model.cycle import CycleResult, GangResult, QueueUse

DECIDED = frozenset({"bound", "pipelined", "pending", "gated", "evicted", "moved"})
WAITING = frozenset({"pending", "gated"})
COLUMNS = ("verdict", "placement", "reasons", "messages", "fair share")
RESOURCES = ("cpu", "memory", "gpu")

Recorded = Mapping[str, Any]
Shape = tuple[str, str | None, tuple[tuple[str, int], ...]]


@dataclass(slots=True)
class Agreement:
    """Per column what was counted and what agreed, and the differences in words."""

    right: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def percent(self, column: str) -> float:
        return 100 * self.right[column] / self.counted[column] if self.counted[column] else 100.0

    def note(self, column: str, where: str, expected: object, found: object, *, same: bool) -> None:
        self.counted[column] += 1
        self.right[column] += same
        if not same:
            self.differences.append(f"{where}: {column}: recorded {expected}, replayed {found}")

    def __str__(self) -> str:
        return ", ".join(f"{c} {self.percent(c):.1f} % of {self.counted[c]}" for c in COLUMNS)


def compare(name: str, recorded: Recorded, replayed: CycleResult, into: Agreement) -> None:
    """Count one file's gangs and queues."""
    gangs = {(gang.namespace, gang.name): gang for gang in replayed.gangs}
    for gang in recorded["gangs"]:
        found = gangs.get((gang["namespace"], gang["name"]))
        outcomes = {pod["outcome"] for pod in gang["pods"]} | {str(p.outcome) for p in (found.pods if found else ())}
        if not DECIDED.isdisjoint(outcomes):
            _compare_gang(f"{name} {gang['namespace']}/{gang['name']}", gang, found, into)
    uses = {use.name: use for use in replayed.queues}
    for queue in recorded["queues"]:
        if queue["fair_share"] is not None:
            use = uses.get(queue["name"])
            same = use is not None and _same_share(queue["fair_share"], use)
            found_share = use.fair_share if use is not None else None
            into.note("fair share", f"{name} {queue['name']}", queue["fair_share"], found_share, same=same)


def _compare_gang(where: str, recorded: Recorded, found: GangResult | None, into: Agreement) -> None:
    if not recorded.get("unstable"):
        shape = _shape_of(found) if found is not None else None
        accepted = {_recorded_shape(recorded)}
        accepted |= {(o, a, tuple((k, n) for k, n in c)) for o, a, c in recorded.get("alternatives", [])}
        into.note("verdict", where, sorted(map(str, accepted)), shape, same=shape in accepted)
        if not recorded.get("placement_unstable"):
            expected = sorted((pod["name"], pod["outcome"], pod.get("node") or "") for pod in recorded["pods"])
            places = sorted((p.name, str(p.outcome), p.node or "") for p in (found.pods if found else ()))
            into.note("placement", where, expected, places, same=expected == places)
    if recorded.get("errors_unstable") or WAITING.isdisjoint(pod["outcome"] for pod in recorded["pods"]):
        return
    told = {(error["reason"], _words(error.get("message", ""))) for error in recorded.get("errors") or []}
    ours = {(error.reason, _words(error.message)) for error in (found.errors if found else ())}
    reasons, our_reasons = {reason for reason, _ in told}, {reason for reason, _ in ours}
    into.note("reasons", where, sorted(reasons), sorted(our_reasons), same=reasons == our_reasons)
    into.note("messages", where, sorted(told), sorted(ours), same=told == ours)


def _recorded_shape(gang: Recorded) -> Shape:
    counts = Counter(pod["outcome"] for pod in gang["pods"] if pod["outcome"] in DECIDED)
    return (gang["outcome"], gang["action"], tuple(sorted(counts.items())))


def _shape_of(gang: GangResult) -> Shape:
    counts = Counter(str(pod.outcome) for pod in gang.pods if str(pod.outcome) in DECIDED)
    return (str(gang.outcome), gang.action, tuple(sorted(counts.items())))


def _same_share(recorded: Mapping[str, float], use: QueueUse) -> bool:
    return use.fair_share is not None and all(
        math.isclose(recorded[name], share, rel_tol=1e-6, abs_tol=1e-6)
        for name, share in zip(RESOURCES, use.fair_share, strict=True)
    )


def _words(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip(" .")
