"""`manage.py up`: the whole product on one machine as one process tree.

Standard library only, so the parent stays small and has nothing to break. It locks the state directory, prepares the
database, starts web, two workers and, without a cluster, the demo cluster, restarts what dies and stops everything
together. Log lines go to standard error; standard output carries the one line with address and login.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import http.client
import json
import os
import secrets
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gangdash.processes import DEATHS_ALLOWED, Child, say

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
DEFAULT_PORT = 8000
GRACE_SECONDS = 10.0
# A terminal or a wrapper may deliver one request twice; only a later signal is an impatient user.
SAME_REQUEST_SECONDS = 1.0
START_SECONDS = 120.0
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class UpError(Exception):
    """The product cannot start or go on; the text is the one line that the user sees."""


class StopRequestedError(Exception):
    """Someone asked for the end while it was still starting."""


@dataclass(frozen=True)
class Options:
    """What the command line asked for."""

    kubeconfig: Path | None
    context: str
    port: int
    state_dir: Path
    demo: bool


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Read the command line; what it leaves out comes from the environment."""
    parser = argparse.ArgumentParser(prog="manage.py up", description="Start gangdash on this machine.")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--kubeconfig", type=Path, metavar="FILE", help="read the cluster that this file names")
    source.add_argument("--demo", action="store_true", help="show the demo cluster, whatever else is configured")
    parser.add_argument("--context", default="", help="context in the kubeconfig; default: its current one")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="port on 127.0.0.1, 0 for a free one")
    parser.add_argument("--state-dir", type=Path, metavar="DIR", help="database, queue and key; default: .state")
    found = parser.parse_args(arguments)
    if not 0 <= found.port <= 65535:
        parser.error("--port must be from 0 to 65535")
    kubeconfig = found.kubeconfig or Path(environment.get("GANGDASH_KUBECONFIG", ""))
    state_dir = found.state_dir or Path(environment.get("GANGDASH_STATE_DIR") or ROOT / ".state")
    given = bool(found.kubeconfig or environment.get("GANGDASH_KUBECONFIG") or environment.get("GANGDASH_CLUSTERS_DIR"))
    demo = found.demo or not (given or SERVICE_ACCOUNT.exists())
    return Options(
        kubeconfig=None if demo or kubeconfig == Path() else kubeconfig.expanduser().absolute(),
        context=found.context or environment.get("GANGDASH_KUBE_CONTEXT", ""),
        port=found.port,
        state_dir=state_dir.expanduser().absolute(),
        demo=demo,
    )


def lock_state(folder: Path) -> int:
    """Create the state directory, lock it, and return the handle that keeps the lock."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UpError(f"cannot write to {folder} ({error.strerror}); choose another folder with --state-dir") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(handle, 4096)
        os.close(handle)
        raise UpError(describe_holder(folder, holder)) from None
    os.truncate(handle, 0)
    return handle


def write_holder(handle: int, port: int) -> None:
    """Write who holds the lock, for the start that comes too late."""
    mine = {"pid": os.getpid(), "port": port, "since": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ")}
    os.pwrite(handle, json.dumps(mine).encode(), 0)


def describe_holder(folder: Path, content: bytes) -> str:
    """Say who holds the state directory and how to get it back."""
    try:
        holder = json.loads(content)
        pid, port, since = int(holder["pid"]), int(holder["port"]), str(holder["since"])
    except (ValueError, KeyError, TypeError):
        return f"{folder} is in use by another gangdash that has just started"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return f"{folder} is in use by what process {pid} left behind; it is stopping, try again in a few seconds"
    except PermissionError:
        pass
    return (
        f"{folder} is in use by process {pid}, port {port}, since {since}; stop it or choose another with --state-dir"
    )


def open_port(port: int) -> socket.socket:
    """Return the listening socket; it outlives restarts of the web process, so requests wait instead of failing."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise UpError(f"port {port} cannot be used ({error.strerror}); choose another with --port") from error
    return listener


def write_secret_key(path: Path) -> None:
    """Write a random key that only this user can read, unless one is there."""
    with contextlib.suppress(FileExistsError):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(50) + "\n")


def check_kubeconfig(path: Path) -> None:
    """Refuse a file that cannot be read at all; its content is checked by the system checks."""
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise UpError(f"kubeconfig {path} cannot be read ({error.strerror})") from error


