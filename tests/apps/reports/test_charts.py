"""Pictures agree with their numbers: heights, gaps, scales, marks that do not rest on colour alone."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.reports.charts import PLOT, TOP, picture, scale
from apps.reports.content import Chart, ChartKind, Series

HOURS = tuple(f"2026-11-30T{hour:02d}:00:00+00:00" for hour in range(4))


def chart(kind: ChartKind, *values: tuple[float | None, ...], labels: tuple[str, ...] = HOURS) -> Chart:
    series = tuple(
        Series(key, key.lower(), row) for key, row in zip(("NO_FIT", "POLICY", "NODE"), values, strict=False)
    )
    return Chart("c", "Title", kind, labels, series, "GPUs", "Words.")


def drawn(made: Chart) -> ET.Element:
    """Parse the picture: it must be well-formed XML by itself."""
    return ET.fromstring(picture(made, ident="t", zone="UTC").svg)


def bars(root: ET.Element, ident: str) -> list[tuple[float, float]]:
    """Return top and height of each bar of one series."""
    found = [rect for rect in root.iter("rect") if rect.get("fill") == f"url(#{ident})"]
    return [(float(rect.get("y", "")), float(rect.get("height", ""))) for rect in found]


def test_a_stack_is_as_high_as_its_sum_and_each_part_as_its_value() -> None:
    root = drawn(chart(ChartKind.STACKED, (1.0, 0.0, 2.0, 5.0), (3.0, 4.0, 0.0, 5.0)))
    first, second = bars(root, "t-0"), bars(root, "t-1")
    unit = PLOT / scale(10.0)[-1]
    assert [height for _, height in first] == pytest.approx([unit, 2 * unit, 5 * unit], abs=0.02)
    assert [height for _, height in second] == pytest.approx([3 * unit, 4 * unit, 5 * unit], abs=0.02)
    assert second[0][0] + second[0][1] == pytest.approx(first[0][0], abs=0.02)
    assert first[0][0] + first[0][1] == pytest.approx(TOP + PLOT, abs=0.02)


def test_what_was_not_read_is_a_band_and_a_zero_is_not() -> None:
    root = drawn(chart(ChartKind.STACKED, (1.0, None, 0.0, 2.0), (1.0, None, 0.0, 2.0)))
    assert len(bars(root, "t-0-gap")) == 1
    assert len(bars(root, "t-0")) == 2


def test_a_line_breaks_where_nothing_was_read() -> None:
    root = drawn(chart(ChartKind.LINES, (1.0, None, 2.0, 2.0)))
    paths = [path.get("d", "") for path in root.iter("path") if "rp-l " in path.get("class", "")]
    assert paths[0].count("M") == 2
    assert len(bars(root, "t-0-gap")) == 1


def test_names_get_a_line_each_with_the_amount_written_out() -> None:
    root = drawn(chart(ChartKind.BARS, (283.0, None, 0.0), labels=("QUEUE_LIMIT", "DOMAIN_BUSY", "OTHER")))
    texts = ["".join(text.itertext()) for text in root.iter("text")]
    assert texts == ["QUEUE_LIMIT", "283", "DOMAIN_BUSY", "not read", "OTHER", "0"]


def test_series_differ_by_pattern_or_dash_as_well_as_colour() -> None:
    stacked = drawn(chart(ChartKind.STACKED, *((1.0,) * 4,) * 3))
    tiles = [ET.tostring(tile[1]) for tile in stacked.iter("pattern") if len(tile) == 2]
    assert len(set(tiles)) == 3
    lines = drawn(chart(ChartKind.LINES, *((1.0,) * 4,) * 3))
    dashes = [path.get("stroke-dasharray") for path in lines.iter("path") if path.get("stroke-dasharray") is not None]
    assert len(set(dashes)) == 3


def test_the_picture_has_a_title_a_description_and_a_label() -> None:
    root = drawn(chart(ChartKind.STACKED, (1.0,) * 4))
    assert root.get("role") == "img"
    assert root.get("aria-label") == "Title. Words."
    assert [root.findtext("title"), root.findtext("desc")] == ["Title", "Words."]


@pytest.mark.parametrize("kind", list(ChartKind))
def test_no_numbers_and_no_labels_still_draw(kind: ChartKind) -> None:
    drawn(chart(kind, labels=()))
    drawn(chart(kind, (), labels=()))
    drawn(chart(kind, (None,) * 4))


def test_two_charts_of_a_document_share_no_ids() -> None:
    made = chart(ChartKind.STACKED, (1.0,) * 4)
    ids = [re.findall(r'id="([^"]+)"', picture(made, ident=ident, zone="UTC").svg) for ident in ("a", "b")]
    assert not set(ids[0]) & set(ids[1])


def test_a_day_is_labelled_by_hours_of_its_zone_and_a_week_by_days() -> None:
    day = drawn(chart(ChartKind.STACKED, (1.0,) * 4))
    assert "02:00" in ["".join(text.itertext()) for text in day.iter("text")]
    berlin = ET.fromstring(picture(chart(ChartKind.LINES, (1.0,) * 4), ident="t", zone="Europe/Berlin").svg)
    assert "03:00" in ["".join(text.itertext()) for text in berlin.iter("text")]
    days = tuple(f"2026-11-{day:02d}T00:00:00+00:00" for day in range(1, 8))
    week = drawn(chart(ChartKind.STACKED, (1.0,) * 7, labels=days))
    assert "1 Nov" in ["".join(text.itertext()) for text in week.iter("text")]


@given(st.floats(min_value=0, max_value=1e9, allow_nan=False))
def test_a_scale_begins_at_zero_holds_the_value_and_has_few_even_steps(highest: float) -> None:
    steps = scale(highest)
    assert steps[0] == 0
    assert steps[-1] >= highest * (1 - 1e-6)
    assert 2 <= len(steps) <= 5
    assert steps[-1] <= max(highest * 2.6, 1.0)
