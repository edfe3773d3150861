"""Builds `.venv` from the hash-locked requirements and starts the same command again inside it.

Standard library only, as nothing else is there yet. The environment counts as built when its stamp equals the
fingerprint of locks and interpreter; the stamp is written last, so an interrupted install is built anew at the next
start. It is built in place, because scripts in an environment carry its absolute path.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import venv
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 11)
SWITCH_OFF = "GANGDASH_NO_BOOTSTRAP"
RUNTIME_LOCK = "requirements.lock"
DEV_LOCK = "requirements-dev.lock"
INSTALL_OPTIONS = ("--require-hashes", "--only-binary", ":all:")
LAST_LINES = 12


class BootstrapError(Exception):
    """The environment cannot be built; the text says why in words for the user."""


@dataclass(frozen=True)
class Layout:
    """The files of one checkout that the environment depends on."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def stamp(self) -> Path:
        return self.folder / "gangdash-stamp"

    @property
    def building(self) -> Path:
        """The mark of an environment of ours that is not finished."""
        return self.folder / "gangdash-building"

    def fingerprint(self, lock: str) -> str:
        """Return what the stamp must say: a development environment also holds the runtime lock's packages."""
        digest = hashlib.sha256(f"{sys.implementation.cache_tag} {platform.machine()}".encode())
        for name in (RUNTIME_LOCK, DEV_LOCK) if lock == DEV_LOCK else (RUNTIME_LOCK,):
            digest.update((self.root / name).read_bytes())
        return f"{lock} {digest.hexdigest()}"

    def holds(self, lock: str) -> bool:
        """Tell whether the environment is complete and satisfies this lock."""
        if not self.python.exists() or not self.stamp.exists():
            return False
        wanted = {self.fingerprint(lock), self.fingerprint(DEV_LOCK)}
        return self.stamp.read_text(encoding="ascii").strip() in wanted


def ensure(command: str, *, root: Path = ROOT) -> None:
    """Return inside the right environment, or replace this process by one that is."""
    if os.environ.get(SWITCH_OFF) == "1" or Path(sys.prefix).resolve() == (root / ".venv").resolve():
        return
    layout = Layout(root)
    try:
        build(layout, DEV_LOCK if command == "test" else RUNTIME_LOCK)
    except BootstrapError as error:
        sys.exit(_fail(command, str(error)))
    except KeyboardInterrupt:
        sys.exit(_fail(command, "interrupted; the next start builds the environment anew"))
    os.execv(layout.python, [str(layout.python), *sys.orig_argv[1:]])


def build(layout: Layout, lock: str) -> None:
    """Make the environment hold this lock's packages; return at once where it already does."""
    if layout.holds(lock):
        return
    if sys.version_info < OLDEST_PYTHON:
        raise BootstrapError(f"Python 3.11 or newer is needed, this is {platform.python_version()} ({sys.executable})")
    with _one_builder(layout.root):
        if layout.holds(lock):
            return
        try:
            _build_locked(layout, lock)
        except OSError as error:
            raise BootstrapError(f"cannot build {layout.folder}: {error.strerror or error}") from error


def _build_locked(layout: Layout, lock: str) -> None:
    # A complete runtime environment is only added to: a server may be running in it.
    if layout.holds(RUNTIME_LOCK):
        layout.stamp.unlink()
        layout.building.touch()
    else:
        _start_anew(layout)
    _install(layout, lock)
    layout.building.unlink()
    unfinished = layout.stamp.with_suffix(".new")
    unfinished.write_text(layout.fingerprint(lock) + "\n", encoding="ascii")
    unfinished.replace(layout.stamp)
    _say("environment ready")


def _start_anew(layout: Layout) -> None:
    folder = layout.folder
    if folder.exists():
        known = (folder / "pyvenv.cfg").exists() or layout.building.exists() or not any(folder.iterdir())
        if not known:
            raise BootstrapError(f"{folder} is in the way and is not a Python environment; move it away")
        _say("replacing .venv, which is unfinished or made from other locks")
        shutil.rmtree(folder)
    folder.mkdir()
    layout.building.touch()
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)


