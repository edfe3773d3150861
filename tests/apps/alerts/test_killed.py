"""Real processes that are killed while they look, and several that look at once: each cause is told once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
NOTHING = {"alerts": [], "gangs": 0, "told": []}


@pytest.fixture(scope="module")
def happened(tmp_path_factory: pytest.TempPathFactory, project_root: Path) -> dict[str, Any]:
    """Return what the run of ``killed`` saw."""
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "gangdash.settings.embedded",
        "GANGDASH_STATE_DIR": str(tmp_path_factory.mktemp("state")),
        "PYTHONPATH": str(project_root),
    }
    command = [sys.executable, "-m", "tests.apps.alerts.killed"]
    done = subprocess.run(
        command, env=environment, cwd=project_root, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_worker_that_dies_at_any_step_leaves_nothing_half_done(happened: dict[str, Any]) -> None:
    assert len(happened["deaths"]) == 11
    for step, found in happened["deaths"].items():
        assert found.pop("signal") == 9, step
        assert found == NOTHING, step


def test_of_four_that_look_at_once_one_tells(happened: dict[str, Any]) -> None:
    ended, found = happened["together"]
    assert ended == [0, 0, 0, 0]
    assert found == {"alerts": [["firing", 1]], "gangs": 1, "told": ["alert"]}


def test_of_four_that_see_the_end_at_once_one_tells(happened: dict[str, Any]) -> None:
    ended, found = happened["gone"]
    assert ended == [0, 0, 0, 0]
    assert found == {"alerts": [["resolved", 1]], "gangs": 1, "told": ["alert", "resolved"]}
    assert happened["end"] == found
