"""Contents of reports made by hand: a full one, an empty one, one that little was read for, and a hostile one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from apps.reports.content import (
    NOT_READ_TEXT,
    Cell,
    Chart,
    ChartKind,
    Column,
    Content,
    Figure,
    Known,
    NotRead,
    Section,
    Series,
    Table,
)

END = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
START = END - timedelta(days=1)
HOSTILE = (
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)',
    '=HYPERLINK("http://evil","x")',
    "| [x](javascript:alert(1)) `code` **bold** # head",
    "line\nbreak\r\n- item",
    "\u202egnp.exe\u200b",
    "\x1b[31mred\x07",
    "<!channel> @here",
    "x" * 253,
)


def content(**changes: object) -> Content:
    """Return a report of a day that has something in each kind of part."""
    made = Content(
        cluster="fjord-1",
        start=START,
        end=END,
        made_at=END + timedelta(seconds=20),
        zone="Europe/Berlin",
        sections=(_headline(), _waiting(), _reasons(), _fits(), _data()),
        not_read=(NotRead("device utilisation", "no Prometheus is connected", "Set GANGDASH_PROMETHEUS_URL."),),
        as_of=END - timedelta(seconds=11),
        engine="1.0.0",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def empty() -> Content:
    """Return a report of a cluster that nothing was stored of."""
    section = Section(
        "waiting", 3, "Waiting now", tables=(Table("gangs", "Waiting", _COLUMNS, (), 0, "Nothing waits."),)
    )
    chart = Chart("hours", "GPUs waiting", ChartKind.STACKED, (), (), "GPUs", "Nothing waited.")
    return content(
        sections=(
            Section("headline", 1, "Headline", ("Nothing waits.",)),
            section,
            Section("reasons", 4, "Why gangs waited", charts=(chart,)),
            Section("data", 12, "Data quality", ("No gaps.",)),
        ),
        not_read=(),
        as_of=None,
    )


def hostile(name: str) -> Content:
    """Return a report in which a cluster has put its worst wherever a text can stand."""
    bad = Cell(name, 1.0, link="javascript:alert(1)")
    plain = content()
    table = Table("gangs", name, (Column("a", name), Column("b", name, name, True)), ((bad, bad),), 3, name)
    chart = Chart("c", name, ChartKind.BARS, (name, "b"), (Series("np", name, (2.0, None)),), name, name)
    figure = Figure("f", name, 1.0, unit=name, text=name, link="//evil.example/x", before=0.0)
    gap = NotRead(name, name, name)
    bad_section = Section(
        "waiting", 3, name, (name, name), (figure,), (table, replace(table, key="asks")), (chart,), (name,)
    )
    return replace(
        plain,
        cluster=name,
        sections=(plain.sections[0], bad_section),
        not_read=(gap,),
        engine=name,
        zone="Nowhere/Else",
    )


def _headline() -> Section:
    return Section(
        "headline",
        1,
        "Headline",
        (
            "8 gangs wait for 102 GPUs, the oldest for 20 h 54 min because of a misspelt queue name.",
            "31 of 34 eligible gangs started within 10 minutes (91 %); the goal of 95 % was missed by 2 gangs.",
            "Policy cost most: 283 of 632 GPU-hours waited, and 152 of those at the limit of batch-eval.",
        ),
        (
            Figure("waiting", "Waiting gangs", 8, "gangs", "8", "/?at=2026-11-30T08%3A00%3A00Z", 11),
            Figure("gpu_hours", "GPU-hours waited", 632, "GPU-hours", "632", "/?at=2026-11-30T08%3A00%3A00Z", 646),
            Figure("evictions", "Evictions", 3, "", "3", "", 1),
        ),
    )


_COLUMNS = (
    Column("gang", "Gang"),
    Column("gpus", "GPUs", "", True),
    Column("waits", "Waits", "", True),
    Column("verdict", "Verdict"),
    Column("needs", "Needs and has"),
    Column("fix", "Cheapest fix"),
)


def _row(name: str, gpus: int, *texts: str) -> tuple[Cell, ...]:
    link = f"/clusters/fjord-1/gangs/team/{name}/?at=2026-11-30T08%3A00%3A00Z"
    return (Cell(name, None, link), Cell(str(gpus), gpus), *map(Cell, texts))


def _waiting() -> Section:
    rows = (
        _row(
            "whisper-large-ft-1", 8, "20 h 54 min", "Config", "Queue multi-modal does not exist", "Set queue multimodal"
        ),
        _row("dit-video-17b-3", 44, "2 h 15 min", "No fit", "32 of 44 GPUs in nvl-a1", "Free 3 nodes: move embed-e5"),
        _row("mmlu-pro-sweep-12", 8, "5 h 59 min", "Policy", "28 of 24 GPUs, limit of batch-eval", "Raise limit to 28"),
    )
    return Section(
        "waiting", 3, "Waiting at 08:00", tables=(Table("gangs", "By GPU-hours waited", _COLUMNS, rows, 8), _asks())
    )


def _asks() -> Table:
    columns = (Column("who", "Who acts"), Column("ask", "Ask"), Column("gangs", "Starts gangs", "", True))
    ask = Cell("Raise the limit of batch-eval from 24 to 36 GPUs")
    return Table("asks", "Ask by who acts", columns, ((Cell("queue admin"), ask, Cell("2", 2)),), 1)


def _reasons() -> Section:
    labels = tuple((START + timedelta(hours=hour)).isoformat() for hour in range(24))
    policy: tuple[float | None, ...] = tuple(float(hour % 7) for hour in range(24))
    gap: tuple[float | None, ...] = (*policy[:6], None, None, *policy[8:])
    config = (8.0,) * 6 + (None,) * 2 + (8.0,) * 16
    stacked = (
        Series("NO_FIT", "No fit", gap),
        Series("POLICY", "Policy", gap),
        Series("CONFIG", "Config", config),
    )
    words = "From 8 at 08:00 on 29 November to 14 at 07:00 on 30 November; not read from 14:00 to 16:00."
    chart = Chart("hours", "GPUs waiting through the day", ChartKind.STACKED, labels, stacked, "GPUs", words)
    names = ("QUEUE_LIMIT", "DOMAIN_BUSY", "QUEUE_MISSING")
    hours = (Series("np", "GPU-hours", (283.0, 164.5, 167.0)),)
    told = "QUEUE_LIMIT 283, DOMAIN_BUSY 164.5, QUEUE_MISSING 167."
    bars = Chart("codes", "By code", ChartKind.BARS, names, hours, "GPU-hours", told)
    both = (Series("a", "This week", gap), Series("b", "Week before", policy))
    lines = Chart("trend", "Waiting gangs", ChartKind.LINES, labels, both, "gangs", "Between 0 and 6 all day.")
    return Section("reasons", 4, "Why gangs waited", charts=(chart, bars, lines), notes=("Waiting for GPUs only.",))


def _fits() -> Section:
    columns = (Column("size", "Size"), Column("now", "Now", "gangs", True), Column("then", "A week ago", "gangs", True))
    rows = tuple(
        (Cell(f"{nodes} nodes"), Cell(str(12 // nodes), 12 // nodes), Cell(NOT_READ_TEXT, None, known=Known.NOT_READ))
        for nodes in (1, 2, 4)
    )
    return Section("fits", 5, "Which sizes fit", tables=(Table("fits", "In one rack", columns, rows, 3),))


def _data() -> Section:
    idle = Figure("idle", "GPUs allocated but idle", None, "GPUs", NOT_READ_TEXT, known=Known.NOT_READ)
    polls = Figure("polls", "Polls", 8637, "", "8,637 of 8,640", "/clusters/fjord-1/", 8640)
    return Section("data", 12, "Data quality", ("No gaps.",), (polls, idle))