def _install(layout: Layout, lock: str) -> None:
    """Install with uv where it is on the PATH, else with pip; pip also gets a try where uv fails."""
    total = _count_packages(layout.root / lock)
    arguments = [*INSTALL_OPTIONS, "-r", str(layout.root / lock)]
    uv = shutil.which("uv")
    if uv:
        _say(f"building .venv from {lock}: {total} packages, with uv")
        command = [uv, "pip", "install", "--python", str(layout.python), *arguments]
        if _run(command, total) is None:
            return
        _say("uv did not succeed, trying pip")
    pip = _find_pip(layout)
    _say(f"building .venv from {lock}: {total} packages, with pip; once, about half a minute")
    options = ["--no-compile", "--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    failure = _run([*pip, "install", *options, *arguments], total)
    if failure is not None:
        raise BootstrapError(f"the packages of {lock} could not be installed:\n{failure}")


def _find_pip(layout: Layout) -> list[str]:
    """Return the command of a pip that installs into the environment.

    Distributions may split ensurepip from Python; a pip outside can install into an environment that has none.
    """
    if importlib.util.find_spec("ensurepip") is not None:
        ensure_pip = [str(layout.python), "-m", "ensurepip", "--default-pip"]
        if subprocess.run(ensure_pip, capture_output=True, check=False, close_fds=False).returncode == 0:
            return [str(layout.python), "-m", "pip"]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--python", str(layout.python)]
    outside = shutil.which("pip3") or shutil.which("pip")
    if outside:
        return [outside, "--python", str(layout.python)]
    raise BootstrapError("neither pip nor ensurepip is there; install the package python3-venv, then start again")


def _run(command: list[str], total: int) -> str | None:
    """Run an installer, show how far it is, and return its last lines where it failed."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PIP_USER", "PIP_TARGET")}
    last: deque[str] = deque(maxlen=LAST_LINES)
    show = _progress(total)
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        close_fds=False,
    ) as process:
        for line in process.stdout or ():
            last.append(line.rstrip())
            show(line)
    return None if process.returncode == 0 else "\n".join(f"  {line}" for line in last)


def _progress(total: int) -> Callable[[str], None]:
    """Return a function that turns an installer's lines into a few lines of progress."""
    seen = 0
    step = max(1, total // 5)

    def show(line: str) -> None:
        nonlocal seen
        words = line.split()
        if words[:1] == ["Collecting"]:
            seen += 1
            if seen % step == 0:
                _say(f"  fetched {min(seen, total)} of {total}")
        elif words[:1] in (["Resolved"], ["Prepared"], ["Installed"]):
            _say(f"  {line.strip()}")
        elif words[:3] == ["Installing", "collected", "packages:"]:
            _say("  installing")

    return show


def _count_packages(lock: Path) -> int:
    with lock.open(encoding="utf-8") as lines:
        return sum(line[0].isalnum() for line in lines)


@contextlib.contextmanager
def _one_builder(root: Path) -> Iterator[None]:
    """Let one process build at a time; the checkout's folder is the lock, so no file is left behind."""
    handle = os.open(root, os.O_RDONLY)
    # Installers inherit the handle: where this process is killed, the lock stays until they are gone too.
    os.set_inheritable(handle, True)
    try:
        # Some network file systems cannot lock; there the stamp alone has to do.
        with contextlib.suppress(OSError):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _say("another start is building .venv, waiting for it")
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _say(text: str) -> None:
    print(f"gangdash: {text}", file=sys.stderr, flush=True)


def _fail(command: str, text: str) -> int:
    """Print the error; `diagnose` keeps 1 and 2 for its answers."""
    _say(text)
    return 255 if command == "diagnose" else 1
