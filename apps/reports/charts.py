"""A chart of a report as static SVG: no browser, no script and no library, the same bytes for the same numbers.

Widths are percentages and heights are pixels, so that text keeps its size from a phone to a wall. Each series has a
pattern or a dash beside its colour. Colours are the stylesheet's, so the picture follows light, dark and paper. What
was not read is a hatched band, never a zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.reports import words
from apps.reports.content import Chart, ChartKind, Series
from gangdash.reasons.labels import VERDICT_LABELS

TOP, PLOT, FOOT = 12.0, 120.0, 20.0
"""Pixels above the plot, of the plot, and of the labels below it."""
GUTTER = 9.0
"""Percent at the right that the amounts of the scale stand in."""
LINE_HEIGHT = 22
"""Pixels of one bar that has a name instead of a moment."""
NAME_WIDTH, VALUE_WIDTH = 34.0, 14.0
TICKS_MAX = 4
LABELS_MAX = 6
NAME_LENGTH = 30
DASHES = ("", "6 3", "2 2", "8 3 2 3", "1 3", "10 4")
FAMILIES = {verdict: label.family for verdict, label in VERDICT_LABELS.items()}
"""The colour of a verdict, the same as on the pages."""
PALETTE = ("np", "borrow", "pre", "ok", "config", "none")
"""Colours of series that are no verdicts, told apart by their pattern as well."""
PATTERNS = (
    "",
    "M0 0v6",
    "M3 3h.01",
    "M0 3h6",
    "M0 0v6M0 3h6",
    "M0 0v6M3 0v6",
)
"""Strokes on a tile of six pixels that is turned by 45 degrees; the first series of a chart is plain."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How one series is told from the others: its colour, its pattern, the id that the picture fills with."""

    series: Series
    family: str
    pattern: str
    dash: str
    ident: str


@dataclass(frozen=True, slots=True)
class Picture:
    """``key`` repeats the marks in small, with names and newest values."""

    chart: Chart
    svg: SafeString
    key: tuple[tuple[SafeString, str, str], ...]


def picture(chart: Chart, *, ident: str, zone: str) -> Picture:
    """Draw a chart; ``ident`` keeps its patterns apart from those of other charts of the document."""
    marks = _marks(chart, ident)
    if chart.kind == ChartKind.BARS and not _moments(chart):
        return Picture(chart, _named_bars(chart, marks), () if len(marks) == 1 else _key(chart, marks))
    return Picture(chart, _timed(chart, marks, zone), _key(chart, marks))


def scale(highest: float) -> tuple[float, ...]:
    """Return round steps from zero that hold the highest value: at most four of 1, 2 or 5 times a power of ten."""
    if highest < 0.005:
        return (0.0, 1.0)
    rough = highest / TICKS_MAX
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor * TICKS_MAX >= highest * (1 - 1e-9))
    return tuple(step * at for at in range(math.ceil(highest / step - 1e-9) + 1))


def _marks(chart: Chart, ident: str) -> tuple[Mark, ...]:
    return tuple(
        Mark(
            series,
            FAMILIES.get(series.key, "") or PALETTE[at % len(PALETTE)],
            PATTERNS[at % len(PATTERNS)],
            DASHES[at % len(DASHES)],
            f"{ident}-{at}",
        )
        for at, series in enumerate(chart.series)
    )


def _moments(chart: Chart) -> list[datetime]:
    """Return the moments of the axis, none where its labels are words."""
    found = [words.moment_of(label) for label in chart.labels]
    return [moment for moment in found if moment] if all(found) else []


# --- the frame ---------------------------------------------------------------------------------------------------


def _svg(chart: Chart, height: float, marks: Sequence[Mark], body: SafeString) -> SafeString:
    return format_html(
        '<svg class="rp-chart" width="100%" height="{}" role="img" aria-label="{}">'
        "<title>{}</title><desc>{}</desc>{}{}</svg>",
        _n(height),
        f"{chart.title}. {chart.description}",
        chart.title,
        chart.description,
        _defs(marks),
        body,
    )


def _defs(marks: Sequence[Mark]) -> SafeString:
    tiles = format_html_join(
        "",
        '<pattern id="{}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<rect class="rp-f rp-{}" width="6" height="6"></rect><path class="rp-over" d="{}"></path></pattern>',
        ((mark.ident, mark.family, mark.pattern) for mark in marks),
    )
    gap = format_html(
        '<pattern id="{}-gap" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">'
        '<path class="rp-gap" d="M0 0v5"></path></pattern>',
        marks[0].ident if marks else "rp",
    )
    return format_html("<defs>{}{}</defs>", tiles, gap)


