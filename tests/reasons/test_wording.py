"""Numbers, plurals, spans and names come out as a person would write them, and no name can do harm."""

from __future__ import annotations

import pytest

from gangdash.engine.identifiers import Unit
from gangdash.engine.verdict import Amount
from gangdash.reasons.wording import clean, clip, compose, duration, listed, number


@pytest.mark.parametrize(
    "template, facts, told",
    [
        ("{n:pod|pods}", {"n": 1}, "1 pod"),
        ("{n:pod|pods}", {"n": 0}, "0 pods"),
        ("{n:~is|are}", {"n": 1}, "is"),
        ("{n:~is|are}", {"n": 2}, "are"),
        ("{x}", {"x": Amount(1, Unit.GPU)}, "1 GPU"),
        ("{x}", {"x": Amount(0.5, Unit.GPU)}, "0.5 GPUs"),
        ("{x:bare}", {"x": Amount(16, Unit.GPU)}, "16"),
        ("{x}", {"x": Amount(2500, Unit.MILLICORES)}, "2.5 CPUs"),
        ("{x:bare}", {"x": Amount(2500, Unit.MILLICORES)}, "2.5"),
        ("{x}", {"x": Amount(64 * 1024**3, Unit.BYTES)}, "64 GiB memory"),
        ("{x}", {"x": Amount(3, Unit.COUNT, "rdma/ib")}, "3 rdma/ib"),
        ("{x}", {"x": Amount(8000, Unit.GPU_MEMORY)}, "8000 MiB"),
        ("{xs:list}", {"xs": ("a",)}, "a"),
        ("{xs:list}", {"xs": ("a", "b")}, "a and b"),
        ("{xs:list}", {"xs": ("a", "b", "c", "d", "e")}, "a, b, c and 2 more"),
        ("{xs:list}", {"xs": ()}, "none"),
        ("{t:time}", {"t": 1_800_000_000}, "2027-01-15 08:00:00 UTC"),
        ("{x}", {"x": 0.30000000000000004}, "0.3"),
    ],
)
def test_compose_writes_numbers_with_their_words(template: str, facts: dict[str, object], told: str) -> None:
    assert compose(template, facts) == told


@pytest.mark.parametrize(
    "seconds, told",
    [(0, "0 s"), (45, "45 s"), (119.6, "2 min"), (750, "12 min"), (11_100, "3 h 5 min"), (187_200, "2 d 4 h")],
)
def test_duration_has_two_units_at_most(seconds: float, told: str) -> None:
    assert duration(seconds) == told


def test_clip_keeps_beginning_and_end() -> None:
    told = clip("x" * 100 + "-replica-7", 30)
    assert len(told) == 30
    assert told.startswith("xxx")
    assert told.endswith("replica-7")


def test_clean_removes_what_could_move_a_cursor() -> None:
    assert clean("evil\x1b[2J\r\nname\u202e") == "evil [2J name"


def test_compose_cuts_a_long_sentence_at_a_word() -> None:
    told = compose("{x} " * 60, {"x": "word-of-ten"})
    assert len(told) <= 240
    assert told.endswith("word-of-ten…")


def test_compose_never_formats_text_from_the_cluster() -> None:
    assert compose("{name}", {"name": "{secret}"}) == "{secret}"


def test_number_and_listed_are_plain() -> None:
    assert number(16.0) == "16"
    assert number(2.25) == "2.25"
    assert listed(("b", "a")) == "b and a"
