"""SIGKILL at every step of making reports, and several makers at once, on a real database file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.slow
ALL = {"states": ["done"] * 3, "whole": True, "told": 3}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "gangdash.settings.embedded",
        "GANGDASH_STATE_DIR": str(tmp_path_factory.mktemp("state")),
        "GANGDASH_LOG_LEVEL": "ERROR",
    }
    command = [sys.executable, "-m", "tests.apps.reports.killed"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=180)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_after_each_death_every_report_is_made_and_told_once(found: Any) -> None:
    assert len(found["deaths"]) == 9
    for step, death in found["deaths"].items():
        assert death["signal"] == signal.SIGKILL, step
        assert death["at death"]["whole"], step
        assert death["in the end"] == ALL, step


def test_content_and_messages_are_kept_together_or_not_at_all(found: Any) -> None:
    for step in ("made, not kept", "kept, nobody told", "told, not committed"):
        assert found["deaths"][step]["at death"] == {"states": ["waiting"] * 3, "whole": True, "told": 0}
    assert found["deaths"]["committed"]["at death"] == {
        "states": ["done", "waiting", "waiting"],
        "whole": True,
        "told": 1,
    }


def test_four_makers_at_once_make_each_report_once(found: Any) -> None:
    at_once = found["at once"]
    assert at_once["signals"] == [0, 0, 0, 0]
    assert at_once["attempts"] == [1, 1, 1]
    assert {name: at_once[name] for name in ALL} == ALL