def _key(chart: Chart, marks: Sequence[Mark]) -> tuple[tuple[SafeString, str, str], ...]:
    return tuple((_sample(chart, mark), mark.series.label, _newest(mark.series)) for mark in marks)


def _sample(chart: Chart, mark: Mark) -> SafeString:
    if chart.kind == ChartKind.LINES:
        return format_html(
            '<svg class="rp-key" width="24" height="10" aria-hidden="true">'
            '<line class="rp-l rp-{}" x1="0" x2="24" y1="5" y2="5" stroke-dasharray="{}"></line></svg>',
            mark.family,
            mark.dash,
        )
    return format_html(
        '<svg class="rp-key" width="12" height="12" aria-hidden="true">'
        '<rect width="12" height="12" fill="url(#{})"></rect></svg>',
        mark.ident,
    )


def _newest(series: Series) -> str:
    if not series.values:
        return ""
    return "not read" if series.values[-1] is None else words.number(series.values[-1])


def _n(value: float) -> str:
    """Write a coordinate: two places at most, no trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


# --- values over time --------------------------------------------------------------------------------------------


def _timed(chart: Chart, marks: Sequence[Mark], zone: str) -> SafeString:
    steps = scale(_highest(chart))
    draw = _steps if chart.kind == ChartKind.LINES else _columns
    body = format_html("{}{}{}{}", _grid(steps), _gaps(chart, marks), draw(chart, marks, steps[-1]), _axis(chart, zone))
    return _svg(chart, TOP + PLOT + FOOT, marks, body)


def _highest(chart: Chart) -> float:
    columns = list(zip(*(series.values for series in chart.series), strict=True))
    if chart.kind == ChartKind.STACKED:
        return max((sum(value or 0.0 for value in column) for column in columns), default=0.0)
    return max((value or 0.0 for column in columns for value in column), default=0.0)


def _grid(steps: Sequence[float]) -> SafeString:
    return format_html_join(
        "",
        '<line class="rp-grid" x1="0" x2="100%" y1="{}" y2="{}"></line>'
        '<text class="rp-tick" x="100%" y="{}" text-anchor="end">{}</text>',
        ((_n(y), _n(y), _n(y - 3), words.number(step)) for step in steps for y in [_y(step, steps[-1])]),
    )


def _y(value: float, top: float) -> float:
    return TOP + PLOT * (1 - max(value, 0.0) / top)


def _slots(chart: Chart) -> tuple[float, float]:
    """Return the width of one label's place and the width of what is drawn in it, in percent."""
    width = (100 - GUTTER) / max(len(chart.labels), 1)
    return width, width * 0.85


def _gaps(chart: Chart, marks: Sequence[Mark]) -> SafeString:
    """Draw a band over each label of which nothing was read."""
    width, _drawn = _slots(chart)
    unread = [at for at in range(len(chart.labels)) if all(series.values[at] is None for series in chart.series)]
    return format_html_join(
        "",
        '<rect x="{}%" width="{}%" y="{}" height="{}" fill="url(#{}-gap)"></rect>',
        ((_n(at * width), _n(width), _n(TOP), _n(PLOT), marks[0].ident) for at in unread if marks),
    )


def _columns(chart: Chart, marks: Sequence[Mark], top: float) -> SafeString:
    draw = _stack if chart.kind == ChartKind.STACKED else _side_by_side
    boxes = (box for at in range(len(chart.labels)) for box in draw(chart, marks, top, at))
    return format_html_join("", '<rect x="{}%" width="{}%" y="{}" height="{}" fill="url(#{})"></rect>', boxes)


Box = tuple[str, str, str, str, str]


def _stack(chart: Chart, marks: Sequence[Mark], top: float, at: int) -> Iterator[Box]:
    width, drawn = _slots(chart)
    below = 0.0
    for mark in marks:
        value = mark.series.values[at] or 0.0
        if value > 0:
            upper = _y(below + value, top)
            yield _n(at * width), _n(drawn), _n(upper), _n(_y(below, top) - upper), mark.ident
            below += value


def _side_by_side(chart: Chart, marks: Sequence[Mark], top: float, at: int) -> Iterator[Box]:
    width, drawn = _slots(chart)
    part = drawn / max(len(marks), 1)
    for index, mark in enumerate(marks):
        value = mark.series.values[at] or 0.0
        if value > 0:
            upper = _y(value, top)
            yield _n(at * width + index * part), _n(part), _n(upper), _n(TOP + PLOT - upper), mark.ident


