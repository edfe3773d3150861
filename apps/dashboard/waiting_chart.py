"""What stands around the chart of waiting GPUs: the figure, its words, its table, its ranges; live or pinned.

Relies on the series of the store; the table has the same values as the figure, each with an address that pins the
page to its moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from apps.dashboard import filters, marks, numbers
from apps.dashboard.figures import EdgeLabel, edge_labels, figure_json, totals, waiting_figure
from apps.diagnosis.selectors import WaitingSeries

ROWS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ChartRow:
    """One line of the table: the values from this moment on."""

    at: datetime
    url: str
    values: tuple[float, ...]
    total: float


def context(
    series: WaitingSeries, view: filters.ListView, *, cluster_gpus: float, pinned: datetime | None = None
) -> dict[str, Any]:
    """Return what the chart's template takes."""
    labels = edge_labels(series, cluster_gpus)
    return {
        "series": series,
        "figure": figure_json(waiting_figure(series, cluster_gpus=cluster_gpus, pinned=pinned)),
        "edge": labels,
        "chart_words": words(series, labels, edge="Then" if pinned else "Now"),
        "chart_rows": rows(series, view),
        "pin_url": pin_url(view),
        "ranges": [
            (word, range_url(replace(view, hours=hours), pinned), hours == view.hours)
            for hours, word in filters.RANGES.items()
        ],
        "view": view,
    }


def words(series: WaitingSeries, labels: Sequence[EdgeLabel], *, edge: str) -> str:
    """Say the values at the chart's right edge in words."""
    parts = ", ".join(f"{marks.verdict_mark(label.verdict).word} {label.gpus:g}" for label in labels)
    return f"Waiting GPUs by verdict. {edge} {totals(series)[-1]:g}{': ' + parts if parts else ''}."


def rows(series: WaitingSeries, view: filters.ListView) -> list[ChartRow]:
    """Return the table below the chart, newest first."""
    verdicts = [verdict for verdict in marks.VERDICTS if verdict in series.verdicts]
    sums = totals(series)
    found = [
        ChartRow(
            moment,
            pinned_url(view, moment),
            tuple(series.verdicts[verdict][at] for verdict in verdicts),
            sums[at],
        )
        for at, moment in enumerate(series.times)
    ]
    return found[::-1][:ROWS_SHOWN]


def pin_url(view: filters.ListView) -> str:
    """Return the beginning of an address that pins this view; a moment makes it whole."""
    query = view.query()
    return f"{query}&at=" if query else "?at="


def pinned_url(view: filters.ListView, at: datetime) -> str:
    return f"{pin_url(view)}{quote(numbers.iso(at))}"


def range_url(view: filters.ListView, pinned: datetime | None) -> str:
    """Return the address of another range, pinned to the same moment where there is one."""
    return pinned_url(view, pinned) if pinned is not None else view.query() or "?"
