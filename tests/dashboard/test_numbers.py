from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.dashboard import names, numbers
from apps.dashboard.nodesets import fold


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (90, "1 min 30 s"),
        (47 * 60, "47 min"),
        (3 * 3600 + 12 * 60, "3 h 12 min"),
        (5 * 3600, "5 h"),
        (2 * 86400 + 19 * 3600 + 100, "2 d 19 h"),
        (-5, "0 s"),
    ],
)
def test_span_has_at_most_two_units(seconds: float, text: str) -> None:
    assert numbers.span(seconds).replace("\u00a0", " ") == text


@pytest.mark.parametrize("value, text", [(1204, "1,204"), (0.25, "0.25"), (16.0, "16"), (0, "0"), (-12, "\u221212")])
def test_number_is_separated_and_never_longer_than_it_needs(value: float, text: str) -> None:
    assert numbers.number(value) == text


@pytest.mark.parametrize("value, text", [(-12, "\u221212"), (28, "+28"), (0, "0"), (0.001, "0")])
def test_margin_is_signed_and_zero_is_bare(value: float, text: str) -> None:
    assert numbers.signed(value) == text


def test_amounts_are_written_in_the_unit_beside_them() -> None:
    assert numbers.amount(1_180_000, "millicores") == "1,180"
    assert numbers.amount(5760 * 1024**3, "bytes") == "5,760"
    assert numbers.amount("multimodal", "name") == "multimodal"
    assert numbers.signed(2016 * 1024**3, "bytes") == "+2,016"


def test_clock_says_the_day_only_where_it_is_not_today() -> None:
    now = datetime(2026, 11, 30, 8, 56, 21, tzinfo=UTC)
    assert numbers.clock(now - timedelta(minutes=5), now) == "08:51:21"
    assert numbers.clock(now - timedelta(hours=17), now) == "29 Nov 15:56"
    assert numbers.clock(datetime(2025, 1, 2, 3, 4, tzinfo=UTC), now) == "2 Jan 2025 03:04"


@pytest.mark.parametrize("text", ["", None, "yesterday", "2026-11-30T08:56:00"])
def test_a_text_that_is_no_moment_with_a_zone_is_none(text: str | None) -> None:
    assert numbers.parse_time(text) is None


def test_node_names_fold_to_what_can_be_read_back() -> None:
    assert fold(["a1-01", "a1-02", "a1-05", "a1-10"]) == "a1-[01-02,05,10]"
    assert fold(["node-11", "node-9", "node-10"]) == "node-[9-11]"
    assert fold(["a-1", "a-01"]) == "a-1, a-01"
    assert fold(["gpu", "b-7"]) == "gpu, b-7"
    assert fold([]) == ""


def test_names_made_by_controllers_are_shortened_and_others_are_not() -> None:
    made = "pg-rlhf-judge-p8z4-f223ddd8-fe19-4716-8b1f-0d2c7be8a1f4"
    assert names.short_name(made) == "rlhf-judge-p8z4"
    assert names.short_path(f"PodGroup/nlp/{made}") == "PodGroup/nlp/rlhf-judge-p8z4"
    assert names.short_name("pg-trainer") == "pg-trainer"
    assert names.level_word("topology.example.com/rack") == "rack"
    assert names.level_word("rack") == "rack"


@pytest.mark.parametrize(
    "found, text", [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c", "d", "e"], "a, b, c and 2 more")]
)
def test_lists_end_before_they_bore(found: list[str], text: str) -> None:
    assert names.listed(found) == text


def test_what_is_over_in_a_blink_took_some_time() -> None:
    start = datetime(2026, 11, 30, tzinfo=UTC)
    assert numbers.lasted(start, start + timedelta(milliseconds=300)).replace("\u00a0", " ") == "under 1 s"
    assert numbers.lasted(start, start + timedelta(seconds=2)).replace("\u00a0", " ") == "2 s"
