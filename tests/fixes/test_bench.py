"""The bench tells what explaining costs, gang by gang, and how many gangs got an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.diagnosis.management.commands.bench import Explained, measure

SCENE = Path(__file__).parent.parent / "scenes" / "FC-022.json.gz"


def test_explaining_is_measured_for_every_waiting_gang() -> None:
    done = measure(SCENE, explain=True)
    assert done.explained is not None
    assert len(done.explained.by_gang) == done.waiting > 0
    assert sum(done.explained.by_gang) == pytest.approx(done.explained.causes + done.explained.fixes, abs=0.5)
    assert 0 <= done.explained.share <= 1


def test_without_being_asked_nothing_is_explained() -> None:
    assert measure(SCENE, explain=False).explained is None


@pytest.mark.parametrize("part, seconds", [(0.5, 2.0), (0.95, 4.0), (1.0, 4.0), (0.25, 1.0)])
def test_a_part_of_the_gangs_stays_below(part: float, seconds: float) -> None:
    assert Explained(0, 0, (4.0, 1.0, 3.0, 2.0), 0, 3).seconds_of(part) == seconds


def test_the_share_of_answers_counts_all_waiting_gangs() -> None:
    assert Explained(0, 0, (1.0, 1.0, 1.0, 1.0), 0, 3).share == 0.75
    assert Explained(0, 0, (), 0, 0).share == 1.0
