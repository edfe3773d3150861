"""Section 2: the service objectives, met and missed by size and queue, and what is left of their budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apps.reports.content import Figure, Section, Table
from apps.reports.facts.objectives import Group, ObjectiveFacts
from apps.reports.facts.period import Period
from apps.reports.sections.words import (
    amount,
    counted,
    figure,
    gang_cell,
    lasting,
    numbers,
    percent,
    said,
    span,
    table,
    words,
)
from apps.reports.words import moment, number
from gangdash.reasons.wording import clip


def slo_section(period: Period, *, objectives: Sequence[ObjectiveFacts]) -> Section:
    """Build the section: counts of the span, budget of each objective's own window."""
    first = objectives[0]
    return Section(
        "slo",
        2,
        "Started in time",
        sentences=tuple(_terms(objective) for objective in objectives),
        figures=tuple(_figures(first)),
        tables=(
            _groups("sizes", "By size", "Size", first.sizes, first.share),
            _groups("queues", "By queue", "Queue", first.queues, first.share),
            _standings(objectives),
            _missed(period, first),
        ),
        notes=tuple(_notes(period, first)),
    )


def _terms(objective: ObjectiveFacts) -> str:
    where = f"in queue {clip(objective.queue)} and below" if objective.queue else "of the cluster"
    set_by = "" if not objective.is_default else " This is the default, as none was set."
    return (
        f"The goal {where}: {percent(objective.share)} of gangs up to {number(objective.gpus_max)} GPUs, within quota "
        f"and not never-fitting, have nodes within {span(objective.within_seconds)} of being eligible, over "
        f"{counted(objective.window_days, 'day')}.{set_by}"
    )


def _figures(objective: ObjectiveFacts) -> Iterator[Figure]:
    standing, window = objective.span, objective.window
    yield figure("met", "In time", standing.met)
    yield figure("total", "Eligible", standing.total)
    yield figure("share", "Share", standing.share, text=percent(standing.share) if standing.share is not None else "")
    left = window.budget_left
    yield figure("budget_left", f"Budget left of {objective.window_days} days", left,
                 text=_budget(left) if left is not None else "")  # fmt: skip


def _budget(left: float) -> str:
    return percent(left) if left >= 0 else f"overspent by {percent(-left)}"


def _groups(key: str, title: str, column: str, groups: Sequence[Group], share: float) -> Table:
    columns = (
        words("label", column), numbers("met", "In time"), numbers("total", "Eligible"), numbers("share", "Share"),
        words("goal", "Goal"),
    )  # fmt: skip
    rows = [
        (
            said(group.label),
            amount(group.met),
            amount(group.total),
            amount(group.met / group.total, percent(group.met / group.total)) if group.total else amount(None),
            said(_goal(group, share)),
        )
        for group in groups
    ]
    return table(key, title, columns, rows, empty="No gang that counts became eligible.")


def _goal(group: Group, share: float) -> str:
    if not group.total:
        return ""
    return "met" if group.met >= share * group.total - 1e-9 else "missed"


def _standings(objectives: Sequence[ObjectiveFacts]) -> Table:
    columns = (
        words("objective", "Objective"), numbers("met", "In time"), numbers("total", "Eligible"),
        numbers("burn", "Burn rate"), words("left", "Budget left"),
    )  # fmt: skip
    rows = [
        (
            said(objective.queue or "whole cluster"),
            amount(objective.window.met),
            amount(objective.window.total),
            amount(objective.window.burn),
            said(_budget(objective.window.budget_left) if objective.window.budget_left is not None else ""),
        )
        for objective in objectives
    ]
    return table("objectives", "Budgets, each over its own window", columns, rows, empty="There is no objective.")


def _missed(period: Period, objective: ObjectiveFacts) -> Table:
    columns = (words("gang", "Gang"), numbers("gpus", "GPUs"), numbers("took", "Took"), words("state", "Now"))
    rows = [
        (
            gang_cell(period.cluster, miss.gang, period.end),
            amount(miss.gang.gpus),
            lasting(miss.seconds),
            said("started late" if miss.is_bound else "has not started"),
        )
        for miss in objective.missed
    ]
    total = objective.span.missed
    return table("missed", "Missed, longest first", columns, rows, empty="No gang missed the goal.", total=total)


def _notes(period: Period, objective: ObjectiveFacts) -> Iterator[str]:
    span_ = objective.span
    left_out = [
        (span_.over_quota, "over quota"),
        (span_.never_fits, "never fitting"),
        (span_.too_large, "too large"),
        (span_.undecided, "still within their time or given up in it"),
        (span_.size_unknown, "of unknown size, as pods were not read"),
    ]
    told = ", ".join(f"{number(count)} {what}" for count, what in left_out if count)
    yield f"Not counted: {told or 'none'}."
    if span_.quota_unknown:
        yield f"Of {counted(span_.quota_unknown, 'gang')} it is not known whether it was within quota; it was counted."
    if period.known_from is not None and not period.knows(objective.window.start):
        days = counted(objective.window_days, "day")
        yield f"Of the {days} of the budget, what is since {moment(period.known_from, period.zone)} is known."
    yield "A gang is over quota by what its queue held then against the quota of now; older quotas are not kept."
