"""Section 12: how far to trust the report: gaps, readings, kinds not read, analyses, limits of the engine.

Printed also where there is nothing to say: no gaps is an answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from apps.reports import links
from apps.reports.content import Figure, NotRead, Section
from apps.reports.facts.period import Period
from apps.reports.facts.quality import QualityFacts
from apps.reports.facts.waiting import WaitingFacts
from apps.reports.sections.words import ROWS, amount, counted, figure, lasting, numbers, said, span, table, words
from apps.reports.words import moment, number
from gangdash.engine.verdict import Certainty

GAP_COLUMNS = (words("from", "From"), words("to", "To"), numbers("for", "For"), words("reason", "Reason"))
KIND_COLUMNS = (
    words("kind", "Kind"),
    words("reason", "Reason"),
    words("from", "First"),
    words("to", "Last"),
    numbers("polls", "Readings"),
)
MODEL_COLUMNS = (words("what", "What"), words("why", "Why"), numbers("gangs", "Gangs"))


def data_section(period: Period, *, quality: QualityFacts, waiting: WaitingFacts) -> Section:
    """Build the section."""
    gaps = [
        (said(moment(g.start, period.zone)), said(moment(g.end, period.zone)), lasting(g.seconds), said(g.reason))
        for g in quality.gaps[:ROWS]
    ]
    kinds = [
        (
            said(k.kind), said(k.reason), said(moment(k.first_at, period.zone)), said(moment(k.last_at, period.zone)),
            amount(k.polls) if k.polls else amount(None),
        )
        for k in quality.unread
    ]  # fmt: skip
    models = [(said(what), said(why), amount(gangs)) for what, why, gangs in quality.not_modelled]
    return Section(
        "data",
        12,
        "How far to trust this",
        sentences=(_sentence(period, quality),),
        figures=tuple(_figures(period, quality, waiting)),
        tables=(
            table("gaps", "Gaps, longest first", GAP_COLUMNS, gaps, total=quality.gaps_total,
                  empty="No gaps." if quality.polls_from else "No record of a reading is kept for this time."),
            table("kinds", "Kinds not read", KIND_COLUMNS, kinds, empty="Every kind was read."
                  if quality.polls_from else "No record of a reading is kept for this time."),
            table("not_modelled", "Not modelled", MODEL_COLUMNS, models, empty="Nothing that was met."
                  if quality.last_analysis else "Nothing was analysed."),
        ),
        notes=tuple(_notes(period, quality)),
    )  # fmt: skip


def _sentence(period: Period, quality: QualityFacts) -> str:
    if quality.polls_from is None:
        return "No record of a reading is kept for this time, so gaps cannot be told."
    if not quality.gaps_total:
        since = "" if _is_whole(period, quality) else f" since {moment(quality.polls_from, period.zone)}"
        return f"The data has no gaps{since}."
    return f"The data has {counted(quality.gaps_total, 'gap')}, {span(quality.gap_seconds)} in all."


def _is_whole(period: Period, quality: QualityFacts) -> bool:
    """Tell whether records of readings reach back to the start, give or take a few readings."""
    return quality.polls_from is not None and (quality.polls_from - period.start).total_seconds() < 120


def _figures(period: Period, quality: QualityFacts, waiting: WaitingFacts) -> Iterator[Figure]:
    link = links.health(period.cluster)
    known = quality.polls_from is not None
    polls = f"{number(quality.good_polls)} of {number(quality.all_polls)}"
    yield figure("gaps", "Gaps", quality.gaps_total if known else None, link=link)
    yield figure("polls", "Readings that succeeded", quality.good_polls if known else None,
                 text=polls if known else "", link=link)  # fmt: skip
    yield figure("kinds", "Kinds not read", len(quality.unread) if known else None, link=link)
    proved = waiting.certainties.get(Certainty.PROVED, 0)
    yield figure("proved", "Verdicts of waiting gangs that are proved", proved if waiting.told else None,
                 text=f"{number(proved)} of {number(waiting.told)}" if waiting.told else "")  # fmt: skip
    failed = quality.analyses.get("failed", 0)
    yield figure("failed", "Analyses that failed", failed if quality.analyses else None)
    yield figure("oddities", "Odd objects at the end", quality.oddities if quality.last_analysis else None)


def _notes(period: Period, quality: QualityFacts) -> Iterator[str]:
    if period.known_from is not None and not period.knows(period.start):
        yield f"History reaches back to {moment(period.known_from, period.zone)}; the time before is not in the sums."
    if quality.polls_from is not None and not _is_whole(period, quality):
        reach = moment(quality.polls_from, period.zone)
        yield f"Records of readings reach back to {reach}; before that, gaps and kinds not read cannot be told."
    if quality.skew_seconds is not None and abs(quality.skew_seconds) >= 1:
        where = "ahead of" if quality.skew_seconds > 0 else "behind"
        yield f"The cluster's clock is {span(abs(quality.skew_seconds))} {where} ours; ages are wrong by that much."
    if quality.last_analysis is not None:
        yield f"The newest analysis is of {moment(quality.last_analysis, period.zone)}, by engine {quality.engine}."


def not_read_of(quality: QualityFacts) -> Iterator[NotRead]:
    """Yield the kinds that were not read up to the end of the span."""
    for kind in quality.unread:
        yield NotRead(kind.kind, kind.reason, "Grant what `manage.py rbac` prints, or install what serves the kind")
