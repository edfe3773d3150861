"""Section 1: the state of the cluster in three sentences, and what changed against the report before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from apps.reports import links
from apps.reports.content import Content, Figure, Section
from apps.reports.facts.objectives import ObjectiveFacts
from apps.reports.facts.period import Period
from apps.reports.facts.waiting import WaitingFacts
from apps.reports.facts.waits import WaitFacts
from apps.reports.sections.words import VERDICTS, counted, figure, gpu_hours, hours, percent, sentence_part, span
from apps.reports.words import moment, number
from gangdash.reasons.wording import clip

KEY = "headline"


def headline_section(
    period: Period,
    *,
    waiting: WaitingFacts | None,
    waits: WaitFacts,
    objective: ObjectiveFacts,
    previous: Content | None,
) -> Section:
    """Build the section; ``waiting`` is None where nothing was analysed up to the end of the span."""
    if waiting is None:
        sentence = f"Nothing of {clip(period.cluster)} was analysed up to {moment(period.end, period.zone)}."
        return Section(KEY, 1, "Headline", (sentence,))
    figures = tuple(_figures(period, waiting, waits, objective))
    sentences = (waiting_sentence(period, waiting), start_sentence(objective), cost_sentence(waits))
    return Section(KEY, 1, "Headline", (*sentences, change_sentence(figures, previous)), figures)


def _figures(period: Period, waiting: WaitingFacts, waits: WaitFacts, objective: ObjectiveFacts) -> Iterator[Figure]:
    at = links.triage_at(period.cluster, period.end)
    yield figure("waiting_gangs", "Waiting gangs", waiting.total, link=at)
    yield figure("waiting_gpus", "Waiting GPUs", waiting.gpus, unit="GPUs", link=at)
    yield gpu_hours("gpu_hours", "GPU-hours waited", waits.gpu_seconds, link=at)
    share = objective.span.share
    yield figure("in_goal", "Started in time", share, text=percent(share) if share is not None else "")
    yield figure("evictions", "Evictions", waits.evictions_total)


def waiting_sentence(period: Period, waiting: WaitingFacts) -> str:
    """Say who waits, and for what the oldest does."""
    oldest = waiting.oldest
    if oldest is None:
        return f"No gang waited at {moment(period.end, period.zone)}."
    who = f"{counted(waiting.total, 'gang')} {'waits' if waiting.total == 1 else 'wait'}"
    age = span((period.end - oldest.since).total_seconds())
    return f"{who} for {counted(waiting.gpus, 'GPU')}, the oldest for {age}: {sentence_part(oldest.sentence)}."


def start_sentence(objective: ObjectiveFacts) -> str:
    """Say how many started in time."""
    standing = objective.span
    if standing.share is None:
        return f"No gang that counts for the objective{_of_queue(objective)} became eligible."
    within = span(objective.within_seconds)
    eligible = f"{counted(standing.total, 'eligible gang')}{_of_queue(objective)}"
    started = f"{number(standing.met)} of {eligible} started within {within} ({percent(standing.share)})"
    missed_by = objective.missed_by
    outcome = f"missed by {counted(missed_by, 'gang')}" if missed_by else "met"
    return f"{started}; the goal of {percent(objective.share)} was {outcome}."


def _of_queue(objective: ObjectiveFacts) -> str:
    return f" of queue {clip(objective.queue)}" if objective.queue else ""


def cost_sentence(waits: WaitFacts) -> str:
    """Say which verdict cost most, and which code of it."""
    if waits.gpu_seconds <= 0:
        return "No gang waited for GPUs in this time."
    by_verdict: dict[str, float] = defaultdict(float)
    for code in waits.codes:
        by_verdict[code.verdict] += code.gpu_seconds
    verdict = max(sorted(by_verdict), key=lambda name: by_verdict[name])
    worst = max((code for code in waits.codes if code.verdict == verdict), key=lambda code: code.gpu_seconds)
    most = f"{number(hours(by_verdict[verdict]))} of {counted(hours(waits.gpu_seconds), 'GPU-hour')} waited"
    part = f"{number(hours(worst.gpu_seconds))} of those under {worst.code}"
    if worst.gpu_seconds >= by_verdict[verdict] - 1:
        part = f"all of those under {worst.code}"
    return f"{VERDICTS.get(verdict, verdict)} cost most: {most}, and {part}."


def change_sentence(figures: tuple[Figure, ...], previous: Content | None) -> str:
    """Say what each figure was in the report before."""
    if previous is None:
        return "There is no earlier report to compare with."
    told = [
        f"{_inner(now.label)} {now.text} (was {was.text})"
        for now in figures
        if (was := previous.figure(KEY, now.key)) is not None
    ]
    since = f"Against the report of {moment(previous.end, previous.zone)}: "
    return f"{since}{', '.join(told)}." if told else f"{since}nothing was analysed then."


def _inner(label: str) -> str:
    """Write a label inside a sentence; one that begins with an abbreviation keeps its capital."""
    return label if label[1:2].isupper() else f"{label[:1].lower()}{label[1:]}"
