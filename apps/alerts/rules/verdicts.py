"""Rules about what is said of single gangs: fits and does not start, never fits, waits unseen, is misjudged.

They rest on verdicts and on how these compare with the scheduler's own words, never on a replay of their own.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from apps.alerts.rules.base import Finding, Values, by_cause, cause_finding
from apps.alerts.rules.facts import Facts, StateFact, Stretch, Topic, queue_of
from gangdash.engine.verdict import Match, ReasonCode, Verdict, Who
from gangdash.reasons.wording import counted

FITS_CODES = frozenset(
    {
        ReasonCode.PLACEABLE_NOT_PLACED,
        ReasonCode.SCHEDULER_SILENT,
        ReasonCode.GREEDY_MISS,
        ReasonCode.SEARCH_BUDGET,
    }
)
"""Codes that are only given where the replay or an exact search placed the gang and the scheduler had its time."""
NEVER_CODES = frozenset({ReasonCode.NODE_TOO_SMALL, ReasonCode.CLUSTER_TOO_SMALL, ReasonCode.DOMAIN_TOO_SMALL})
BEFORE_SCHEDULER = frozenset({Verdict.GATED, Verdict.CONFIG, Verdict.NO_VERDICT})
"""Verdicts of gangs that the scheduler has nothing to say about yet."""


def head_fits(facts: Facts, _values: Values) -> list[Finding]:
    """Find gangs that could be placed and are not."""
    return _causes(facts, FITS_CODES, "A placement exists, and the scheduler has not used it.")


def never_fits(facts: Facts, _values: Values) -> list[Finding]:
    """Find gangs that not even an empty cluster could hold, or whose queue's limit is smaller than they are."""
    found = _causes(facts, NEVER_CODES, "Not even an empty cluster could hold it as it is.")
    over = [row for row in facts.standing if row.code == ReasonCode.QUEUE_LIMIT and _is_over_limit(facts, row)]
    text = "It asks for more than its queue may ever use."
    return found + [cause_finding(facts, rows, text=text) for rows in by_cause(over).values()]


def _is_over_limit(facts: Facts, row: Stretch) -> bool:
    seen = facts.about(Topic.QUEUE).get(facts.gangs[row.gang].queue)
    limit = queue_of(seen).limit if seen else None
    return limit is not None and 0 <= limit < row.gpus


def stale_condition(facts: Facts, _values: Values) -> list[Finding]:
    """Find gangs that run while their status still says that they cannot be scheduled."""
    return _causes(facts, {ReasonCode.STATUS_STALE}, "It runs; its condition still says that it cannot be scheduled.")


def _causes(facts: Facts, codes: Collection[str], text: str) -> list[Finding]:
    rows = [row for row in facts.standing if row.code in codes]
    return [cause_finding(facts, group, text=text) for group in by_cause(rows).values()]


def silent_wait(facts: Facts, _values: Values) -> list[Finding]:
    """Find gangs that were handed to the scheduler and of which it has said nothing; one cause, its silence."""
    silent = facts.about(Topic.STANCE)
    rows, starts = [], []
    for row in facts.standing:
        seen = silent.get(facts.gangs[row.gang].uid)
        if seen and seen.value == Match.SILENT and row.waits and row.verdict not in BEFORE_SCHEDULER:
            rows.append(row)
            starts.append(max(seen.opened, _handed_over(facts, row)))
    if not rows:
        return []
    down = scheduler_down(facts)
    subject = f"{down.kind}/{down.subject}" if down else ""
    said = f"{subject} is down." if down else "The scheduler's Deployment is not known to be down."
    ordered = facts.oldest_first(rows)
    return [
        Finding(
            signature=f"SILENT_WAIT|{ReasonCode.SCHEDULER_SILENT}|{subject}",
            since=min(starts),
            title=f"{counted(len(rows), 'gang', 'gangs')} without a word from the scheduler",
            text=f"No verdict and no event of the scheduler since they were handed to it. {said}",
            verdict=Verdict.STUCK,
            code=ReasonCode.SCHEDULER_SILENT,
            subject=subject,
            who=Who.PLATFORM,
            gangs=tuple(row.gang for row in ordered),
            gpus=sum(row.gpus for row in rows),
        )
    ]


def _handed_over(facts: Facts, row: Stretch) -> datetime:
    """Return when the scheduler could first act: gates off, or what came before it over."""
    rows = facts.history(row.gang)
    index = len(rows) - 1
    while index > 0 and rows[index - 1].waits and rows[index - 1].verdict not in BEFORE_SCHEDULER:
        index -= 1
    return rows[index].opened if rows else row.opened


def scheduler_down(facts: Facts) -> StateFact | None:
    """Return the scheduler's Deployment where none of its replicas is ready."""
    down = (row for row in facts.states.values() if row.kind == "Deployment" and row.state == "down")
    return next((row for row in down if "scheduler" in row.subject.rpartition("/")[2]), None)


def disagreement(facts: Facts, values: Values) -> list[Finding]:
    """Find that too many verdicts contradict what the scheduler says."""
    stances = facts.about(Topic.STANCE)
    against = {uid for uid, seen in stances.items() if seen.value == Match.DISAGREE}
    rows = [row for row in facts.standing if facts.gangs[row.gang].uid in against]
    total = len(facts.standing) + len(facts.resting)
    if not rows or len(rows) <= values["share"] / 100 * total:
        return []
    starts = sorted(stances[facts.gangs[row.gang].uid].opened for row in rows)
    return [
        Finding(
            signature="DISAGREEMENT||",
            since=starts[_needed(total, values["share"])],
            title=f"{counted(len(rows), 'verdict', 'verdicts')} of {total} contradict the scheduler",
            text="Either the model of the scheduler is wrong here, or the scheduler is: keep the snapshot.",
            who=Who.PLATFORM,
            gangs=tuple(row.gang for row in facts.oldest_first(rows)),
            gpus=sum(row.gpus for row in rows),
        )
    ]


def _needed(total: int, share: float) -> int:
    """Return the index of the contradiction that first made them too many."""
    return int(share / 100 * total)
