"""Rows in, figures out: the two charts of a gang's page, its domains and its reasons over time.

Names of domains come from a cluster and plotly reads tags in its texts, so they are escaped here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from typing import Any

import plotly.graph_objects as go

from apps.dashboard import numbers
from apps.dashboard.chart_style import (
    PALETTES,
    PATTERNS,
    Palette,
    Theme,
    add_pin,
    chart_template,
    faded,
    family_of,
    verdict_colour,
)
from apps.dashboard.marks import VERDICTS

DOMAINS_DRAWN = 12
BAR_HEIGHT = 24
NAME_MAX = 30
SECONDS_BELOW = timedelta(minutes=15)
CLEAR = "rgba(0,0,0,0)"
BARRED = {"shape": ".", "size": 5, "solidity": 0.4, "fillmode": "overlay"}
SHORT = {"shape": "/", "size": 5, "solidity": 0.35, "fillmode": "overlay"}


@dataclass(frozen=True, slots=True)
class DomainRow:
    """One place that could hold the gang; ``gpus`` is what it has when nobody is in it.

    ``barred`` are free GPUs that this gang may not use, beside those in ``free``.
    """

    name: str
    free: float
    gpus: float
    is_subject: bool = False
    barred: float = 0.0


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """One stretch of time with one reason; ``closed`` is None while it lasts."""

    verdict: str
    code: str
    sentence: str
    opened: datetime
    closed: datetime | None


def axis_name(name: str) -> str:
    """Return a name for an axis: cut in the middle, and escaped, as plotly reads tags in its texts."""
    if len(name) > NAME_MAX:
        name = f"{name[: NAME_MAX // 2]}…{name[-NAME_MAX // 2 + 1 :]}"
    return escape(name)


def domain_figure(rows: Sequence[DomainRow], *, need: float, theme: Theme = "light") -> go.Figure:
    """Draw free GPUs of each domain against what the gang needs in one: the hatched part is missing."""
    drawn = domains_drawn(rows)
    figure = go.Figure(_domain_bars(drawn, need, PALETTES[theme]))
    figure.update_layout(
        template=chart_template(theme),
        barmode="overlay",
        hovermode="y unified",
        height=70 + BAR_HEIGHT * max(len(drawn), 1),
        margin={"l": 40, "r": 48, "t": 26, "b": 26},
        xaxis={"rangemode": "tozero", "tickformat": ",d", "nticks": 6},
        yaxis={"autorange": "reversed", "showgrid": False, "type": "category", "nticks": len(drawn)},
    )
    _add_need(figure, need, theme)
    for row in drawn:
        _add_value(figure, row, need, theme)
    return figure


def _domain_bars(rows: Sequence[DomainRow], need: float, palette: Palette) -> list[go.Bar]:
    """Return what lies over one another: the whole domain, free, free but not for it, missing."""
    free = [row.free for row in rows]
    outline = {"color": CLEAR, "line": {"color": palette.line_2, "width": 1}}
    barred = {"color": CLEAR, "pattern": {**BARRED, "fgcolor": palette.capacity}}
    short = {"color": CLEAR, "pattern": {**SHORT, "fgcolor": palette.families["nofit"]}}
    return [
        _bar(rows, [row.gpus for row in rows], ("If empty", "if empty", "outline"), outline),
        _bar(rows, free, ("Free", "free", "capacity"), {"color": palette.capacity}),
        _bar(rows, [row.barred for row in rows], ("Free, not for it", "free, not for it", "barred"), barred, base=free),
        _bar(rows, [max(0.0, need - row.free) for row in rows], ("Short", "short", "short"), short, base=free),
    ]


def _bar(
    rows: Sequence[DomainRow],
    amounts: Sequence[float],
    words: tuple[str, str, str],
    marker: dict[str, Any],
    *,
    base: Sequence[float] | None = None,
) -> go.Bar:
    """Return one layer; ``words`` are its name, what the hover says, and its colour token."""
    name, said, token = words
    return go.Bar(
        x=list(amounts),
        y=[axis_name(row.name) for row in rows],
        base=base,
        orientation="h",
        name=name,
        marker=marker,
        hovertemplate=f"%{{x:,}} {said}",
        meta={"token": token},
    )


def domains_drawn(rows: Sequence[DomainRow]) -> list[DomainRow]:
    """Return the domains that have a bar: most free first, the one the verdict names always among them."""
    ordered = sorted(rows, key=lambda row: (-row.free, -row.gpus, row.name))
    kept = ordered[:DOMAINS_DRAWN]
    return kept + [row for row in ordered[DOMAINS_DRAWN:] if row.is_subject][:1]


def reason_figure(
    rows: Sequence[ReasonRow], *, now: datetime, pinned: datetime | None = None, theme: Theme = "light"
) -> go.Figure:
    """Draw the reasons of one gang over time, a lane per verdict, so that colour is not needed to tell them apart.

    ``pinned`` is marked where it lies within what is drawn.
    """
    lanes = [verdict for verdict in VERDICTS if any(row.verdict == verdict for row in rows)]
    figure = go.Figure()
    for verdict in lanes:
        figure.add_trace(_lane([row for row in rows if row.verdict == verdict], verdict, now, theme))
    figure.update_layout(
        template=chart_template(theme),
        barmode="overlay",
        hovermode="closest",
        height=60 + 34 * max(len(lanes), 1),
        margin={"l": 80, "r": 8, "t": 8, "b": 32},
        xaxis={"type": "date", "tickformat": _tick_format(rows, now), "nticks": 8},
        yaxis={
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [VERDICTS[verdict].word for verdict in lanes][::-1],
            "showgrid": False,
        },
    )
    if pinned is not None and any(row.opened <= pinned for row in rows):
        add_pin(figure, min(pinned, now), theme)
    return figure


def _lane(rows: Sequence[ReasonRow], verdict: str, now: datetime, theme: Theme) -> go.Bar:
    colour = verdict_colour(verdict, theme)
    spans = [((row.closed or now) - row.opened).total_seconds() for row in rows]
    return go.Bar(
        x=[span * 1000 for span in spans],
        base=[row.opened.isoformat() for row in rows],
        y=[VERDICTS[verdict].word] * len(rows),
        orientation="h",
        name=VERDICTS[verdict].word,
        width=0.6,
        marker={
            "color": faded(colour),
            "line": {"color": colour, "width": 1},
            "pattern": {"fgcolor": colour, "fillmode": "overlay", **PATTERNS[verdict]} if verdict in PATTERNS else None,
        },
        customdata=[
            [row.code, numbers.full_clock(row.opened), numbers.span(span), numbers.iso(row.opened)]
            for row, span in zip(rows, spans, strict=True)
        ],
        hovertemplate="%{customdata[0]}<br>from %{customdata[1]}<br>for %{customdata[2]}<extra></extra>",
        meta={"token": family_of(verdict)},
    )


def _tick_format(rows: Sequence[ReasonRow], now: datetime) -> str:
    """Return seconds for what is minutes old, else a moment of the day with its date."""
    oldest = min((row.opened for row in rows), default=now)
    return "%H:%M:%S" if now - oldest < SECONDS_BELOW else "%H:%M\n%d %b"


def _add_need(figure: go.Figure, need: float, theme: Theme) -> None:
    colour = PALETTES[theme].families["nofit"]
    figure.add_shape(
        type="line",
        x0=need,
        x1=need,
        y0=0,
        y1=1,
        yref="paper",
        line={"color": colour, "width": 1.5, "dash": "5px,3px"},
        name="need",
    )
    figure.add_annotation(
        x=need,
        y=1,
        yref="paper",
        yanchor="bottom",
        xanchor="center",
        text=f"<b>{numbers.number(need)} needed</b>",
        showarrow=False,
        name="need",
    )


def _add_value(figure: go.Figure, row: DomainRow, need: float, theme: Theme) -> None:
    figure.add_annotation(
        x=max(row.free, row.gpus, need),
        y=axis_name(row.name),
        xanchor="left",
        xshift=4,
        text=f"{'<b>' if row.is_subject else ''}{numbers.number(row.free)}{'</b>' if row.is_subject else ''} free",
        showarrow=False,
        font={"color": PALETTES[theme].ink},
        name="value",
    )
