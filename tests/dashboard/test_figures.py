"""Charts draw the rows, all of them and nothing else."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from apps.dashboard import chart_style, figures, gang_figures, gang_page
from apps.dashboard.chart_style import PALETTES, Theme
from apps.dashboard.gang_figures import DomainRow, ReasonRow
from apps.dashboard.marks import VERDICTS
from apps.diagnosis.selectors import WaitingSeries
from apps.inventory.models import Domain

START = datetime(2026, 11, 30, 3, tzinfo=UTC)


def series(gaps: tuple[tuple[datetime, datetime], ...] = ()) -> WaitingSeries:
    times = tuple(START + timedelta(hours=at) for at in range(4))
    verdicts: dict[str, tuple[float, ...]] = {"WILL_START": (0.0, 4.0, 0.0, 4.0), "NO_FIT": (16.0, 16.0, 92.0, 92.0)}
    verdicts["NODE"] = (8.0, 0.0, 0.0, 40.0)
    return WaitingSeries(times, verdicts, gaps)


def test_bands_and_total_equal_the_rows() -> None:
    figure = figures.waiting_figure(series())
    bands = {trace.name: list(trace.y) for trace in figure.data if trace.stackgroup}
    assert bands == {"No fit": [16, 16, 92, 92], "Node state": [8, 0, 0, 40], "Will start": [0, 4, 0, 4]}
    total = next(trace for trace in figure.data if trace.name == figures.TOTAL)
    assert list(total.y) == [24, 20, 92, 136]
    assert all(trace.line.shape == "hv" for trace in (*[t for t in figure.data if t.stackgroup], total))


def test_bands_are_stacked_in_the_fixed_order_whatever_the_rows_say() -> None:
    names = [trace.name for trace in figures.waiting_figure(series()).data if trace.stackgroup]
    order = [mark.word for mark in VERDICTS.values()]
    assert names == sorted(names, key=order.index)


def test_edges_are_drawn_only_where_a_band_has_a_height() -> None:
    figure = figures.waiting_figure(series())
    edge = [trace for trace in figure.data if (trace.meta or {}).get("edge")][-1]
    assert [(x - START) / timedelta(hours=1) for x in edge.x] == [1, 2, 2]
    assert list(edge.y) == [20, 20, None]


def test_neighbours_that_come_close_in_hue_have_a_pattern() -> None:
    patterns = {t.name: t.fillpattern.shape for t in figures.waiting_figure(series()).data if t.stackgroup}
    assert patterns["Node state"] == "/"
    assert not patterns["No fit"]


def test_a_gap_in_reading_is_covered_and_labelled() -> None:
    figure = figures.waiting_figure(series(gaps=((START, START + timedelta(hours=1)),)))
    assert [shape.x1 for shape in figure.layout.shapes if shape.name == "gap"] == [START + timedelta(hours=1)]
    assert [note.text for note in figure.layout.annotations if note.name == "gap"] == ["not read"]


def test_labels_at_the_edge_say_the_newest_values_and_never_overlap() -> None:
    labels = figures.edge_labels(series(), 0)
    assert [(label.verdict, label.gpus) for label in labels] == [("WILL_START", 4), ("NODE", 40), ("NO_FIT", 92)]
    tops = [label.top for label in labels]
    assert all(below - above >= figures.LABEL_GAP for above, below in pairwise(tops))
    assert min(tops) >= 0
    assert max(tops) <= figures.WAITING_HEIGHT


def test_many_labels_stay_inside_the_plot() -> None:
    times = (START, START + timedelta(hours=1))
    crowd = WaitingSeries(times, dict.fromkeys(VERDICTS, (1.0, 1.0)), ())
    labels = figures.edge_labels(crowd, 0)
    assert len(labels) == len(VERDICTS)
    assert labels[0].top >= figures.LABEL_GAP / 2


def test_domain_bars_equal_the_rows_and_the_hatch_is_what_is_missing() -> None:
    rows = [DomainRow("rack-a2", 16, 36), DomainRow("rack-a1", 36, 72, is_subject=True), DomainRow("rack-b1", 60, 104)]
    figure = gang_figures.domain_figure(rows, need=48)
    outline, free, _barred, short = figure.data
    assert list(free.y) == ["rack-b1", "rack-a1", "rack-a2"]
    assert list(free.x) == [60, 36, 16]
    assert list(outline.x) == [104, 72, 36]
    assert [base + missing for base, missing in zip(short.base, short.x, strict=True)] == [60, 48, 48]
    assert [note.text for note in figure.layout.annotations if note.name == "need"] == ["<b>48 needed</b>"]


def test_no_solid_bar_reaches_further_than_the_verdict_found() -> None:
    domains = [Domain(name="a3", path="a3", gpus_free=48, gpus=48), Domain(name="a2", path="a2", gpus_free=24, gpus=64)]
    entry = {"id": "domain.gpu", "scope": "a3", "need": 40, "have": 32, "unit": "gpu", "source": "Topology/t"}
    rows = gang_page.domain_rows(domains, {"binding": [entry]}, None)
    assert [(row.name, row.free, row.barred, row.is_subject) for row in rows] == [
        ("a3", 32, 16, True),
        ("a2", 24, 0, False),
    ]
    barred = gang_figures.domain_figure(rows, need=40).data[2]
    assert list(barred.base) == [32, 24]
    assert list(barred.x) == [16, 0]
    unbounded = gang_page.domain_rows(domains, {"binding": [{**entry, "id": "queue.limit.gpu"}]}, None)
    assert [row.free for row in unbounded] == [48, 24]


def test_the_domain_that_the_verdict_names_is_drawn_even_when_it_is_not_among_the_freest() -> None:
    rows = [DomainRow(f"rack-{at:02d}", at, 64) for at in range(40)]
    rows[0] = DomainRow("rack-00", 0, 64, is_subject=True)
    drawn = gang_figures.domains_drawn(rows)
    assert len(drawn) == gang_figures.DOMAINS_DRAWN + 1
    assert drawn[-1].name == "rack-00"


def test_names_in_a_figure_cannot_carry_markup() -> None:
    figure = gang_figures.domain_figure([DomainRow("<b>x</b>", 1, 2)], need=4)
    assert list(figure.data[0].y) == ["&lt;b&gt;x&lt;/b&gt;"]
    assert "<b>x" not in figure.to_json().replace("\\u003c", "<")


def test_reason_bars_begin_and_end_with_their_rows() -> None:
    now = START + timedelta(hours=2)
    rows = [
        ReasonRow("GATED", "MEMBERS_MISSING", "", START, START + timedelta(minutes=30)),
        ReasonRow("NO_FIT", "DOMAIN_BUSY", "", START + timedelta(minutes=30), None),
    ]
    figure = gang_figures.reason_figure(rows, now=now)
    bars = {trace.name: (trace.base[0], trace.x[0]) for trace in figure.data}
    assert bars["Gated"] == (START.isoformat(), 30 * 60_000)
    assert bars["No fit"] == ((START + timedelta(minutes=30)).isoformat(), 90 * 60_000)


def _tokens(theme: Theme) -> dict[str, str]:
    css = (Path(__file__).resolve().parents[2] / "static" / "gangdash.css").read_text()
    selector = ":root {" if theme == "light" else ':root[data-theme="dark"] {'
    block = css[css.index(selector) : css.index("}", css.index(selector))]
    return dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]+)", block))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_chart_colours_are_the_tokens_of_the_stylesheet(theme: Theme) -> None:
    tokens, palette = _tokens(theme), PALETTES[theme]
    assert palette.families == {name: tokens[f"{name}-f"] for name in palette.families}
    for field, token in (("ink", "ink"), ("ink_3", "ink-3"), ("line", "line"), ("surface", "surface")):
        assert getattr(palette, field) == tokens[token]
    assert palette.capacity == tokens["cap-np"]


def _luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_faintest_text_and_every_badge_can_be_read(theme: Theme) -> None:
    tokens = _tokens(theme)
    for paper in ("bg", "surface", "sunken"):
        assert _contrast(tokens["ink-3"], tokens[paper]) >= 4.5, paper
    for family in PALETTES[theme].families:
        assert _contrast(tokens[f"{family}-i"], tokens[f"{family}-t"]) >= 4.5, family


def test_dark_values_are_the_same_in_both_places() -> None:
    css = (Path(__file__).resolve().parents[2] / "static" / "gangdash.css").read_text()
    wished = css[css.index(':root:not([data-theme="light"]) {') :]
    wished = wished[: wished.index("}")]
    assert dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]+)", wished)) == _tokens("dark")


def test_thousands_of_gaps_are_drawn_as_few_and_hide_no_wide_reading() -> None:
    minute = timedelta(minutes=1)
    short = [(START + 2 * n * minute, START + (2 * n + 1) * minute) for n in range(3000)]
    late = START + timedelta(days=6)
    found = chart_style.joined_gaps([*short, (late, late + timedelta(hours=2))])
    assert found == [(START, short[-1][1]), (late, late + timedelta(hours=2))]
    wide = [(START + n * timedelta(hours=2), START + n * timedelta(hours=2) + minute * 60) for n in range(40)]
    assert chart_style.joined_gaps(wide) == wide
    drawn = figures.waiting_figure(series(gaps=tuple(wide)))
    assert len([shape for shape in drawn.layout.shapes if shape.name == "gap"]) == 40
    assert len([note for note in drawn.layout.annotations if note.name == "gap"]) == chart_style.GAPS_NAMED
