"""Rules about how gangs move: one that stays in a stage for too long, one that goes back and forth.

Stages and their times are those of attempts; how long is too long comes from the runs of the days before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from apps.alerts.rules.base import Finding, Values, cause_finding
from apps.alerts.rules.facts import AttemptFact, Baseline, Facts, Stretch
from apps.delivery.messages import Severity
from gangdash.engine.verdict import ReasonCode, Verdict
from gangdash.reasons.wording import duration

PERCENTILE = 0.99


class Stage(StrEnum):
    """What a gang can be held up in, apart from waiting for capacity."""

    UPSTREAM = "upstream"
    GATES = "gates"
    DECISION = "decision"
    BIND = "bind"
    START = "start"


CONTROLLERS: Mapping[Stage, str] = {
    Stage.UPSTREAM: "the controller above the PodGroup (Dynamo or Grove operator, pod-grouper)",
    Stage.GATES: "the Grove operator, which takes scheduling gates off",
    Stage.DECISION: "the scheduler",
    Stage.BIND: "the binder",
    Stage.START: "the kubelet and the containers",
}
PAGED = frozenset({Stage.DECISION, Stage.BIND})
STUCK_AT: Mapping[str, Stage] = {
    ReasonCode.SCHEDULER_DOWN: Stage.DECISION,
    ReasonCode.SCHEDULER_DEFECT: Stage.DECISION,
    ReasonCode.BIND_FAILING: Stage.BIND,
    ReasonCode.BIND_LOOP: Stage.BIND,
    ReasonCode.HELPER_POD_REFUSED: Stage.BIND,
    ReasonCode.CONTROLLER_SILENT: Stage.UPSTREAM,
}
"""Codes that are themselves the proof that nothing moves."""


@dataclass(frozen=True, slots=True)
class Held:
    """A gang in a stage since a moment. ``is_proof`` needs no measure of how long is too long."""

    row: Stretch
    stage: Stage
    since: datetime
    is_proof: bool = False


def stuck_stage(facts: Facts, values: Values) -> list[Finding]:
    """Find gangs that stay in one stage for a multiple of what nearly all others needed."""
    late: dict[tuple[str, Stage], list[Held]] = {}
    for row in facts.standing:
        held = _held(facts, row)
        if held is not None and facts.age(held.since) >= _limit(facts, held, values):
            late.setdefault((row.cause, held.stage), []).append(held)
    return [_stage_finding(facts, stage, items, values) for (_, stage), items in late.items()]


def _held(facts: Facts, row: Stretch) -> Held | None:
    """Return where a gang stands, None where it waits for something else than a controller."""
    if row.code in STUCK_AT:
        return Held(row, STUCK_AT[ReasonCode(row.code)], row.opened, is_proof=True)
    if row.code == ReasonCode.UPSTREAM_STAGE:
        return Held(row, Stage.UPSTREAM, row.opened)
    attempt = facts.attempts.get(row.gang)
    if attempt is None:
        return None
    return _held_by_steps(row, attempt.as_of(facts.at))


def _held_by_steps(row: Stretch, attempt: AttemptFact) -> Held | None:
    if attempt.gated and not attempt.ungated:
        # A gate that waits for another gang is no controller's fault.
        return None if row.code == ReasonCode.WAITS_FOR_BASE_GANG else Held(row, Stage.GATES, attempt.gated)
    if attempt.bound:
        is_starting = row.verdict == Verdict.STARTING and not attempt.ready
        return Held(row, Stage.START, max(attempt.bound, row.opened)) if is_starting else None
    if attempt.decided:
        return Held(row, Stage.BIND, attempt.decided) if row.waits else None
    if row.verdict in {Verdict.WILL_START, Verdict.STUCK}:
        return Held(row, Stage.DECISION, row.opened)
    return None


def _limit(facts: Facts, held: Held, values: Values) -> timedelta:
    if held.is_proof:
        return timedelta()
    known = facts.baselines.get(held.stage)
    if known is None or known.runs < values["runs"]:
        return timedelta(seconds=values["unknown_seconds"])
    return timedelta(seconds=max(known.seconds * values["times"], values["least_seconds"]))


def _stage_finding(facts: Facts, stage: Stage, items: Sequence[Held], values: Values) -> Finding:
    since = min(item.since for item in items)
    limit = max(_limit(facts, item, values) for item in items)
    return cause_finding(
        facts,
        [item.row for item in items],
        text=f"{_measure(facts, stage, items)} It is moved on by {CONTROLLERS[stage]}.",
        since=since + limit,
        severity=Severity.PAGE if stage in PAGED else None,
    )


def _measure(facts: Facts, stage: Stage, items: Sequence[Held]) -> str:
    """Say why this is too long."""
    known = facts.baselines.get(stage)
    if all(item.is_proof for item in items):
        return f"Nothing moves in the stage {stage}."
    if known is None:
        return f"Held up in the stage {stage}; too few runs are known to compare with."
    return f"Held up in the stage {stage}; 99 of 100 runs took up to {duration(known.seconds)}."


def baselines(attempts: Iterable[AttemptFact], upstream: Iterable[Stretch], *, before: datetime) -> dict[str, Baseline]:
    """Return how long each stage took in runs that ended before a moment."""
    took: dict[str, list[float]] = {}
    for attempt in attempts:
        for stage, start, end in _runs(attempt):
            if start is not None and end is not None and start <= end <= before:
                took.setdefault(stage, []).append((end - start).total_seconds())
    for row in upstream:
        if row.code == ReasonCode.UPSTREAM_STAGE and row.closed is not None and row.closed <= before:
            took.setdefault(Stage.UPSTREAM, []).append((row.closed - row.opened).total_seconds())
    return {stage: Baseline(_percentile(values), len(values)) for stage, values in took.items()}


def _runs(attempt: AttemptFact) -> Iterable[tuple[Stage, datetime | None, datetime | None]]:
    eligible = attempt.ungated or attempt.created or attempt.seen
    yield Stage.GATES, attempt.gated, attempt.ungated
    yield Stage.DECISION, eligible, attempt.decided
    yield Stage.BIND, attempt.decided, attempt.bound
    yield Stage.START, attempt.bound, attempt.ready


def _percentile(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[min(int(PERCENTILE * len(ordered)), len(ordered) - 1)]


# Flapping


def flapping(facts: Facts, values: Values) -> list[Finding]:
    """Find gangs that return to reasons they had left, are evicted again and again, or are bound in vain."""
    turned = _turning(facts, values)
    evicted = _evicted(facts, values)
    looping = {row.gang: row.opened for row in facts.standing if row.code == ReasonCode.BIND_LOOP}
    turn_span, eviction_span = duration(values["turn_seconds"]), duration(values["eviction_seconds"])
    said = [
        (turned, f"The reason went back and forth {values['turns']:g} times or more within {turn_span}."),
        (evicted, f"Evicted {values['evictions']:g} times or more within {eviction_span}."),
        (looping, "Bound again and again, and each binding failed."),
    ]
    standing = {row.gang: row for rows in (facts.standing, facts.resting) for row in rows}
    found = []
    for since, text in said:
        rows = [standing[gang] for gang in since if gang in standing]
        found += [_flap(facts, row, since[row.gang], text) for row in rows]
    return _once(found)


def _flap(facts: Facts, row: Stretch, since: datetime, text: str) -> Finding:
    """Return the finding of one gang: its reasons change, so that only its name stays the same."""
    gang = facts.gangs[row.gang]
    return Finding(
        signature=f"FLAPPING||{gang.path}",
        since=since,
        title=f"{gang.path} goes back and forth",
        text=text,
        verdict=row.verdict,
        code=row.code,
        subject=row.subject,
        who=row.who,
        queue=gang.queue,
        gangs=(row.gang,),
        gpus=row.gpus,
    )


def _once(found: Iterable[Finding]) -> list[Finding]:
    first: dict[str, Finding] = {}
    for item in found:
        first.setdefault(item.signature, item)
    return list(first.values())


def _turning(facts: Facts, values: Values) -> dict[int, datetime]:
    """Return by gang when it went back to a reason for so many times that it counts as flapping."""
    since = facts.at - timedelta(seconds=values["turn_seconds"])
    moved: dict[int, list[Stretch]] = {}
    for row in facts.opened_since(since):
        moved.setdefault(row.gang, []).append(row)
    found = {}
    for gang, rows in moved.items():
        if len(rows) < values["turns"]:
            continue
        turns = _turns(facts, gang, rows)
        if len(turns) >= values["turns"]:
            found[gang] = turns[int(values["turns"]) - 1]
    return found


def _turns(facts: Facts, gang: int, rows: Sequence[Stretch]) -> list[datetime]:
    """Return when a gang went back to a reason that it had left within the same time."""
    history = facts.history(gang)
    before = history[: len(history) - len(rows)]
    left = {(before[-1].verdict, before[-1].code)} if before else set()
    turns = []
    for row in rows:
        reason = (row.verdict, row.code)
        if reason in left:
            turns.append(row.opened)
        left.add(reason)
    return turns


def _evicted(facts: Facts, values: Values) -> dict[int, datetime]:
    """Return by gang when the attempts at what it is one of had lost their nodes for too many times."""
    times: dict[str, list[datetime]] = {}
    for at, gang in facts.evicted_since(facts.at - timedelta(seconds=values["eviction_seconds"])):
        times.setdefault(_lineage(facts, gang), []).append(at)
    least = int(values["evictions"])
    many = {lineage: moments[least - 1] for lineage, moments in times.items() if len(moments) >= least}
    if not many:
        return {}
    standing = (row.gang for rows in (facts.standing, facts.resting) for row in rows)
    return {gang: many[_lineage(facts, gang)] for gang in standing if _lineage(facts, gang) in many}


def _lineage(facts: Facts, gang: int) -> str:
    fact = facts.gangs.get(gang)
    return (fact.lineage if fact else "") or f"gang {gang}"
