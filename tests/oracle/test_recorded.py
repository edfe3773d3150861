"""The replay does what the real scheduler did, on the recorded cases packed here and on any folder of more."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gangdash.engine.cycle import run_cycle
from gangdash.snapshot.archive import load_bytes, load_snapshot, snapshot_of
from tests.oracle.agreement import COLUMNS, Agreement, compare

PACKED = Path(__file__).parent / "recorded.jsonl.gz"
AT_LEAST = {"verdict": 99.5, "placement": 98.0, "reasons": 99.0, "messages": 95.0, "fair share": 100.0}
ELSEWHERE = {"verdict": 97.0, "placement": 97.0, "reasons": 97.0, "messages": 95.0, "fair share": 100.0}
"""Other folders hold larger clusters, recordings that were cut short, and plugins that are not replayed."""
LARGEST = 1_000_000
"""Bytes of a file: clusters of a thousand nodes take minutes and belong to the bench."""


def _packed() -> Iterator[dict[str, Any]]:
    with gzip.open(PACKED, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _assert_agrees(agreement: Agreement, at_least: dict[str, float]) -> None:
    short = [column for column in COLUMNS if agreement.percent(column) < at_least[column]]
    assert not short, "\n".join([str(agreement), *agreement.differences[:20]])


@pytest.mark.oracle
def test_packed_cases_agree() -> None:
    agreement = Agreement()
    for case in _packed():
        snapshot = snapshot_of(load_bytes(json.dumps(case["snapshot"]).encode(), name=case["name"]))
        compare(case["name"], case["answer"], run_cycle(snapshot, snapshot.shards[0]), agreement)
    assert agreement.counted["verdict"] > 100
    _assert_agrees(agreement, AT_LEAST)


def _folders(root: Path) -> list[Path]:
    return sorted({path.parent for path in root.rglob("*.kai.json")})


@pytest.mark.oracle
@pytest.mark.slow
def test_every_folder_at_hand_agrees(oracle_dir: Path) -> None:
    folders = _folders(oracle_dir)
    assert folders, f"no recorded case below {oracle_dir}"
    for folder in folders:
        agreement = Agreement()
        for answer in sorted(folder.glob("*.kai.json")):
            file = answer.with_name(answer.name.replace(".kai.json", ".json"))
            if not file.exists() or file.stat().st_size > LARGEST:
                continue
            snapshot = load_snapshot(file)
            result = run_cycle(snapshot, snapshot.shards[0])
            compare(file.name, json.loads(answer.read_text())["cycle"], result, agreement)
        print(f"{folder.name}: {agreement}")
        _assert_agrees(agreement, ELSEWHERE)
