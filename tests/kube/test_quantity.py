"""Quantities are exact whatever their form; text that is none says so."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangdash.kube.quantity import QuantityError, milli_value, seconds, value

_SUFFIXES = {
    "": Fraction(1), "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "k": Fraction(10**3),
    "M": Fraction(10**6), "G": Fraction(10**9), "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30),
    "e3": Fraction(1000), "E-2": Fraction(1, 100),
}  # fmt: skip


@pytest.mark.parametrize(
    "text,whole,milli",
    [
        ("0", 0, 0),
        ("1", 1, 1000),
        ("1500m", 2, 1500),
        ("0.1", 1, 100),
        (".5", 1, 500),
        ("5.", 5, 5000),
        ("100n", 1, 1),
        ("1001u", 1, 2),
        ("16384Mi", 17179869184, 17179869184000),
        ("1.5Gi", 1610612736, 1610612736000),
        ("2Ti", 2 * 2**40, 2 * 2**40 * 1000),
        ("1e3", 1000, 1000000),
        ("1E", 10**18, 2**63 - 1),
        ("1E3", 1000, 1000000),
        ("12e-1", 2, 1200),
        ("-1", -1, -1000),
        ("-1500m", -2, -1500),
        ("+4", 4, 4000),
        ("99Ei", 2**63 - 1, 2**63 - 1),
        ("1e999999999", 2**63 - 1, 2**63 - 1),
        ("1e-999999999", 1, 1),
        (8, 8, 8000),
        (0.5, 1, 500),
    ],
)
def test_quantity_is_rounded_away_from_zero(text: str | float, whole: int, milli: int) -> None:
    assert (value(text), milli_value(text)) == (whole, milli)


@pytest.mark.parametrize(
    "text", ["", "Gi", "1 Gi", "1gi", "abc", "1Zi", "--1", "1e", "0x10", "\uff11", "1" * 100, "NaN", "inf"]
)
def test_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="not a quantity"):
        value(text)


@given(st.integers(0, 10**6), st.text("0123456789", max_size=6), st.sampled_from(sorted(_SUFFIXES)))
def test_quantity_agrees_with_fractions(whole: int, fraction: str, suffix: str) -> None:
    exact = Fraction(f"{whole}.{fraction or '0'}") * _SUFFIXES[suffix]

    assert value(f"{whole}.{fraction}{suffix}") == min(math.ceil(exact), 2**63 - 1)
    assert milli_value(f"{whole}.{fraction}{suffix}") == min(math.ceil(exact * 1000), 2**63 - 1)


@given(st.text(max_size=80))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    with contextlib.suppress(QuantityError):
        assert isinstance(value(text), int)


@pytest.mark.parametrize(
    "text,expected", [("0", 0), ("1s", 1), ("-1s", -1), ("1h30m", 5400), ("300ms", 0.3), ("2m0s", 120), ("1.5h", 5400)]
)
def test_duration_is_seconds(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "1", "1d", "s", "1 s", "1s2", "9" * 70 + "s"])
def test_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="not a duration"):
        seconds(text)
