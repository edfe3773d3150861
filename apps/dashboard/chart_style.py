"""One chart style for all figures: paper, axes, hover, and the colour of each verdict, for light and dark.

The page's script re-reads the stylesheet's tokens when it draws, so the values here serve reports and figures
outside a page; a test holds them equal to the tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from typing import Any, Literal

import plotly.graph_objects as go

from apps.dashboard.marks import VERDICTS
from gangdash.engine.verdict import Verdict

Theme = Literal["light", "dark"]
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif'
FILL_OPACITY = 0.4
EDGE_WIDTH = 2
GAPS_NAMED = 8
"""Labels of gaps; beyond a few they cover one another."""
GAPS_APART = 2000
"""Gaps closer than this part of the time between the first and the last are less than a pixel apart."""


@dataclass(frozen=True, slots=True)
class Palette:
    """Resolved tokens of one theme."""

    surface: str
    raised: str
    sunken: str
    line: str
    line_2: str
    ink: str
    ink_2: str
    ink_3: str
    capacity: str
    families: Mapping[str, str]


PALETTES: Mapping[Theme, Palette] = {
    "light": Palette(
        surface="#fff",
        raised="#fff",
        sunken="#f0f2f5",
        line="#e2e6ec",
        line_2="#c5ccd7",
        ink="#0f141b",
        ink_2="#3f4959",
        ink_3="#5a6577",
        capacity="#34496b",
        families={
            "nofit": "#d55e00",
            "node": "#ba8000",
            "policy": "#7a5fce",
            "config": "#c4568f",
            "gated": "#5d8c9b",
            "start": "#2b86c8",
            "bad": "#cf3848",
            "ok": "#0b9a70",
            "none": "#8a94a5",
        },
    ),
    "dark": Palette(
        surface="#11151c",
        raised="#1b212b",
        sunken="#181d26",
        line="#232a35",
        line_2="#3b4555",
        ink="#eef1f6",
        ink_2="#bac3d1",
        ink_3="#94a0b2",
        capacity="#9db4d8",
        families={
            "nofit": "#e8702a",
            "node": "#dca022",
            "policy": "#8d74e2",
            "config": "#cb639c",
            "gated": "#5c93a4",
            "start": "#3c93d3",
            "bad": "#de5360",
            "ok": "#22a980",
            "none": "#7a8597",
        },
    ),
}

PATTERNS: Mapping[str, Mapping[str, Any]] = {
    Verdict.NODE: {"shape": "/", "size": 6, "solidity": 0.3},
    Verdict.CONFIG: {"shape": ".", "size": 5, "solidity": 0.3},
    Verdict.GATED: {"shape": "|", "size": 5, "solidity": 0.3},
}
"""Neighbours in a stack that come close in hue differ by pattern too."""

CONFIG: Mapping[str, Any] = {
    "displayModeBar": False,
    "responsive": True,
    "doubleClick": False,
    "scrollZoom": False,
    "locale": "en",
}


def family_of(verdict: str) -> str:
    return VERDICTS[verdict].family


def verdict_colour(verdict: str, theme: Theme) -> str:
    return PALETTES[theme].families[family_of(verdict)]


def faded(colour: str) -> str:
    """Return a full hue as the fill of an area: 40 % over the surface."""
    digits = colour.lstrip("#")
    red, green, blue = (int(digits[at : at + 2], 16) for at in (0, 2, 4))
    return f"rgba({red},{green},{blue},{FILL_OPACITY})"


def chart_template(theme: Theme) -> go.layout.Template:
    """Return the layout that every figure starts from."""
    palette = PALETTES[theme]
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 11, "color": palette.ink_3},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "margin": {"l": 36, "r": 8, "t": 8, "b": 26, "pad": 0},
            "showlegend": False,
            "hovermode": "x unified",
            "hoverdistance": 24,
            "hoverlabel": {
                "bgcolor": palette.raised,
                "bordercolor": palette.line_2,
                "align": "left",
                "namelength": -1,
                "font": {"size": 12, "color": palette.ink},
            },
            "dragmode": False,
            "bargap": 0.35,
            "separators": ".,",
            "transition": {"duration": 0},
            "xaxis": _x_axis(palette),
            "yaxis": _y_axis(palette),
        }
    )


def _x_axis(palette: Palette) -> dict[str, Any]:
    return {
        "showgrid": False,
        "zeroline": False,
        "showline": True,
        "linecolor": palette.line_2,
        "ticks": "",
        "automargin": True,
        "fixedrange": True,
    }


def _y_axis(palette: Palette) -> dict[str, Any]:
    return {
        "gridcolor": palette.line,
        "gridwidth": 1,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "nticks": 5,
        "rangemode": "tozero",
        "automargin": True,
        "fixedrange": True,
        "separatethousands": True,
    }


def add_pin(figure: go.Figure, at: datetime, theme: Theme) -> None:
    """Mark the moment that a page is pinned to."""
    line = {"color": PALETTES[theme].ink_3, "width": 1.5, "dash": "2px,2px"}
    figure.add_shape(type="line", x0=at, x1=at, y0=0, y1=1, yref="paper", line=line, name="mark")
    figure.add_annotation(
        x=at, y=1, yref="paper", yanchor="bottom", xanchor="center", text="pinned", showarrow=False, name="mark"
    )


def add_gaps(figure: go.Figure, gaps: Iterable[tuple[datetime, datetime]], theme: Theme) -> None:
    """Cover what was not read: a line through it would claim to know. The widest ones say so in words."""
    found = joined_gaps(sorted(gaps))
    named = nlargest(GAPS_NAMED, found, key=lambda gap: gap[1] - gap[0])
    cover = {"type": "rect", "y0": 0, "y1": 1, "yref": "paper", "line": {"width": 0}, "name": "gap"}
    words = {"y": 1, "yref": "paper", "yanchor": "top", "xanchor": "center", "text": "not read", "showarrow": False}
    covers = [cover | {"x0": start, "x1": end, "fillcolor": PALETTES[theme].sunken} for start, end in found]
    labels = [words | {"x": start + (end - start) / 2, "name": "gap"} for start, end in sorted(named)]
    figure.update_layout(shapes=(*figure.layout.shapes, *covers), annotations=(*figure.layout.annotations, *labels))


def joined_gaps(gaps: Sequence[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """Return gaps, in order of time, with those joined that no chart could show apart."""
    if not gaps:
        return []
    apart = (gaps[-1][1] - gaps[0][0]) / GAPS_APART
    found = [gaps[0]]
    for start, end in gaps[1:]:
        if start - found[-1][1] <= apart:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
