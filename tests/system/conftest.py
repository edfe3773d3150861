"""Processes that a test started, found by the state directory in their environment, so that none is left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

START_SECONDS = 150


def processes_of(state_dir: Path) -> list[int]:
    """Return the ids of all living processes that were started for this state directory."""
    wanted = f"GANGDASH_STATE_DIR={state_dir}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


class Installation:
    """One `manage.py up` in its own state directory."""

    def __init__(self, root: Path, state_dir: Path) -> None:
        self.root = root
        self.state_dir = state_dir
        self.log = state_dir.with_suffix(".log")
        self.process: subprocess.Popen[str] | None = None

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "manage.py", "up", "--state-dir", str(self.state_dir), "--port", "0", *arguments]

    def environment(self) -> dict[str, str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("GANGDASH_", "DJANGO_"))}
        return {**clean, "GANGDASH_NO_BOOTSTRAP": "1", "GANGDASH_POLL_SECONDS": "2"}

    def refused(self, *arguments: str) -> str:
        """Run a start that must fail at once with exit code 1; return what it says."""
        ended = subprocess.run(
            self.command(*arguments),
            cwd=self.root,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        assert ended.returncode == 1, ended.stderr
        assert ended.stdout == ""
        return ended.stderr

    def start(self, *arguments: str) -> str:
        """Start and return the ready line."""
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                self.command(*arguments),
                cwd=self.root,
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        line: str = self.process.stdout.readline()
        assert line, f"it ended with {self.process.wait()}:\n{self.log.read_text()}"
        return line

    def stop(self, number: signal.Signals) -> tuple[int, float]:
        """Signal the parent alone; return its exit code and the seconds it took."""
        assert self.process is not None
        asked = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(timeout=30)
        return code, time.monotonic() - asked

    def child(self, word: str) -> int | None:
        """Return the id of the direct child whose command line has this word, None while there is none."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for child in children:
            with contextlib.suppress(OSError):
                if word.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
        return None


def wait_for(condition: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
    """Wait until the condition holds, fail with the words where it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen in {seconds:.0f} s"
        time.sleep(0.1)


@pytest.fixture
def installation(project_root: Path, tmp_path: Path) -> Iterator[Installation]:
    installation = Installation(project_root, tmp_path / "state")
    yield installation
    if installation.process is not None:
        installation.process.kill()
        installation.process.wait()
        if installation.process.stdout is not None:
            installation.process.stdout.close()
    for process in processes_of(installation.state_dir):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
