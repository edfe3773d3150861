"""Queues as a table: entitlement and use on one scale for all, so that bars can be compared by eye.

Numbers are those of the Queue objects and of the newest replay. Unset, zero and unlimited stay apart: unset counts as
zero to the scheduler and is written as not set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Sum

from apps.accounts.scope import Scope
from apps.dashboard import numbers
from apps.inventory.models import Queue
from apps.workloads.selectors import gang_waiting_list

NAMED = 2


@dataclass(frozen=True, slots=True)
class Asked:
    gangs: int
    gpus: float


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the bar in percent of the common scale."""

    css: str
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class QueueRow:
    """``fair`` is None where the cycle gave none; ``-1`` in quota or limit is no limit."""

    queue: Queue
    depth: int
    is_parent: bool
    allocated: float | None
    fair: float | None
    asked: Asked
    segments: tuple[Segment, ...]
    markers: tuple[Segment, ...]
    standing: str
    family: str
    icon: str
    margin: float

    @property
    def words(self) -> str:
        """Say the bar for those who do not see it."""
        held = "not replayed" if self.allocated is None else numbers.counted(self.allocated, "GPU")
        return f"holds {held}, waits for {numbers.number(self.asked.gpus)}; {self.standing}"


@dataclass(frozen=True, slots=True)
class QueueTable:
    rows: tuple[QueueRow, ...]
    scale: float

    @property
    def ticks(self) -> list[tuple[str, float]]:
        return [(numbers.number(self.scale * part), 100 * part) for part in (0, 0.25, 0.5, 0.75, 1)]


def waiting_by_queue(*, scope: Scope, cluster: str) -> dict[str, Asked]:
    """Return what waits in each queue; one query."""
    rows = gang_waiting_list(scope=scope).filter(cluster__name=cluster).order_by().values("queue")
    found = rows.annotate(gangs=Count("pk"), gpus=Sum("gpus_waiting")).values_list("queue", "gangs", "gpus")
    return {queue: Asked(gangs, gpus or 0.0) for queue, gangs, gpus in found}


def build(queues: Sequence[Queue], asked: Mapping[str, Asked]) -> QueueTable:
    """Return queues under their parents; the scale ends at the largest amount on any bar."""
    children: dict[str, list[Queue]] = {}
    names = {queue.name for queue in queues}
    for queue in queues:
        children.setdefault(queue.parent if queue.parent in names else "", []).append(queue)
    ordered: list[tuple[Queue, int]] = []
    _walk("", 0, children, ordered)
    known = {queue.name for queue, _depth in ordered}
    # Queues in a circle of parents hang under nothing; they are shown all the same.
    ordered += [(queue, 0) for queue in queues if queue.name not in known]
    sums = {queue.name: _asked_below(queue.name, children, asked) for queue, _depth in ordered}
    scale = max((_reach(queue, sums[queue.name]) for queue, _depth in ordered), default=1.0) or 1.0
    rows = tuple(_row(queue, depth, queue.name in children, sums[queue.name], scale) for queue, depth in ordered)
    return QueueTable(rows, scale)


def headline(table: QueueTable) -> str:
    """Return who borrows and who is short of what it is owed."""
    leaves = [row for row in table.rows if not row.is_parent and row.allocated is not None]
    over = sorted((row for row in leaves if row.margin > 0 and row.queue.gpu_quota != -1), key=lambda r: -r.margin)
    starved = [row for row in leaves if row.margin < 0 and row.asked.gpus > 0]
    starved.sort(key=lambda row: row.margin)
    parts = []
    if over:
        total = numbers.counted(sum(row.margin for row in over), "GPU")
        parts.append(f"{_named(over)} borrow{'s' if len(over) == 1 else ''} {total}")
    if starved:
        first = starved[0]
        parts.append(f"{first.queue} waits while {numbers.counted(-first.margin, 'GPU')} under its quota")
    if not parts:
        return f"{numbers.counted(len(leaves), 'queue')}: none borrows, none waits below its quota"
    return "; ".join(parts)


def _named(rows: Sequence[QueueRow]) -> str:
    names = [str(row.queue) for row in rows]
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return " and ".join(names)


def allocated_of(queue: Queue) -> float | None:
    """Return the GPUs a queue holds, over all shards; None before the first replay."""
    if not queue.cycle:
        return None
    return sum(float(entry["allocated_before"]["gpu"]) for entry in queue.cycle)


def fair_share_of(queue: Queue) -> float | None:
    """Return the fair share over all shards, -1 where one is unlimited, None where none was computed."""
    shares = [entry["fair_share"] for entry in queue.cycle]
    if not shares or any(share is None for share in shares):
        return None
    amounts = [float(share["gpu"]) for share in shares]
    return -1.0 if any(amount == -1 for amount in amounts) else sum(amounts)


def _walk(parent: str, depth: int, children: Mapping[str, list[Queue]], into: list[tuple[Queue, int]]) -> None:
    for queue in children.get(parent, []):
        into.append((queue, depth))
        _walk(queue.name, depth + 1, children, into)


def _asked_below(name: str, children: Mapping[str, list[Queue]], asked: Mapping[str, Asked]) -> Asked:
    """Sum what waits in a queue and in all below it; a circle of parents is walked once."""
    todo, seen = [name], set()
    gangs, gpus = 0, 0.0
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        gangs, gpus = gangs + asked.get(at, Asked(0, 0)).gangs, gpus + asked.get(at, Asked(0, 0)).gpus
        todo += [queue.name for queue in children.get(at, [])]
    return Asked(gangs, gpus)


def _reach(queue: Queue, asked: Asked) -> float:
    amounts = [queue.gpu_quota, queue.gpu_limit, fair_share_of(queue), (allocated_of(queue) or 0.0) + asked.gpus]
    return max((amount for amount in amounts if amount is not None and amount != -1), default=0.0)


def _row(queue: Queue, depth: int, is_parent: bool, asked: Asked, scale: float) -> QueueRow:
    allocated, fair = allocated_of(queue), fair_share_of(queue)
    held, quota = allocated or 0.0, queue.gpu_quota or 0.0
    inside = held if quota == -1 else min(held, quota)
    margin = 0.0 if quota == -1 else held - quota
    parts = (("pre", 0.0, inside), ("bor", inside, held - inside), ("ask", held, asked.gpus))
    marks = (("q", queue.gpu_quota), ("f", fair), ("l", queue.gpu_limit))
    standing, family, icon = _standing(queue, allocated, margin)
    return QueueRow(
        queue=queue,
        depth=depth,
        is_parent=is_parent,
        allocated=allocated,
        fair=fair,
        asked=asked,
        segments=tuple(Segment(css, 100 * at / scale, 100 * size / scale) for css, at, size in parts if size > 0),
        markers=tuple(Segment(css, 100 * at / scale, 0) for css, at in marks if at is not None and at != -1),
        standing=standing,
        family=family,
        icon=icon,
        margin=margin,
    )


def _standing(queue: Queue, allocated: float | None, margin: float) -> tuple[str, str, str]:
    """Say in two words how a queue stands; also the colour family of the badge and its icon."""
    if allocated is None:
        return "not replayed yet", "none", "clock"
    if queue.gpu_limit not in {None, -1} and allocated >= (queue.gpu_limit or 0):
        return "at its limit", "policy", "policy"
    if queue.gpu_quota == -1:
        return "no quota bound", "none", "dash"
    if margin > 0:
        return f"borrows {numbers.number(margin)}", "node", "up"
    if margin < 0:
        return f"{numbers.number(-margin)} under quota", "none", "dn"
    return "at quota", "none", "dash"
