"""Every recorded scene gets the verdict, the code and the facts that its report was about."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest

from apps.diagnosis.management.commands.scenes import Expected, judge
from gangdash.documents import Diagnosis
from gangdash.replay import replay
from gangdash.snapshot.archive import load_snapshot

FOLDER = Path(__file__).parent
EXPECTED = sorted((FOLDER / "expected").glob("*.json"))


@cache
def answer(scene: str) -> Diagnosis:
    return replay(load_snapshot(FOLDER / f"{scene}.json.gz"))


@pytest.mark.parametrize("file", EXPECTED, ids=lambda file: file.stem)
def test_scene_is_explained_as_its_report_was(file: Path) -> None:
    expected = msgspec.json.decode(file.read_bytes(), type=Expected)
    outcome = judge(expected, answer(file.stem.split("@", 1)[0]).explanation(expected.gang))
    assert outcome.is_right, outcome.line


def test_no_scene_has_an_oddity_of_our_making() -> None:
    scenes = sorted({file.stem.split("@", 1)[0] for file in EXPECTED})
    assert {scene: answer(scene).oddities for scene in scenes if answer(scene).oddities} == {}


def test_every_explanation_of_every_scene_stays_within_its_bounds() -> None:
    for file in EXPECTED:
        for entry in answer(file.stem.split("@", 1)[0]).explanations:
            assert entry.code != "ENGINE_FAULT", entry.gang
            assert len(entry.sentence) <= 240
            assert len(entry.also) <= 4
            assert all(other.code != entry.code for other in entry.also)
