"""Section 6: who starves while a sibling borrows, who sits at its limit, idle quota, what reclaim could take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apps.reports import links
from apps.reports.content import Cell, Section, Table
from apps.reports.facts.capacity import CapacityFacts, Pair, QueueFacts
from apps.reports.facts.period import Period
from apps.reports.sections.words import (
    ROWS,
    amount,
    counted,
    figure,
    gpu_hours,
    hours,
    lasting,
    numbers,
    said,
    span,
    table,
    words,
)
from apps.reports.words import number
from gangdash.reasons.wording import clip

QUEUE_COLUMNS = (
    words("queue", "Queue"),
    numbers("used", "Used"),
    numbers("quota", "Quota"),
    numbers("limit", "Limit"),
    numbers("borrowed", "Borrowed", "GPU-hours"),
    numbers("idle", "Idle quota", "GPU-hours"),
    numbers("at_limit", "At limit"),
    numbers("starved", "Starved"),
)
PAIR_COLUMNS = (
    words("starved", "Below quota and waits"),
    words("borrower", "Sibling above quota"),
    numbers("for", "For"),
)


def queues_section(period: Period, *, capacity: CapacityFacts) -> Section:
    """Build the section."""
    known = [queue for queue in capacity.queues if queue.known_seconds > 0]
    leaves = [queue for queue in known if queue.is_leaf]
    return Section(
        "queues",
        6,
        "Queues",
        sentences=tuple(_sentences(capacity, known)),
        figures=(
            figure("starved", "Queues starved beside a borrower", len({pair.starved for pair in capacity.pairs})),
            gpu_hours("idle", "Quota not used", sum(queue.idle_gpu_seconds for queue in leaves)),
            gpu_hours("borrowed", "Held over quota", sum(queue.borrowed_gpu_seconds for queue in leaves)),
            figure("exposed", "Open to reclaim at the end", exposure(leaves), unit="GPUs"),
        ),
        tables=(_pairs(capacity.pairs), _queues(period, leaves or known)),
        notes=tuple(_notes(period, capacity)),
    )


def exposure(queues: Sequence[QueueFacts]) -> float | None:
    """Return the GPUs that queues held over their quota at the end; None where no queue's amount is known."""
    held = [(queue.last, queue.quota) for queue in queues if queue.last is not None]
    return sum(max(last - quota, 0.0) for last, quota in held if quota is not None) if held else None


def _sentences(capacity: CapacityFacts, known: Sequence[QueueFacts]) -> Iterator[str]:
    if not capacity.queues:
        yield "No queue was read."
    elif not known:
        yield "What queues held was not sampled in this time."
    elif capacity.pairs:
        worst = capacity.pairs[0]
        yield (
            f"Queue {clip(worst.starved)} was below its quota and waited for {span(worst.seconds)} while "
            f"{clip(worst.borrower)} held more than its own."
        )
    else:
        yield "No queue waited below its quota while a sibling held more than its own."


def _pairs(pairs: Sequence[Pair]) -> Table:
    rows = [(said(pair.starved), said(pair.borrower), lasting(pair.seconds)) for pair in pairs[:ROWS]]
    return table("pairs", "Starved beside a borrower", PAIR_COLUMNS, rows, empty="None.", total=len(pairs))


def _queues(period: Period, queues: Sequence[QueueFacts]) -> Table:
    ranked = sorted(queues, key=lambda queue: (-queue.borrowed_gpu_seconds, -queue.idle_gpu_seconds, queue.name))
    link = links.listed("queues", period.cluster)
    rows = [_row(queue, link) for queue in ranked[:ROWS]]
    return table("queues", "What queues held", QUEUE_COLUMNS, rows, empty="No queue was sampled.", total=len(queues))


def _row(queue: QueueFacts, link: str) -> tuple[Cell, ...]:
    return (
        said(queue.name, link),
        amount(queue.last),
        amount(queue.quota, "none" if queue.quota is None else ""),
        amount(queue.limit, "none" if queue.limit is None else ""),
        amount(hours(queue.borrowed_gpu_seconds)),
        amount(hours(queue.idle_gpu_seconds)),
        lasting(queue.at_limit_seconds),
        lasting(queue.starved_seconds),
    )


def _notes(period: Period, capacity: CapacityFacts) -> Iterator[str]:
    length = period.length.total_seconds()
    if 0 < capacity.known_seconds < length - 1:
        yield f"Samples cover {span(capacity.known_seconds)} of {span(length)}."
    unlimited = sum(queue.quota is None for queue in capacity.queues)
    if unlimited:
        yield f"{counted(unlimited, 'queue')} with an unlimited quota can neither starve nor borrow."
    yield (
        "Starved counts the steps of "
        f"{number(period.step.total_seconds() / 3600)} h in which a gang of the queue waited for capacity. Quotas and "
        "limits are those of now. Open to reclaim is at most: gangs that cannot be preempted are among it."
    )
