"""The demo cluster as a process: ready line, kubeconfig, movement, an immediate end."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

pytestmark = pytest.mark.slow
COMMAND = [sys.executable, "-m", "gangdash.simulator"]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    command = [*COMMAND, "--kubeconfig-out", str(tmp_path / "demo.yaml"), "--step-seconds", "0.2", "--seed", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process, json.loads(process.stdout.readline())
        process.kill()


def _get(config: dict[str, Any], path: str) -> dict[str, Any]:
    server, token = config["clusters"][0]["cluster"]["server"], config["users"][0]["user"]["token"]
    answer = requests.get(server + path, headers={"Authorization": f"Bearer {token}"}, timeout=5)
    answer.raise_for_status()
    return dict(answer.json())


def test_it_serves_moves_and_stops_at_once(demo: tuple[subprocess.Popen[str], dict[str, str]]) -> None:
    process, ready = demo
    path = Path(ready["kubeconfig"])
    config = yaml.safe_load(path.read_text())
    first = _get(config, "/apis/scheduling.run.ai/v2alpha2/podgroups")
    deadline = time.monotonic() + 20
    while _get(config, "/api/v1/pods?limit=1")["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)

    assert process.wait(5) == 0
    assert time.monotonic() - began < 2
    assert ready["url"] == config["clusters"][0]["cluster"]["server"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(first["items"]) > 40
    with pytest.raises(requests.ConnectionError):
        _get(config, "/api/v1/pods")


def test_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run([*COMMAND, "--port", str(port)], capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.strip() == f"cannot listen on 127.0.0.1:{port}: Address already in use"


def test_kubeconfig_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    command = [*COMMAND, "--kubeconfig-out", str(tmp_path / "none" / "demo.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "cannot write" in done.stderr
