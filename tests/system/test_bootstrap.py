"""The environment is built once, heals after any interruption, and never half-counts as built.

The installer is a small script named uv on the PATH, so that no package is fetched; everything else is real.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gangdash import bootstrap
from gangdash.bootstrap import DEV_LOCK, RUNTIME_LOCK, BootstrapError, Layout, build

PYTHON_OF = 'while [ "$1" != --python ]; do shift; done; venv=$(dirname "$(dirname "$2")")'


def installer(folder: Path, body: str) -> None:
    """Put a script named uv on the PATH; `$venv` is the environment that it is told to fill."""
    script = folder / "uv"
    script.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\n{PYTHON_OF}\n{body}\n')
    script.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def layout(tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    root = tmp_path / "checkout"
    root.mkdir()
    (root / RUNTIME_LOCK).write_text("# header\nalpha==1 \\\n    --hash=sha256:00\nbeta==2\n")
    (root / DEV_LOCK).write_text("alpha==1\nbeta==2\ngamma==3\n")
    installer(tools, 'touch "$venv/filled"; echo "Installed 2 packages"')
    # pip is the second try; no test may reach a registry through it.
    monkeypatch.setattr(bootstrap, "_find_pip", lambda _layout: ["/bin/false"])
    return Layout(root)


def calls(tools: Path) -> list[str]:
    path = tools / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_build_installs_by_hash_and_stamps_last(layout: Layout, tools: Path, capfd: pytest.CaptureFixture[str]) -> None:
    installer(tools, 'test ! -e "$venv/gangdash-stamp" && test -x "$venv/bin/python" && touch "$venv/filled"')
    build(layout, RUNTIME_LOCK)
    assert layout.holds(RUNTIME_LOCK)
    assert (layout.folder / "filled").exists()
    assert not layout.building.exists()
    assert "--require-hashes --only-binary :all:" in calls(tools)[0]
    assert f"building .venv from {RUNTIME_LOCK}: 2 packages, with uv" in capfd.readouterr().err


def test_a_built_environment_is_left_alone(layout: Layout, tools: Path) -> None:
    build(layout, RUNTIME_LOCK)
    build(layout, RUNTIME_LOCK)
    assert len(calls(tools)) == 1


def test_a_changed_lock_builds_anew(layout: Layout) -> None:
    build(layout, RUNTIME_LOCK)
    (layout.folder / "old").touch()
    (layout.root / RUNTIME_LOCK).write_text("alpha==2\n")
    assert not layout.holds(RUNTIME_LOCK)
    build(layout, RUNTIME_LOCK)
    assert layout.holds(RUNTIME_LOCK)
    assert not (layout.folder / "old").exists()


def test_a_development_environment_serves_both(layout: Layout, tools: Path) -> None:
    build(layout, DEV_LOCK)
    build(layout, RUNTIME_LOCK)
    assert len(calls(tools)) == 1


def test_development_packages_are_added_without_taking_the_environment_away(layout: Layout, tools: Path) -> None:
    build(layout, RUNTIME_LOCK)
    (layout.folder / "in-use").touch()
    build(layout, DEV_LOCK)
    assert (layout.folder / "in-use").exists()
    assert layout.holds(DEV_LOCK)
    assert len(calls(tools)) == 2


def test_a_failed_install_says_why_and_the_next_start_heals(layout: Layout, tools: Path) -> None:
    installer(tools, 'touch "$venv/half"; exit 1')
    with pytest.raises(BootstrapError, match="could not be installed"):
        build(layout, RUNTIME_LOCK)
    assert not layout.holds(RUNTIME_LOCK)
    installer(tools, 'touch "$venv/filled"')
    build(layout, RUNTIME_LOCK)
    assert layout.holds(RUNTIME_LOCK)
    assert not (layout.folder / "half").exists()


def test_pip_is_tried_where_uv_fails(layout: Layout, tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installer(tools, "exit 1")
    monkeypatch.setattr(bootstrap, "_find_pip", lambda _layout: ["/bin/echo", "Collecting"])
    build(layout, RUNTIME_LOCK)
    assert layout.holds(RUNTIME_LOCK)


def test_the_last_lines_of_the_installer_are_shown(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys; [print(f'line {n}') for n in range(40)]; sys.exit(1)"
    failure = bootstrap._run([sys.executable, "-c", script], total=1)
    assert failure is not None
    assert failure.splitlines() == [f"  line {number}" for number in range(28, 40)]


def test_a_foreign_folder_in_the_way_is_not_deleted(layout: Layout) -> None:
    layout.folder.mkdir()
    (layout.folder / "thesis.txt").touch()
    with pytest.raises(BootstrapError, match="in the way"):
        build(layout, RUNTIME_LOCK)
    assert (layout.folder / "thesis.txt").exists()


def test_a_checkout_that_cannot_be_written_is_one_clear_error(layout: Layout) -> None:
    layout.folder.write_text("a file where the folder belongs")
    with pytest.raises(BootstrapError, match="cannot build"):
        build(layout, RUNTIME_LOCK)


def test_a_start_waits_for_an_installer_that_outlived_its_start(
    layout: Layout, tools: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    installer(tools, f'touch "{tools}/started"; sleep 1; touch "{tools}/done"')
    code = f"""
import sys; sys.path.insert(0, {str(bootstrap.ROOT)!r})
from pathlib import Path
from gangdash.bootstrap import Layout, build
build(Layout(Path({str(layout.root)!r})), {RUNTIME_LOCK!r})
"""
    with subprocess.Popen([sys.executable, "-c", code]) as first:
        while not (tools / "started").exists():
            time.sleep(0.02)
        first.kill()
    build(layout, RUNTIME_LOCK)
    assert (tools / "done").exists()
    assert layout.holds(RUNTIME_LOCK)
    assert "another start is building .venv" in capfd.readouterr().err


def test_the_lock_is_free_after_a_build(layout: Layout) -> None:
    build(layout, RUNTIME_LOCK)
    handle = os.open(layout.root, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(handle)


def test_an_old_python_is_told_what_is_needed(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "OLDEST_PYTHON", (9, 0))
    with pytest.raises(BootstrapError, match=r"Python 3\.11 or newer is needed"):
        build(layout, RUNTIME_LOCK)


def test_nothing_is_done_where_it_is_switched_off(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANGDASH_NO_BOOTSTRAP", "1")
    bootstrap.ensure("up", root=layout.root)
    assert not layout.folder.exists()


@pytest.mark.parametrize("command, code", [("up", 1), ("test", 1), ("diagnose", 255)])
def test_exit_code_of_a_failed_start(
    layout: Layout, tools: Path, monkeypatch: pytest.MonkeyPatch, command: str, code: int
) -> None:
    monkeypatch.delenv("GANGDASH_NO_BOOTSTRAP", raising=False)
    installer(tools, "exit 1")
    with pytest.raises(SystemExit) as ended:
        bootstrap.ensure(command, root=layout.root)
    assert ended.value.code == code


def test_without_ensurepip_the_pip_outside_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    layout = Layout(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/pip3" if name == "pip3" else None)
    assert bootstrap._find_pip(layout) == ["/usr/bin/pip3", "--python", str(layout.python)]
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(BootstrapError, match="python3-venv"):
        bootstrap._find_pip(layout)