class Supervisor:
    """The process tree from the first child to the last."""

    def __init__(self, options: Options, environment: Mapping[str, str]) -> None:
        self.options = options
        self.lock = lock_state(options.state_dir)
        self.listener = open_port(options.port)
        self.port = int(self.listener.getsockname()[1])
        write_holder(self.lock, self.port)
        write_secret_key(options.state_dir / "secret-key")
        # Whoever can write into the queue's folders can run tasks.
        for name in ("broker", "broker/queue", "broker/control"):
            (options.state_dir / name).mkdir(mode=0o700, exist_ok=True)
        self.demo_kubeconfig = options.state_dir / "demo" / "demo.yaml"
        self.environment = self._child_environment(environment)
        self.children: list[Child] = []
        self.signals = _SignalPipe()

    def _child_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        options = self.options
        mine = {
            "DJANGO_SETTINGS_MODULE": "gangdash.settings.embedded",
            "GANGDASH_STATE_DIR": str(options.state_dir),
            "GANGDASH_BASE_URL": environment.get("GANGDASH_BASE_URL") or f"http://{HOST}:{self.port}",
            "GANGDASH_LOG_LEVEL": environment.get("GANGDASH_LOG_LEVEL") or "WARNING",
            "GANGDASH_DEMO": "true" if options.demo else "false",
            "PYTHONUNBUFFERED": "1",
            # A worker that is asked to stop gives its task a few seconds, not the task's own limit.
            "REMAP_SIGTERM": "SIGQUIT",
            # Who starts this as root has been told so by everything else on the machine.
            "PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges",
        }
        if options.demo:
            mine |= {"GANGDASH_KUBECONFIG": str(self.demo_kubeconfig), "GANGDASH_CLUSTERS_DIR": ""}
            mine |= {"GANGDASH_KUBE_CONTEXT": ""}
        elif options.kubeconfig is not None:
            mine |= {"GANGDASH_KUBECONFIG": str(options.kubeconfig), "GANGDASH_KUBE_CONTEXT": options.context}
        return {**environment, **mine}

    def run(self) -> int:
        """Start, serve until asked to stop or until something dies too often, and return the exit code."""
        try:
            login = self._start_web()
            self._wait(self._page_answers, "no page answers")
            say(self._ready_line(login), sys.stdout)
            self._start_workers()
            self._watch(until=None)
        except StopRequestedError:
            return 0
        except UpError as error:
            say(f"gangdash: {error}")
            return 1
        finally:
            self._stop()
        return 0

    # --- starting ------------------------------------------------------------------------------------------------

    def _start_web(self) -> str:
        """Start what the first page needs; return the login part of the ready line."""
        if self.options.demo:
            self._start_demo()
        login = self._prepare()
        command = [sys.executable, "-m", "gunicorn", *self._web_options()]
        self._add("web", command, handles=[self.listener.fileno()])
        return login

    def _start_workers(self) -> None:
        """Start two workers, as an analysis may take minutes and must not hold up the next reading.

        They come after the first page, which would be twice as slow beside them on a small machine.
        """
        if self.options.demo:
            self._wait(self.demo_kubeconfig.exists, "the demo cluster does not start")
        worker = [sys.executable, "-m", "celery", "--quiet", "-A", "gangdash.celery", "worker", "--loglevel", "WARNING"]
        worker += ["-P", "prefork", "--without-gossip", "--without-mingle", "--without-heartbeat"]
        beat = ["-B", "-s", str(self.options.state_dir / "beat-schedule")]
        self._add("collect", [*worker, *beat, "-Q", "collect", "-c", "2", "--hostname", "collect@gangdash"])
        self._add("analyse", [*worker, "-Q", "analyse", "-c", "1", "--hostname", "analyse@gangdash"])

    def _web_options(self) -> list[str]:
        bind = f"fd://{self.listener.fileno()}"
        options = ["gangdash.wsgi:application", "--bind", bind, "--worker-class", "gthread", "--workers", "1"]
        options += ["--threads", "4", "--graceful-timeout", "5", "--no-control-socket", "--log-level", "warning"]
        return options

    def _add(self, name: str, command: list[str], *, handles: Sequence[int] = ()) -> None:
        # The lock travels along: while any process of the tree is alive, the state stays taken.
        child = Child(name, command, environment=self.environment, handles=[self.lock, *handles])
        self.children.append(child)
        child.start()

    def _start_demo(self) -> None:
        self.demo_kubeconfig.parent.mkdir(mode=0o700, exist_ok=True)
        self.demo_kubeconfig.unlink(missing_ok=True)
        command = [sys.executable, "-m", "gangdash.simulator", "--port", "0"]
        self._add("demo", [*command, "--kubeconfig-out", str(self.demo_kubeconfig)])

    def _prepare(self) -> str:
        """Check, migrate and make the first user in one short process; return the login part of the ready line."""
        said: list[str] = []
        environment = dict(self.environment)
        if self.options.demo:
            # The demo cluster writes its kubeconfig while this runs.
            environment["GANGDASH_KUBECONFIG"] = ""
        command = [sys.executable, "-m", "gangdash.prepare"]
        child = Child("prepare", command, environment=environment, handles=[self.lock], on_line=said.append)
        child.start()
        try:
            self._watch(until=lambda: child.ended() is not None)
        finally:
            child.kill_group()
        if child.ended() != 0 or not said:
            raise UpError("\ngangdash: ".join(said) or "the database could not be prepared")
        return describe_login(said[-1])

    def _wait(self, condition: Callable[[], bool], complaint: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        self._watch(until=lambda: condition() or time.monotonic() > deadline)
        if time.monotonic() > deadline:
            raise UpError(f"{complaint} in {START_SECONDS:.0f} s; the lines above say why")

    def _page_answers(self) -> bool:
        """Tell whether the first page is there; an error page will not get better by asking again."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=5)
        try:
            connection.request("GET", "/")
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if status >= 400:
            raise UpError(f"the first page answers with status {status}; the lines above say why")
        return True

    def _ready_line(self, login: str) -> str:
        options = self.options
        shown = "the demo cluster" if options.demo else str(options.kubeconfig or "the configured clusters")
        if options.context:
            shown += f" (context {options.context})"
        return f"gangdash shows {shown} at http://{HOST}:{self.port}/  {login}  Stop with Ctrl-C."

    # --- watching ------------------------------------------------------------------------------------------------

    def _watch(self, *, until: Callable[[], bool] | None) -> None:
        """Restart what dies until the condition holds; without a condition, until a stop is asked for."""
        while until is None or not until():
            if self.signals.wait(self._seconds_to_next_start(0.1 if until else 5.0)):
                raise StopRequestedError
            now = time.monotonic()
            for child in self.children:
                self._look_after(child, now)

    def _look_after(self, child: Child, now: float) -> None:
        code = child.ended()
        if code is not None:
            if not child.note_death(now):
                last = "\n".join(f"  {line}" for line in child.lines)
                raise UpError(f"{child.name} died {DEATHS_ALLOWED} times in a minute; its last lines:\n{last}")
            say(f"gangdash: {child.name} ended ({describe_exit(code)}), starting it again")
        elif child.start_again_at is not None and now >= child.start_again_at:
            child.start()

    def _seconds_to_next_start(self, longest: float) -> float:
        now = time.monotonic()
        due = [child.start_again_at - now for child in self.children if child.start_again_at is not None]
        return max(0.0, min([longest, *due]))

    # --- stopping ------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        """Stop all children together; a second signal, or the end of the grace, kills their groups."""
        if self.children:
            say("gangdash: stopping")
        for child in self.children:
            child.ask_to_stop()
        asked_at = time.monotonic()
        while any(child.process and child.ended() is None for child in self.children):
            again = self.signals.wait(0.1)
            waited = time.monotonic() - asked_at
            if waited > GRACE_SECONDS or (again and waited > SAME_REQUEST_SECONDS):
                break
        for child in self.children:
            child.kill_group()
            if child.process is not None:
                child.process.wait()
        self.listener.close()


class _SignalPipe:
    """Turns signals into bytes on a pipe, so that one wait serves deaths of children and requests to stop."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(writer, False)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue  # started with nohup: it is to outlive its terminal
            signal.signal(number, lambda _number, _frame: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def wait(self, seconds: float) -> bool:
        """Wait for any signal; True where it asks for a stop."""
        ready, _, _ = select.select([self._reader], [], [], seconds)
        received = os.read(self._reader, 512) if ready else b""
        return any(number in STOP_SIGNALS for number in received)


def describe_login(line: str) -> str:
    """Turn the answer of `ensure_admin` into words."""
    answer = json.loads(line)
    if answer["password"] is None:
        return f"Log in as {answer['username']}."
    return f"Log in as {answer['username']} with the one-time password {answer['password']}"


def describe_exit(code: int) -> str:
    """Name the signal or the exit code that ended a process."""
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def main(arguments: Sequence[str]) -> int:
    """Run `manage.py up`."""
    options = parse(arguments, os.environ)
    try:
        if options.kubeconfig is not None:
            check_kubeconfig(options.kubeconfig)
        supervisor = Supervisor(options, os.environ)
    except UpError as error:
        say(f"gangdash: {error}")
        return 1
    return supervisor.run()
