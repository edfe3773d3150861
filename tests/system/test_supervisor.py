"""`manage.py up`: one process tree that starts, says where it is, survives its children and leaves nothing."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gangdash import supervisor
from gangdash.processes import Child
from gangdash.simulator.server import FakeApiServer
from gangdash.supervisor import Options, Supervisor, UpError, describe_holder, lock_state, parse
from tests.system.conftest import Installation, processes_of, wait_for

STOP_SECONDS = 15


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """Give the test run its signal handlers back after a supervisor took them."""
    numbers = (*supervisor.STOP_SIGNALS, signal.SIGCHLD)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer([]) as server:
        yield server


def options(state_dir: Path, *, port: int = 0) -> Options:
    return Options(kubeconfig=None, context="", port=port, state_dir=state_dir, demo=False)


def python_child(script: str, **settings: object) -> Child:
    return Child("child", [sys.executable, "-c", script], environment=dict(os.environ), **settings)  # type: ignore[arg-type]


# --- the whole tree ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_starts_serves_reads_and_stops(installation: Installation, api: FakeApiServer, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "cluster.yaml"
    api.kubeconfig(kubeconfig)
    line = installation.start("--kubeconfig", str(kubeconfig))
    assert str(kubeconfig) in line
    assert "Log in as admin with the one-time password " in line

    address = urlsplit(next(word for word in line.split() if word.startswith("http://")))
    assert address.hostname == "127.0.0.1"
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
    connection.request("GET", "/")
    assert connection.getresponse().status in {200, 302}
    wait_for(lambda: any("/pods" in request.path for request in api.requests), "the first reading")

    said = installation.refused()
    assert f"in use by process {installation.process.pid}" in said  # type: ignore[union-attr]
    assert f"port {address.port}" in said

    code, seconds = installation.stop(signal.SIGTERM)
    assert code == 0
    assert seconds < STOP_SECONDS
    assert processes_of(installation.state_dir) == []


@pytest.mark.slow
def test_a_killed_worker_comes_back_and_a_killed_parent_leaves_nothing(installation: Installation) -> None:
    line = installation.start("--demo")
    assert "the demo cluster" in line
    wait_for(lambda: installation.child("collect@gangdash") is not None, "the start of the workers")
    worker = installation.child("collect@gangdash")
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: "collect ended (SIGKILL), starting it again" in installation.log.read_text(), "the notice")
    wait_for(lambda: installation.child("collect@gangdash") not in {None, worker}, "the restart")
    installation.stop(signal.SIGKILL)
    wait_for(lambda: processes_of(installation.state_dir) == [], "the end of all children", STOP_SECONDS)


@pytest.mark.slow
def test_interrupted_while_starting_it_leaves_nothing(installation: Installation) -> None:
    with subprocess.Popen(
        installation.command("--demo"), cwd=installation.root, env=installation.environment(), stderr=subprocess.DEVNULL
    ) as starting:
        wait_for(lambda: len(processes_of(installation.state_dir)) > 1, "the first child")
        starting.send_signal(signal.SIGINT)
        assert starting.wait(timeout=STOP_SECONDS) == 0
    assert processes_of(installation.state_dir) == []


@pytest.mark.slow
def test_a_broken_kubeconfig_is_one_line(installation: Installation, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("users: [{name: u, user: {token: hunter2}}]\n")
    said = installation.refused("--kubeconfig", str(broken))
    assert said.count("\n") <= 2
    assert f"The kubeconfig {broken} cannot be used: it names no current context" in said
    assert "hunter2" not in said
    assert processes_of(installation.state_dir) == []


# --- refusals before anything is started -----------------------------------------------------------------------------


def test_a_missing_kubeconfig_is_refused(installation: Installation, tmp_path: Path) -> None:
    said = installation.refused("--kubeconfig", str(tmp_path / "absent"))
    assert said == f"gangdash: kubeconfig {tmp_path / 'absent'} cannot be read (No such file or directory)\n"


def test_a_taken_port_is_refused_before_anything_is_prepared(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UpError, match=f"port {port} cannot be used"):
            Supervisor(options(tmp_path / "state", port=port), {})
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["lock"]


def test_a_second_start_hears_who_holds_the_state_also_on_the_same_port(tmp_path: Path) -> None:
    first = Supervisor(options(tmp_path / "state"), {})
    with pytest.raises(UpError, match=f"in use by process {os.getpid()}, port {first.port}, since "):
        Supervisor(options(tmp_path / "state", port=first.port), {})
    first._stop()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UpError, match=r"cannot write to .*choose another folder with --state-dir"):
        lock_state(tmp_path / "file" / "state")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders")
def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UpError, match="Permission denied"):
        lock_state(tmp_path / "state")


def test_the_state_belongs_to_one_user_and_one_process(tmp_path: Path) -> None:
    handle = lock_state(tmp_path / "state")
    with pytest.raises(UpError, match="has just started"):
        lock_state(tmp_path / "state")
    os.close(handle)
    os.close(lock_state(tmp_path / "state"))
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_a_holder_that_is_gone_or_unknown_is_described(tmp_path: Path) -> None:
    gone = json.dumps({"pid": 2**22 - 7, "port": 1, "since": "then"}).encode()
    assert "left behind" in describe_holder(tmp_path, gone)
    assert "has just started" in describe_holder(tmp_path, b"")


def test_the_folders_of_the_queue_are_private(tmp_path: Path) -> None:
    Supervisor(options(tmp_path / "state"), {})._stop()
    folders = [path for path in (tmp_path / "state").rglob("*") if path.is_dir()]
    assert {path.name for path in folders} == {"broker", "queue", "control"}
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}


def test_the_secret_key_is_private_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "secret-key"
    supervisor.write_secret_key(path)
    key = path.read_text()
    supervisor.write_secret_key(path)
    assert path.read_text() == key
    assert len(key) > 50
    assert path.stat().st_mode & 0o777 == 0o600


# --- what the command line means -------------------------------------------------------------------------------------


def test_without_a_cluster_it_shows_the_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(supervisor, "SERVICE_ACCOUNT", tmp_path / "absent")
    assert parse([], {}).demo
    assert not parse([], {"GANGDASH_CLUSTERS_DIR": "/clusters"}).demo
    assert not parse(["--kubeconfig", "file"], {}).demo
    named = parse([], {"GANGDASH_KUBECONFIG": "/etc/kube", "GANGDASH_KUBE_CONTEXT": "one"})
    assert (named.demo, named.kubeconfig, named.context) == (False, Path("/etc/kube"), "one")
    forced = parse(["--demo"], {"GANGDASH_KUBECONFIG": "/etc/kube"})
    assert (forced.demo, forced.kubeconfig) == (True, None)


def test_inside_a_pod_its_own_cluster_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.touch()
    monkeypatch.setattr(supervisor, "SERVICE_ACCOUNT", token)
    assert not parse([], {}).demo


def test_paths_are_absolute_whatever_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    found = parse(["--kubeconfig", "kube", "--state-dir", "state"], {})
    assert (found.kubeconfig, found.state_dir) == (tmp_path / "kube", tmp_path / "state")


@pytest.mark.parametrize("arguments", [["--port", "70000"], ["--demo", "--kubeconfig", "x"], ["--colour"]])
def test_wrong_arguments_end_with_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        parse(arguments, {})


# --- one child -------------------------------------------------------------------------------------------------------


def test_lines_are_prefixed_and_the_last_are_kept(capfd: pytest.CaptureFixture[str]) -> None:
    child = python_child("[print(f'line {n}') for n in range(30)]")
    child.start()
    wait_for(lambda: child.ended() is not None, "its end", 20)
    assert child.ended() == 0
    assert list(child.lines) == [f"line {number}" for number in range(10, 30)]
    assert "child | line 7\n" in capfd.readouterr().err


def test_the_fifth_death_in_a_minute_is_the_last() -> None:
    child = python_child("")
    pauses = []
    for second in (0, 2, 5, 10):
        assert child.note_death(float(second))
        assert child.start_again_at is not None
        pauses.append(child.start_again_at - second)
    assert pauses == [1, 2, 4, 8]
    assert not child.note_death(20.0)


def test_deaths_far_apart_are_forgiven() -> None:
    child = python_child("")
    for hour in range(20):
        child.started_at = hour * 3600.0
        assert child.note_death(hour * 3600.0 + 600)
        assert child.start_again_at == hour * 3600.0 + 601


def test_dying_too_often_ends_the_tree_with_the_last_lines(tmp_path: Path) -> None:
    tree = Supervisor(options(tmp_path / "state"), {})
    child = python_child("raise SystemExit('out of luck')", on_line=lambda _line: None)
    tree.children.append(child)
    child.deaths.extend([time.monotonic()] * 4)
    child.start()
    with pytest.raises(UpError, match="child died 5 times in a minute; its last lines:\n  out of luck"):
        tree._watch(until=lambda: False)
    tree._stop()


def test_the_whole_group_dies_with_its_leader() -> None:
    child = Child(
        "child", ["sh", "-c", "sleep 60 & echo up; wait"], environment=dict(os.environ), on_line=lambda _line: None
    )
    child.start()
    wait_for(lambda: list(child.lines) == ["up"], "its start", 20)
    assert child.process is not None
    group = child.process.pid
    child.kill_group()
    wait_for(lambda: child.ended() is not None, "its end", 20)
    assert child.ended() == -signal.SIGKILL

    def is_empty() -> bool:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    wait_for(is_empty, "the end of the group", 20)


def test_a_child_that_ignores_the_request_is_killed_after_the_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "GRACE_SECONDS", 0.3)
    tree = Supervisor(options(tmp_path / "state"), {})
    script = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    child = python_child(script, on_line=lambda _line: None)
    tree.children.append(child)
    child.start()
    wait_for(lambda: list(child.lines) == ["up"], "its start", 20)
    tree._stop()
    assert child.ended() == -signal.SIGKILL


def test_the_state_stays_locked_while_a_child_lives(tmp_path: Path) -> None:
    tree = Supervisor(options(tmp_path / "state"), {})
    tree._add("sleeper", [sys.executable, "-c", "import time; time.sleep(60)"])
    os.close(tree.lock)
    handle = os.open(tmp_path / "state" / "lock", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    tree._stop()
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)
