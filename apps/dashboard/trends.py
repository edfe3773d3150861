"""Free capacity and queue shares over time: samples in, lines out, with the same values for a figure and a table.

Relies on samples that are true until the next one. What no sample has is None and draws no line; the spans in which
nothing was read are covered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from typing import Any
from urllib.parse import urlencode

import plotly.graph_objects as go
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.scope import Scope
from apps.dashboard import filters, numbers
from apps.dashboard.chart_style import PALETTES, Theme, add_gaps, chart_template
from apps.dashboard.figures import figure_json
from apps.diagnosis.selectors import reading_gaps
from apps.inventory.models import CapacitySample, Queue, Topology
from apps.inventory.selectors import CLUSTER_KEY, capacity_span

LINES_MAX = 8
"""More lines than this cannot be told apart; the largest are drawn, and how many are left out is said."""
STYLES = (
    ("start", "solid"), ("policy", "dash"), ("node", "dot"), ("config", "dashdot"),
    ("ok", "longdash"), ("gated", "dash"), ("nofit", "dot"), ("none", "solid"),
)  # fmt: skip
"""Colour and dash of each line in turn, so that colour is not needed to tell them apart."""
HEIGHT = 260
ROWS_SHOWN = 200
Gaps = tuple[tuple[datetime, datetime], ...]


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Trend:
    """Each value is true from its time to the next; ``left_out`` counts what has no line."""

    times: tuple[datetime, ...]
    lines: tuple[Line, ...]
    gaps: Gaps
    left_out: int

    @property
    def rows(self) -> list[tuple[datetime, tuple[float | None, ...]]]:
        """Return the table, newest first."""
        found = [(at, tuple(line.values[place] for line in self.lines)) for place, at in enumerate(self.times)]
        return found[::-1][:ROWS_SHOWN]


def free_trend(samples: Sequence[CapacitySample], topology: Topology | None, span: Span) -> Trend:
    """Return free GPUs of the whole cluster and of the broadest domains of a topology."""
    sizes: dict[str, float] = {}
    for sample in samples:
        for key, amounts in sample.domains.items():
            owner, mark, path = key.partition("|")
            if mark and topology is not None and owner == topology.name and "/" not in path:
                sizes[key] = max(sizes.get(key, 0.0), amounts[0])
    names = sorted(sizes, key=lambda key: (-sizes[key], key))
    kept = [CLUSTER_KEY, *sorted(names[: LINES_MAX - 1])]

    def value(sample: CapacitySample, key: str) -> float | None:
        return sample.domains[key][1] if key in sample.domains else None

    words = {key: key.partition("|")[2] or "whole cluster" for key in kept}
    return _trend(samples, span, words, value, len(sizes) + 1 - len(kept))


def share_trend(samples: Sequence[CapacitySample], queues: Sequence[Queue], span: Span) -> Trend:
    """Return the GPUs that leaf queues hold, those of the queues that held most."""
    leaves = {queue.name: str(queue) for queue in queues if queue.name not in {other.parent for other in queues}}
    most = {name: max((_held(sample, name) or 0.0 for sample in samples), default=0.0) for name in leaves}
    names = sorted(most, key=lambda name: (-most[name], name))
    kept = {name: leaves[name] for name in sorted(names[:LINES_MAX])}
    return _trend(samples, span, kept, _held, len(leaves) - len(kept))


def _held(sample: CapacitySample, queue: str) -> float | None:
    held: float | None = sample.queues.get(queue, (None,))[0]
    return held


@dataclass(frozen=True, slots=True)
class Span:
    since: datetime
    until: datetime
    gaps: Gaps


def _trend(
    samples: Sequence[CapacitySample],
    span: Span,
    names: Mapping[str, str],
    value: Callable[[CapacitySample, str], float | None],
    left_out: int,
) -> Trend:
    """Put the samples on one axis; the first may be older than the span, the last holds to its end."""
    if not samples:
        return Trend((), (), span.gaps, 0)
    held = [*samples, samples[-1]]
    times = (*(max(sample.at, span.since) for sample in samples), span.until)
    lines = tuple(Line(word, tuple(value(sample, key) for sample in held)) for key, word in names.items())
    return Trend(times, lines, span.gaps, left_out)


def trend_figure(trend: Trend, *, theme: Theme = "light") -> go.Figure:
    """Draw the lines as steps."""
    figure = go.Figure([_line(trend, line, place, theme) for place, line in enumerate(trend.lines)])
    figure.update_layout(
        template=chart_template(theme),
        height=HEIGHT,
        showlegend=True,
        legend={"orientation": "h", "y": -0.16, "yanchor": "top", "x": 0, "itemclick": False, "itemdoubleclick": False},
        margin={"l": 40, "r": 8, "t": 14, "b": 60},
        xaxis={"type": "date", "hoverformat": "%d %b %H:%M:%S UTC", "tickformat": "%H:%M\n%d %b"},
        yaxis={"tickformat": ",d"},
    )
    add_gaps(figure, trend.gaps, theme)
    return figure


def _line(trend: Trend, line: Line, place: int, theme: Theme) -> go.Scatter:
    token, dash = STYLES[place % len(STYLES)]
    return go.Scatter(
        x=list(trend.times),
        y=list(line.values),
        name=escape(line.name),
        mode="lines",
        line={"shape": "hv", "width": 2, "dash": dash, "color": PALETTES[theme].families[token]},
        hovertemplate="%{y:,}",
        meta={"token": token, "edge": True},
    )


def trend_context(
    request: HttpRequest, scope: Scope, cluster: str, make: Callable[[Sequence[CapacitySample], Span], Trend]
) -> dict[str, Any]:
    """Return what the trend's template takes, over the range that the address names; two or three queries."""
    hours = filters.parse(request.GET).hours
    until = timezone.now()
    since = until - timedelta(hours=hours)
    samples = capacity_span(scope=scope, cluster=cluster, since=since)
    gaps = reading_gaps(scope=scope, since=since, until=until, cluster=cluster)
    trend = make(samples, Span(since, until, gaps))
    query = {name: value for name, value in request.GET.items() if name in {"cluster", "topology"}}
    return {
        "trend": trend,
        "trend_figure": figure_json(trend_figure(trend)) if trend.lines else None,
        "trend_words": trend_words(trend),
        "trend_ranges": [
            (word, f"?{urlencode({**query, 'hours': number})}", number == hours)
            for number, word in filters.RANGES.items()
        ],
    }


def trend_words(trend: Trend) -> str:
    """Say the newest values in words."""
    known = ((line.name, line.values[-1]) for line in trend.lines)
    return "; ".join(f"{name} {'not known' if value is None else numbers.number(value)}" for name, value in known)