def _steps(chart: Chart, marks: Sequence[Mark], top: float) -> SafeString:
    """Draw lines that change at an instant; they break where nothing was read.

    An inner picture is stretched to the plot, as a path knows no percentages; its strokes keep their width.
    """
    paths = format_html_join(
        "",
        '<path class="rp-l rp-{}" d="{}" stroke-dasharray="{}" vector-effect="non-scaling-stroke"></path>',
        ((mark.family, _path(mark.series.values, top), mark.dash) for mark in marks),
    )
    return format_html(
        '<svg x="0" y="{}" width="{}%" height="{}" viewBox="0 0 {} {}" preserveAspectRatio="none" overflow="visible">'
        "{}</svg>",
        _n(TOP),
        _n(100 - GUTTER),
        _n(PLOT),
        max(len(chart.labels), 1),
        _n(PLOT),
        paths,
    )


def _path(values: Sequence[float | None], top: float) -> str:
    parts: list[str] = []
    is_open = False
    for at, value in enumerate(values):
        if value is not None:
            y = _n(_y(value, top) - TOP)
            parts.append(f"V{y}H{at + 1}" if is_open else f"M{at} {y}H{at + 1}")
        is_open = value is not None
    return "".join(parts)


def _axis(chart: Chart, zone: str) -> SafeString:
    width, drawn = _slots(chart)
    every = math.ceil(len(chart.labels) / LABELS_MAX) or 1
    names = _axis_names(chart, zone)
    return format_html_join(
        "",
        '<text class="rp-tick" x="{}%" y="{}" text-anchor="{}">{}</text>',
        (
            (_n(at * width + (drawn / 2 if at else 0)), _n(TOP + PLOT + 15), "middle" if at else "start", name)
            for at, name in enumerate(names)
            if at % every == 0
        ),
    )


def _axis_names(chart: Chart, zone: str) -> list[str]:
    moments = _moments(chart)
    if not moments:
        return [_short(label) for label in chart.labels]
    local = [moment.astimezone(words.zone_of(zone)) for moment in moments]
    if local[-1] - local[0] <= timedelta(days=2):
        return [f"{moment:%H:%M}" for moment in local]
    return [f"{moment.day} {moment:%b}" for moment in local]


def _short(text: str) -> str:
    return text if len(text) <= NAME_LENGTH else f"{text[: NAME_LENGTH - 1]}…"


# --- values by name ----------------------------------------------------------------------------------------------


def _named_bars(chart: Chart, marks: Sequence[Mark]) -> SafeString:
    """Draw one line per label: its name, a bar per series, the amount."""
    top = scale(_highest(chart))[-1]
    lines = format_html_join(
        "", "{}", ((_named_bar(chart, marks, top, at),) for at in range(len(chart.labels)))
    )  # fmt: skip
    return _svg(chart, LINE_HEIGHT * max(len(chart.labels), 1), marks, lines)


def _named_bar(chart: Chart, marks: Sequence[Mark], top: float, at: int) -> SafeString:
    y = LINE_HEIGHT * at
    thick = (LINE_HEIGHT - 8) / max(len(marks), 1)
    room = 100 - NAME_WIDTH - VALUE_WIDTH
    bars = format_html_join(
        "",
        '<rect x="{}%" width="{}%" y="{}" height="{}" fill="url(#{})"></rect>',
        (
            (_n(NAME_WIDTH), _n(room * max(value, 0.0) / top), _n(y + 4 + index * thick), _n(thick), ident)
            for index, (value, ident) in enumerate(_drawn(marks, at))
        ),
    )
    amounts = " / ".join(_amount(mark.series.values[at]) for mark in marks)
    return format_html(
        '<text class="rp-name" x="0" y="{}">{}</text>{}'
        '<text class="rp-value" x="100%" y="{}" text-anchor="end">{}</text>',
        _n(y + 15),
        _short(chart.labels[at]),
        bars,
        _n(y + 15),
        amounts,
    )


def _drawn(marks: Sequence[Mark], at: int) -> Iterator[tuple[float, str]]:
    for mark in marks:
        value = mark.series.values[at]
        yield (0.0, mark.ident) if value is None else (value, mark.ident)


def _amount(value: float | None) -> str:
    return "not read" if value is None else words.number(value)
