"""SIGKILL at every step of sending, and several senders at once, on a real database file with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.apps.delivery.killed import ALERTS_AT_ONCE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "gangdash.settings.embedded",
        "GANGDASH_STATE_DIR": str(tmp_path_factory.mktemp("state")),
        "GANGDASH_WEBHOOK_PRIVATE_TARGETS": "1",
        "GANGDASH_LOG_LEVEL": "ERROR",
    }
    command = [sys.executable, "-m", "tests.apps.delivery.killed"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(run.stdout.splitlines()[-1])


def test_every_message_arrives_and_a_second_time_only_with_a_warning(found: Any) -> None:
    deaths = found["sending"]
    assert {death["signal"] for death in deaths.values()} == {signal.SIGKILL}
    assert {death["state"] for death in deaths.values()} == {"sent"}
    told = {step: [flag for _key, flag in death["received"]] for step, death in deaths.items()}
    assert told == {
        "before it is taken": [False],
        "taken": [True],
        "sent": [False, True],
        "about to record": [False, True],
        "half recorded": [False, True],
        "recorded": [False],
    }


def test_a_message_is_part_of_the_change_it_tells_of(found: Any) -> None:
    assert found["before commit"] == {"signal": signal.SIGKILL, "rows": 0}
    assert found["after commit"] == {"signal": signal.SIGKILL, "received": [["unasked", False]]}


def test_a_digest_is_made_whole_or_not_at_all(found: Any) -> None:
    assert found["folding"] == {"signal": signal.SIGKILL, "untouched": 4, "parts": [4]}


def test_four_senders_at_once_send_each_message_once(found: Any) -> None:
    at_once = found["at once"]
    assert at_once["signals"] == [0, 0, 0, 0]
    assert sorted(at_once["keys"]) == sorted(f"at once {at}" for at in range(ALERTS_AT_ONCE))
    assert at_once["due"] == 0
