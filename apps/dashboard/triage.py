"""What the triage page says, made from the store's rows: the headline, who acts, causes with their gangs.

Pure: rows in, values for the template out. Sentences are the engine's; only the headline's counts are put together
here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from apps.accounts.scope import Scope
from apps.dashboard import marks, numbers
from apps.dashboard.constraints import Shortfall, shortfall
from apps.dashboard.filters import ListView
from apps.dashboard.links import gang_url
from apps.dashboard.selectors import LargestCause
from apps.inventory.selectors import GpuTotals
from apps.workloads.models import Gang
from apps.workloads.selectors import CauseGroup, WaitingTotals, WhoTile
from apps.workloads.veil import Veil

SUBJECTS_NAMED = 3
ROWS_MAX = 200
"""More rows than this are counted, not drawn: a list of thousands helps nobody, and each 100 cost 0.1 s."""


@dataclass(frozen=True, slots=True)
class Row:
    """One waiting gang; what its document says comes when the row is shown. ``fix`` is the cheapest one."""

    gang: Gang
    sentence: str
    gpu_hours: float
    short: Shortfall | None = None
    fix: str = ""
    is_fix_verified: bool = False
    fixes_refused: int = 0

    @property
    def url(self) -> str:
        return gang_url(self.gang)

    @property
    def signature(self) -> str:
        """Return what changes with any cell but the clock's."""
        gang = self.gang
        facts = (gang.pk, gang.verdict, gang.code, gang.queue, gang.gpus_waiting, gang.shape, self.sentence)
        return repr((*facts, self.short, self.fix, self.is_fix_verified, self.fixes_refused))


@dataclass(frozen=True, slots=True)
class Group:
    """One cause: the header has the sentence, rows have none."""

    key: str
    verdict: str
    code: str
    subject: str
    sentence: str
    who: str
    gpus: float
    gangs: int
    gpu_hours: float
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    who: str
    word: str
    icon: str
    gpus: float
    gangs: int
    share: float
    subjects: str
    url: str
    is_picked: bool


@dataclass(frozen=True, slots=True)
class Headline:
    title: str
    lead: str


def headline(totals: WaitingTotals, gpus: GpuTotals, largest: LargestCause) -> Headline:
    """Return the page's first sentence, with its numbers, and the largest cause under it."""
    if not totals.gangs and not gpus.total:
        return Headline("Nothing is read yet", "No gang and no node is known that you may see.")
    waits = "waits" if totals.waiting == 1 else "wait"
    of = f"{numbers.number(totals.waiting)} of {numbers.counted(totals.gangs, 'gang')} {waits}"
    title = (
        f"{of} for {numbers.counted(totals.gpus_waiting, 'GPU')}, while "
        f"{numbers.number(gpus.free)} of {numbers.number(gpus.total)} are free"
    )
    if not totals.waiting and totals.undiagnosed:
        # Before the first answer "nothing waits" would be comfort without ground.
        gangs = numbers.counted(totals.gangs, "gang")
        title = f"{numbers.number(totals.undiagnosed)} of {gangs} not diagnosed yet"
    elif not totals.waiting:
        title = f"Nothing waits; {numbers.number(gpus.free)} of {numbers.counted(gpus.total, 'GPU')} are free"
    return Headline(title, _lead(totals, largest))


def _lead(totals: WaitingTotals, largest: LargestCause) -> str:
    placed = totals.gangs - totals.waiting - totals.undiagnosed
    parts = []
    if totals.waiting > 1 and largest.gpus:
        share = f"{numbers.counted(largest.gpus, 'GPU')} in {numbers.counted(largest.gangs, 'gang')}"
        parts.append(f"Largest cause: {cause_title(largest.code)}, {share}.")
    if totals.telling:
        tell = "one has" if totals.telling == 1 else f"{numbers.number(totals.telling)} have"
        parts.append(f"Of {numbers.number(placed)} placed gangs {tell} something to tell.")
    if totals.waiting and totals.undiagnosed:
        parts.append(f"{numbers.counted(totals.undiagnosed, 'gang')} not diagnosed yet.")
    return " ".join(parts)


def lost_words(gpus: GpuTotals) -> str:
    """Say to which node state GPUs are lost: ``cordoned 4, not ready 8``."""
    parts = (("cordoned", gpus.lost_cordoned), ("not ready", gpus.lost_not_ready), ("other", gpus.lost_other))
    return ", ".join(f"{word} {numbers.number(lost)}" for word, lost in parts if lost)


def cause_title(code: str) -> str:
    """Return the registry's title of a code; a gang that no analysis has seen has none."""
    reason = marks.reason_of(code)
    return reason.title if reason else code or "not diagnosed yet"


def tiles(found: Sequence[WhoTile], urls: Mapping[str, str], picked: Sequence[str], *, veil: Veil) -> list[Tile]:
    """Return one tile per kind of person, in a fixed order, empty ones too: a tile that moves is not found again."""
    found = [replace(tile, subjects=tuple(without_hidden(name, veil) for name in tile.subjects)) for tile in found]
    by_who = {tile.who or "nobody": tile for tile in found}
    whole = sum(tile.gpus for tile in found) or 1.0
    return [_tile(who, by_who.get(who), whole, urls[who], who in picked) for who in marks.WHO]


