"""One child process of the supervisor: its own process group, its log lines prefixed, its end counted.

Standard library only. Relies on Linux for the signal at the parent's death; elsewhere a killed supervisor leaves its
children to be stopped by hand.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO

PR_SET_PDEATHSIG = 1
KEPT_LINES = 20
LONGEST_PAUSE_SECONDS = 30.0
DEATHS_ALLOWED = 5
DEATH_WINDOW_SECONDS = 60.0

_print_lock = threading.Lock()


def say(line: str, stream: IO[str] | None = None) -> None:
    """Print one line as a whole; a terminal that is gone is no reason to stop."""
    with _print_lock, contextlib.suppress(BrokenPipeError):
        print(line, file=stream or sys.stderr, flush=True)


class Child:
    """A process that is started, watched, started again after a pause, and stopped with its whole group."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        handles: Sequence[int] = (),
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self.command = command
        self.environment = environment
        self.handles = handles
        self.on_line = on_line
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.deaths: deque[float] = deque(maxlen=DEATHS_ALLOWED)
        self.pause_seconds = 1.0
        self.started_at = 0.0
        self.start_again_at: float | None = None
        self.stopping = False
        self.process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        """Start the process through this module, which ties its life to the parent's (see `enter`)."""
        self.start_again_at = None
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(os.getpid()), *self.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=dict(self.environment),
            pass_fds=tuple(self.handles),
            process_group=0,
        )
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._take(line.rstrip("\n"))

    def _take(self, text: str) -> None:
        self.lines.append(text)
        if self.stopping:
            return  # what a worker says to a Ctrl-C in its own terminal would mislead here
        if self.on_line is None:
            say(f"{self.name} | {text}")
        else:
            self.on_line(text)

    def ended(self) -> int | None:
        """Return the exit code once the process has ended and its last lines are read, else None."""
        if self.process is None or self.process.poll() is None:
            return None
        if self._reader is not None:
            self._reader.join(timeout=1)
        return self.process.returncode

    def note_death(self, now: float) -> bool:
        """Plan the next start; False when it has died too often for another one."""
        self.kill_group()
        self.process = None
        if now - self.started_at > DEATH_WINDOW_SECONDS:
            self.pause_seconds = 1.0
        self.deaths.append(now)
        if len(self.deaths) == DEATHS_ALLOWED and now - self.deaths[0] <= DEATH_WINDOW_SECONDS:
            return False
        self.start_again_at = now + self.pause_seconds
        self.pause_seconds = min(2 * self.pause_seconds, LONGEST_PAUSE_SECONDS)
        return True

    def ask_to_stop(self) -> None:
        """Ask the process itself to end in good order; it takes its own children along."""
        self.stopping = True
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()

    def kill_group(self) -> None:
        """Kill whatever is left of the group, also where its leader has already ended."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


def enter(parent: int, command: Sequence[str]) -> None:
    """Become the command, with SIGTERM promised for the moment the parent dies.

    This runs in the child, not between fork and exec, so that the parent may have threads. A parent that died before
    the promise was made is seen by the second look at the parent's id.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            return
    os.execvp(command[0], list(command))


if __name__ == "__main__":
    enter(int(sys.argv[1]), sys.argv[2:])
