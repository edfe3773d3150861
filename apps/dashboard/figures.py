"""Rows in, figure out: waiting GPUs over time, with nothing read and nothing rounded away.

Each trace names its colour token in ``meta``, so that the page can redraw it in the other theme. The same rows feed
the table below a chart, so what the hover says can be read there too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import plotly.graph_objects as go

from apps.dashboard import numbers
from apps.dashboard.chart_style import (
    EDGE_WIDTH,
    PALETTES,
    PATTERNS,
    Theme,
    add_gaps,
    add_pin,
    chart_template,
    faded,
    family_of,
    verdict_colour,
)
from apps.dashboard.marks import VERDICTS
from apps.diagnosis.selectors import WaitingSeries

WAITING_HEIGHT = 300
WAITING_MARGIN = {"l": 40, "r": 8, "t": 12, "b": 28}
LABEL_GAP = 18
"""Least distance in pixels between two labels at the edge of a stack."""
TOTAL = "All waiting GPUs"


@dataclass(frozen=True, slots=True)
class EdgeLabel:
    """The value of one band now, and where its label stands, in pixels from the top of the plot."""

    verdict: str
    gpus: float
    top: float


def figure_json(figure: go.Figure) -> dict[str, Any]:
    """Return a figure as plain data for the page's script."""
    content: dict[str, Any] = json.loads(figure.to_json())
    return content


def drawn_verdicts(series: WaitingSeries) -> list[str]:
    """Return the verdicts of a series in the order in which they are stacked, from the bottom."""
    return [verdict for verdict in VERDICTS if verdict in series.verdicts]


def totals(series: WaitingSeries) -> list[float]:
    """Return the sum over all verdicts at each time."""
    return [sum(values[at] for values in series.verdicts.values()) for at in range(len(series.times))]


def waiting_top(series: WaitingSeries, cluster_gpus: float) -> float:
    """Return the upper end of the axis; the cluster's size is on it unless it would flatten the stack."""
    peak = max(totals(series), default=0.0)
    if cluster_gpus and cluster_gpus <= max(peak, 1) * 4:
        peak = max(peak, cluster_gpus)
    return max(peak, 1) * 1.08


def waiting_figure(
    series: WaitingSeries, *, cluster_gpus: float = 0.0, pinned: datetime | None = None, theme: Theme = "light"
) -> go.Figure:
    """Draw waiting GPUs over time, one band per verdict, the total last in the hover; ``pinned`` is marked."""
    figure = go.Figure()
    for verdict in drawn_verdicts(series):
        figure.add_trace(_band(series, verdict, theme))
    figure.add_traces(_edges(series, theme))
    figure.add_trace(
        go.Scatter(
            x=list(series.times),
            y=totals(series),
            name=TOTAL,
            mode="lines",
            line={"width": 0, "shape": "hv"},
            hovertemplate="%{y:,}",
            meta={"token": "total"},
        )
    )
    top = waiting_top(series, cluster_gpus)
    figure.update_layout(
        template=chart_template(theme),
        height=WAITING_HEIGHT,
        margin=WAITING_MARGIN,
        xaxis={"type": "date", "hoverformat": "%d %b %H:%M:%S UTC", "tickformat": "%H:%M\n%d %b"},
        yaxis={"range": [0, top], "tickformat": ",d", "automargin": False},
    )
    add_gaps(figure, series.gaps, theme)
    if 0 < cluster_gpus <= top:
        _add_line(figure, cluster_gpus, f"cluster size, {numbers.number(cluster_gpus)}", theme)
    if pinned is not None:
        add_pin(figure, pinned, theme)
    return figure


def edge_labels(series: WaitingSeries, cluster_gpus: float) -> list[EdgeLabel]:
    """Return the labels at the right edge, spread so that none covers another, highest band first."""
    top = waiting_top(series, cluster_gpus)
    plot = WAITING_HEIGHT - WAITING_MARGIN["t"] - WAITING_MARGIN["b"]
    base, found = 0.0, []
    for verdict in drawn_verdicts(series):
        now = series.verdicts[verdict][-1]
        if now > 0:
            found.append((verdict, now, WAITING_MARGIN["t"] + plot * (1 - (base + now / 2) / top)))
        base += now
    lowest = float(WAITING_HEIGHT - WAITING_MARGIN["b"] - LABEL_GAP / 2)
    labels = []
    for verdict, now, wanted in found:
        lowest = min(wanted, lowest)
        labels.append(EdgeLabel(verdict, now, lowest))
        lowest -= LABEL_GAP
    missing = LABEL_GAP / 2 - min((label.top for label in labels), default=LABEL_GAP)
    if missing > 0:
        labels = [EdgeLabel(label.verdict, label.gpus, label.top + missing) for label in labels]
    return labels[::-1]


def _band(series: WaitingSeries, verdict: str, theme: Theme) -> go.Scatter:
    colour = verdict_colour(verdict, theme)
    return go.Scatter(
        x=list(series.times),
        y=list(series.verdicts[verdict]),
        name=VERDICTS[verdict].word,
        mode="lines",
        stackgroup="waiting",
        line={"shape": "hv", "width": 0, "color": colour},
        fillcolor=faded(colour),
        fillpattern={"fgcolor": colour, "fillmode": "overlay", **PATTERNS[verdict]} if verdict in PATTERNS else None,
        hovertemplate="%{y:,}",
        meta={"token": family_of(verdict)},
    )


def _edges(series: WaitingSeries, theme: Theme) -> list[go.Scatter]:
    """Draw the top of each band only where the band has a height: an edge without one would look like waiting."""
    base = [0.0] * len(series.times)
    edges = []
    for verdict in drawn_verdicts(series):
        values = series.verdicts[verdict]
        base = [below + value for below, value in zip(base, values, strict=True)]
        edges.append(_edge(series, verdict, base, theme))
    return edges


def _edge(series: WaitingSeries, verdict: str, tops: Sequence[float], theme: Theme) -> go.Scatter:
    moments: list[datetime] = []
    heights: list[float | None] = []
    values = series.verdicts[verdict]
    for at in range(len(values) - 1):
        if values[at] <= 0:
            continue
        moments += [series.times[at], series.times[at + 1]]
        heights += [tops[at], tops[at]]
        if values[at + 1] <= 0:
            moments.append(series.times[at + 1])
            heights.append(None)
    return go.Scatter(
        x=moments,
        y=heights,
        name=f"Top of {VERDICTS[verdict].word}",
        mode="lines",
        line={"width": EDGE_WIDTH, "color": verdict_colour(verdict, theme)},
        hoverinfo="skip",
        meta={"token": family_of(verdict), "edge": True},
    )


def _add_line(figure: go.Figure, value: float, words: str, theme: Theme) -> None:
    palette = PALETTES[theme]
    dash = {"color": palette.ink_3, "width": 1, "dash": "3px,3px"}
    figure.add_shape(type="line", x0=0, x1=1, xref="paper", y0=value, y1=value, line=dash, name="mark")
    figure.add_annotation(
        x=0, xref="paper", xanchor="left", y=value, yanchor="bottom", text=words, showarrow=False, name="mark"
    )