def without_hidden(text: str, veil: Veil) -> str:
    """Return a text of an unnamed cluster without what is hidden in any of them."""
    for cluster in veil.hidden:
        text = veil.text(text, cluster=cluster)
    return text


def _tile(who: str, tile: WhoTile | None, whole: float, url: str, is_picked: bool) -> Tile:
    mark = marks.WHO[who]
    names = [subject.split("/", 1)[-1] for subject in tile.subjects] if tile else []
    more = len(names) - SUBJECTS_NAMED
    subjects = ", ".join(names[:SUBJECTS_NAMED]) + (f" and {more} more" if more > 0 else "")
    return Tile(
        who=who,
        word=mark.word,
        icon=mark.icon,
        gpus=tile.gpus if tile else 0.0,
        gangs=tile.gangs if tile else 0,
        share=100 * tile.gpus / whole if tile else 0.0,
        subjects=subjects or ("nothing to change" if tile else "none"),
        url=url,
        is_picked=is_picked,
    )


def groups(found: Sequence[CauseGroup], view: ListView, *, now: datetime, veil: Veil) -> list[Group]:
    """Return the causes with their rows, sorted; without grouping one group holds every row."""
    made = [_group(cause, now, veil) for cause in found]
    if not view.is_grouped:
        rows = [row for group in made for row in group.rows]
        made = [Group("all", "", "", "", "", "", 0.0, len(rows), 0.0, tuple(rows))] if rows else []
    sorted_rows = [_sorted_group(group, view.sort) for group in made]
    return sorted(sorted_rows, key=lambda group: _group_key(group, view.sort))


def filled(found: Sequence[Group], documents: Mapping[int, Mapping[str, Any]]) -> list[Group]:
    """Put what the documents say, shortfall and fix, into the rows; only rows that are shown need theirs read."""
    return [
        replace(group, rows=tuple(_filled_row(row, documents.get(row.gang.pk, {})) for row in group.rows))
        for group in found
    ]


def drawn(found: Sequence[Group]) -> tuple[list[Group], int]:
    """Cut the list after ``ROWS_MAX`` rows at the end of a group; return how many rows are left out."""
    kept: list[Group] = []
    rows = 0
    for group in found:
        if rows >= ROWS_MAX:
            break
        room = group.rows[: ROWS_MAX - rows]
        kept.append(group if len(room) == len(group.rows) else replace(group, rows=room))
        rows += len(room)
    return kept, sum(len(group.rows) for group in found) - rows


def _group(cause: CauseGroup, now: datetime, veil: Veil) -> Group:
    rows = tuple(_row(gang, now, veil) for gang in cause.gangs)
    sentences = {row.sentence for row in rows}
    same = sentences.pop() if len(sentences) == 1 else ""
    subject = f": {cause.subject}" if "/" in cause.subject else ""
    return Group(
        key=cause.key,
        verdict=cause.verdict,
        code=cause.code,
        subject=cause.subject,
        sentence=same or f"{cause_title(cause.code)}{subject}" if cause.code else "",
        who=cause.who,
        gpus=cause.gpus,
        gangs=len(rows),
        gpu_hours=sum(row.gpu_hours for row in rows),
        rows=rows,
    )


def _row(gang: Gang, now: datetime, veil: Veil) -> Row:
    waited = (now - gang.waiting_since).total_seconds() / 3600 if gang.waiting_since else 0.0
    return Row(
        gang=gang,
        sentence=veil.text(gang.sentence, cluster=gang.cluster.name),
        gpu_hours=max(0.0, (gang.gpus_waiting or 0.0) * waited),
    )


def _filled_row(row: Row, document: Mapping[str, Any]) -> Row:
    binding = document.get("binding") or []
    fixes = document.get("fixes") or []
    first = fixes[0] if fixes else {}
    return replace(
        row,
        short=shortfall(binding[0]) if binding else None,
        fix=str(first.get("sentence", "")),
        is_fix_verified=bool(first.get("verified")),
        fixes_refused=int(document.get("fixes_refused") or 0),
    )


def _row_key(row: Row, sort: str) -> tuple[Any, ...]:
    since = row.gang.waiting_since.timestamp() if row.gang.waiting_since else float("inf")
    name = (row.gang.namespace, row.gang.name)
    orders: Mapping[str, tuple[Any, ...]] = {
        "waits": (since, name),
        "gpus": (-(row.gang.gpus_waiting or 0.0), name),
        "gang": (name,),
        "queue": (row.gang.queue, name),
    }
    return orders.get(sort, (-row.gpu_hours, name))


def _group_key(group: Group, sort: str) -> tuple[Any, ...]:
    if sort in {"gpu_hours", "gpus"}:
        return (-(group.gpus if sort == "gpus" else group.gpu_hours), group.key)
    return (_row_key(group.rows[0], sort), group.key)


def _sorted_group(group: Group, sort: str) -> Group:
    return replace(group, rows=tuple(sorted(group.rows, key=lambda row: _row_key(row, sort))))


def partial_words(scope: Scope) -> str:
    """Name what a viewer of named namespaces sees, for the tag beside every total; empty for the others."""
    if scope.sees_all:
        return ""
    names = sorted({namespace for _cluster, namespace in scope.namespaces})
    return ", ".join(names) or "no namespace"
