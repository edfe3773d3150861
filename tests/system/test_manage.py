"""The entry point: which commands it names, and how a wrong configuration ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(project_root: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GANGDASH_", "DJANGO_"))}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=project_root,
        env={**clean, "GANGDASH_NO_BOOTSTRAP": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_names_the_commands_that_are_not_djangos(project_root: Path) -> None:
    said = run(project_root, "help").stdout
    assert "up: start everything on this machine" in said
    assert "test: run the whole test suite" in said
    assert "diagnose" in said


@pytest.mark.parametrize("command, code", [("check", 1), ("diagnose", 255)])
def test_wrong_settings_end_without_a_traceback(project_root: Path, command: str, code: int) -> None:
    ended = run(project_root, command, GANGDASH_POLL_SECONDS="soon", GANGDASH_DEMO="perhaps")
    assert ended.returncode == code
    assert "2 setting(s) are wrong" in ended.stderr
    assert "GANGDASH_POLL_SECONDS: is not a number. Use a whole number from 2 to 3600." in ended.stderr
    assert "GANGDASH_DEMO: is not a truth value. Use true or false." in ended.stderr
    assert "Traceback" not in ended.stderr


def test_tests_take_arguments_and_give_pytests_exit_code(project_root: Path) -> None:
    ended = run(project_root, "test", "--collect-only", "-q", "no/such/test.py")
    assert ended.returncode == 4
    assert "no tests" in ended.stdout
