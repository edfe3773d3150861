"""Rules that people make: a filter over gangs, without code, with the same machinery as the built-in ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.alerts.rules.base import Finding, by_cause, cause_finding
from apps.alerts.rules.facts import Facts, Stretch
from apps.workloads.choices import GangState
from gangdash.engine.verdict import Verdict


@dataclass(frozen=True, slots=True)
class GangCondition:
    """Which gangs to find. Each set means any of, an empty one all; queues and namespaces are the rule's scope.

    Without verdicts and codes only gangs that wait are found. Numbers are GPUs that wait, and seconds of waiting.
    """

    verdicts: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()
    who: frozenset[str] = frozenset()
    gpus_least: float = 0.0
    gpus_most: float | None = None
    age_seconds: float = 0.0


def condition_of(data: Mapping[str, object]) -> GangCondition:
    """Read a condition as it is stored."""
    sets = {name: frozenset(map(str, _list(data.get(name)))) for name in ("verdicts", "codes", "who")}
    most = data.get("gpus_most")
    return GangCondition(
        **sets,
        gpus_least=_number(data.get("gpus_least")),
        gpus_most=None if most is None else _number(most),
        age_seconds=_number(data.get("age_seconds")),
    )


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def custom_find(facts: Facts, condition: GangCondition) -> list[Finding]:
    """Find the gangs that meet a condition, one finding for each cause."""
    looked_at = [*facts.standing, *(facts.resting if Verdict.HEALTHY in condition.verdicts or condition.codes else ())]
    since = {row.gang: begun for row in looked_at if (begun := _since(facts, row, condition)) is not None}
    rows = [row for row in looked_at if row.gang in since]
    return [
        cause_finding(facts, group, text="", since=min(since[row.gang] for row in group))
        for group in by_cause(rows).values()
    ]


def _since(facts: Facts, row: Stretch, condition: GangCondition) -> datetime | None:
    """Return since when a gang meets the condition, None where it does not."""
    if not _matches(row, condition):
        return None
    if not condition.age_seconds:
        return row.opened
    due = facts.waits_since(row) + timedelta(seconds=condition.age_seconds)
    return max(due, row.opened) if row.waits and due <= facts.at else None


def _matches(row: Stretch, condition: GangCondition) -> bool:
    if not condition.verdicts and not condition.codes and row.state != GangState.WAITS:
        return False
    wanted = (
        (condition.verdicts, row.verdict),
        (condition.codes, row.code),
        (condition.who, row.who),
    )
    if any(values and value not in values for values, value in wanted):
        return False
    return condition.gpus_least <= row.gpus and (condition.gpus_most is None or row.gpus <= condition.gpus_most)
