"""Section 4: what the GPU-hours of waiting were spent on: by fork, by code, over time, against the span before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apps.reports import links
from apps.reports.content import Cell, Chart, ChartKind, Figure, Section, Series
from apps.reports.facts.period import Period
from apps.reports.facts.waits import CodeWait, WaitFacts
from apps.reports.sections.words import (
    ROWS,
    VERDICTS,
    amount,
    counted,
    figure,
    gpu_hours,
    hours,
    numbers,
    said,
    span,
    table,
    words,
)
from apps.reports.words import number, signed
from gangdash.engine.verdict import VERDICT_OF, ReasonCode, Verdict

SATURATED, FRAGMENTED, LIMITED, BLOCKED, BROKEN = "Saturated", "Fragmented", "Limited", "Blocked", "Broken"
STARTING, UNPROVEN = "Starting", "Unproven"
FORKS = {
    SATURATED: "not enough free GPUs anywhere",
    FRAGMENTED: "enough in sum, not in one domain or node",
    LIMITED: "limit, quota, fair share or order of queues",
    BLOCKED: "a gate, a reference, a selector, a taint or a cordon",
    BROKEN: "a component or a device does not do its part",
    STARTING: "placed or about to be",
    UNPROVEN: "cannot be told from what was read",
}
"""In the order of the table."""
_BY_VERDICT = {
    Verdict.NO_FIT: SATURATED,
    Verdict.NODE: BROKEN,
    Verdict.POLICY: LIMITED,
    Verdict.CONFIG: BLOCKED,
    Verdict.GATED: BLOCKED,
    Verdict.PARTIAL: BLOCKED,
    Verdict.VIOLATED: BROKEN,
    Verdict.EVICTED: LIMITED,
    Verdict.STUCK: BROKEN,
    Verdict.STARTING: STARTING,
    Verdict.WILL_START: STARTING,
    Verdict.HEALTHY: STARTING,
    Verdict.NO_VERDICT: UNPROVEN,
}
_BY_CODE = {
    ReasonCode.NODE_TOO_SMALL: FRAGMENTED,
    ReasonCode.DOMAIN_TOO_SMALL: FRAGMENTED,
    ReasonCode.FRAGMENTED: FRAGMENTED,
    ReasonCode.DOMAIN_BUSY: FRAGMENTED,
    ReasonCode.GPU_SHAPE: FRAGMENTED,
    ReasonCode.NUMA_SPLIT: FRAGMENTED,
    ReasonCode.SELECTOR_MISMATCH: BLOCKED,
    ReasonCode.TAINT_NOT_TOLERATED: BLOCKED,
    ReasonCode.POD_AFFINITY: BLOCKED,
    ReasonCode.VOLUME: BLOCKED,
    ReasonCode.CLAIM_UNALLOCATABLE: BLOCKED,
    ReasonCode.CONFLICTING_CONSTRAINTS: BLOCKED,
    ReasonCode.NODES_CORDONED: BLOCKED,
    ReasonCode.NODES_TAINTED_BY_STATE: BLOCKED,
    ReasonCode.TERMINATING_PODS_HOLD: SATURATED,
    ReasonCode.CONSOLIDATED: SATURATED,
    ReasonCode.STALE_GANG: BROKEN,
    ReasonCode.EVICTED_BY_NODE: BROKEN,
    ReasonCode.EVICTION_LOOP: BROKEN,
}
"""Where a code says more than its verdict."""


FORK_COLUMNS = (
    words("fork", "Fork"),
    words("means", "Means"),
    numbers("gpu_hours", "GPU-hours"),
    numbers("change", "Change"),
)
CODE_COLUMNS = (
    words("code", "Code"),
    words("verdict", "Verdict"),
    numbers("gangs", "Gangs"),
    numbers("gpu_hours", "GPU-hours"),
    numbers("change", "Change"),
)


def fork_of(code: str) -> str:
    """Return which of the forks a code belongs to; one that this version no longer knows is unproven."""
    if code not in VERDICT_OF:
        return UNPROVEN
    return _BY_CODE.get(ReasonCode(code)) or _BY_VERDICT[VERDICT_OF[code]]


def why_section(period: Period, *, waits: WaitFacts, gap_seconds: float = 0.0) -> Section:
    """Build the section; without what was before there is no trend. ``gap_seconds`` were not read."""
    knows_before = period.knows_before
    forks = list(_fork_rows(waits, knows_before))
    codes = sorted(waits.codes, key=lambda code: (-code.gpu_seconds, -code.gangs, code.code))
    codes = [code for code in codes if code.gpu_seconds > 0 or code.gangs]
    rows = [_code_row(period, code, knows_before) for code in codes[:ROWS]]
    none = "No gang waited in this time."
    earlier = span(period.length.total_seconds())
    return Section(
        "why",
        4,
        "Why gangs waited",
        sentences=(_sentence(waits),),
        figures=(
            gpu_hours("gpu_hours", "GPU-hours waited", waits.gpu_seconds),
            _before(waits, earlier) if knows_before else figure("before", f"In the {earlier} before", None),
        ),
        tables=(
            table("forks", "By fork", FORK_COLUMNS, forks, empty=none),
            table("codes", "By code", CODE_COLUMNS, rows, empty=none, total=len(codes)),
        ),
        charts=tuple(_charts(period, waits)),
        notes=tuple(_notes(earlier, knows_before, gap_seconds)),
    )


def _notes(earlier: str, knows_before: bool, gap_seconds: float) -> Iterator[str]:
    if not knows_before:
        yield f"What was in the {earlier} before is not kept, so there is no trend."
    if gap_seconds:
        yield f"For {span(gap_seconds)} nothing was read; until the next reading each gang counts as it was last seen."


def _before(waits: WaitFacts, earlier: str) -> Figure:
    return gpu_hours("before", f"In the {earlier} before", sum(code.before for code in waits.codes))


def _sentence(waits: WaitFacts) -> str:
    if not waits.gangs:
        return "No gang waited in this time."
    return f"{counted(waits.gangs, 'gang')} waited for {counted(hours(waits.gpu_seconds), 'GPU-hour')} in all."


def _fork_rows(waits: WaitFacts, knows_before: bool) -> Iterator[tuple[Cell, ...]]:
    for fork, meaning in FORKS.items():
        codes = [code for code in waits.codes if fork_of(code.code) == fork]
        now, before = sum(code.gpu_seconds for code in codes), sum(code.before for code in codes)
        if now > 0 or before > 0:
            yield said(fork), said(meaning), amount(hours(now)), _change(now, before, knows_before)


def _code_row(period: Period, code: CodeWait, knows_before: bool) -> tuple[Cell, ...]:
    return (
        said(code.code, links.reason(code.code)),
        said(VERDICTS.get(code.verdict, code.verdict)),
        amount(code.gangs, link=links.triage_at(period.cluster, period.end, code=code.code)),
        amount(hours(code.gpu_seconds)),
        _change(code.gpu_seconds, code.before, knows_before),
    )


def _change(now: float, before: float, knows_before: bool) -> Cell:
    return amount(hours(now - before), signed(hours(now - before))) if knows_before else amount(None)


def _charts(period: Period, waits: WaitFacts) -> Iterator[Chart]:
    is_known = [period.knows(at + period.step) for at in period.step_starts]
    levels = {verdict: waits.levels[verdict] for verdict in VERDICTS if verdict in waits.levels}
    if not levels or not any(is_known):
        return
    series = tuple(Series(verdict, VERDICTS[verdict], _known(level, is_known)) for verdict, level in levels.items())
    totals = [sum(values) for values in zip(*levels.values(), strict=True)]
    labels = tuple(at.isoformat() for at in period.step_starts)
    yield Chart(
        "waiting",
        "Waiting GPUs by verdict",
        ChartKind.STACKED,
        labels,
        series,
        "GPUs",
        f"Mean waiting GPUs of each {span(period.step.total_seconds())}: at most {number(max(totals))}, "
        f"{number(totals[-1])} at the end; {', '.join(one.label for one in series)}.",
    )


def _known(values: Sequence[float], is_known: Sequence[bool]) -> tuple[float | None, ...]:
    """Return None for what lies before the first reading: nobody knows who waited then."""
    return tuple(value if known else None for value, known in zip(values, is_known, strict=True))
