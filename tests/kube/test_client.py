"""Ways in: kubeconfigs of several kinds, and what is said of one that cannot be used."""

from __future__ import annotations

import json
import stat
import sys
import time
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from gangdash.kube import kinds
from gangdash.kube.client import open_client
from gangdash.kube.errors import KubeconfigError, Unauthorized
from gangdash.kube.listing import read_cluster
from gangdash.simulator.server import FakeApiServer
from tests.kube import raw

QUEUE = [kinds.by_name()["Queue"]]


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer([raw.queue("q")]) as server:
        yield server


def _kubeconfig(path: Path, url: str, user: dict[str, Any], **other: dict[str, Any]) -> Path:
    users = [{"name": name, "user": u} for name, u in {"main": user, **other}.items()]
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": url}}], "users": users,
        "contexts": [{"name": u["name"], "context": {"cluster": "c", "user": u["name"]}} for u in users],
    }  # fmt: skip
    path.write_text(json.dumps(config))
    return path


def _plugin(folder: Path, token: str) -> dict[str, Any]:
    """An exec plugin that writes down each of its runs."""
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}
    script = folder / "plugin"
    script.write_text(
        f"#!{sys.executable}\nopen({str(folder / 'runs')!r}, 'a').write('x')\nprint({json.dumps(credential)!r})\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {
        "exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script), "interactiveMode": "Never"}
    }


def test_context_chooses_the_user(api: FakeApiServer, tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path / "k", api.url, {"token": "wrong"}, right={"token": api.token})

    assert read_cluster(open_client(path, "right"), QUEUE).statuses["Queue"].count == 1
    with pytest.raises(Unauthorized):
        read_cluster(open_client(path), QUEUE)


def test_token_file_is_read(api: FakeApiServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(api.token + "\n")
    path = _kubeconfig(tmp_path / "k", api.url, {"tokenFile": str(tmp_path / "token")})

    assert read_cluster(open_client(path), QUEUE).statuses["Queue"].count == 1


def test_exec_plugin_gives_the_token_once(api: FakeApiServer, tmp_path: Path) -> None:
    client = open_client(_kubeconfig(tmp_path / "k", api.url, _plugin(tmp_path, api.token)))
    read_cluster(client, QUEUE)

    assert read_cluster(client, QUEUE).statuses["Queue"].count == 1
    assert (tmp_path / "runs").read_text() == "x"


def test_kubeconfig_is_never_written_to(api: FakeApiServer, tmp_path: Path) -> None:
    path = _kubeconfig(tmp_path / "k", api.url, _plugin(tmp_path, api.token))
    before = path.read_bytes()
    read_cluster(open_client(path), QUEUE)

    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content,context,problem",
    [
        (None, "", "Invalid kube-config file"),
        ("", "", "kubeconfig"),
        ("a: [1, {s3cret-token", "", "not YAML at line"),
        ("[1, 2]", "", "kubeconfig"),
        ("just words", "", "kubeconfig"),
        ('{"contexts": [], "current-context": "gone"}', "", "kube"),
        ('{"apiVersion": "v1", "clusters": [], "users": [], "contexts": [], "current-context": ""}', "none", "none"),
    ],
)
def test_unusable_kubeconfig_is_one_line(tmp_path: Path, content: str | None, context: str, problem: str) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)

    with pytest.raises(KubeconfigError, match=problem) as caught:
        open_client(path, context)
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_no_service_account_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    with pytest.raises(KubeconfigError, match="service account"):
        open_client()


@pytest.mark.parametrize("ahead", [0, 90, -4000])
def test_the_difference_of_the_clocks_is_measured(
    api: FakeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    client = open_client(api.kubeconfig(tmp_path / "k"))
    assert client.skew_seconds is None
    monkeypatch.setattr(
        BaseHTTPRequestHandler, "date_time_string", lambda *_: formatdate(time.time() + ahead, usegmt=True)
    )
    read_cluster(client, QUEUE)
    assert client.skew_seconds == pytest.approx(ahead, abs=2)


@pytest.mark.parametrize("date", ["", "soon", "Mon, 99 Nov 2026 09:00:00 GMT"])
def test_a_server_that_does_not_tell_the_time_has_no_known_difference(
    api: FakeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, date: str
) -> None:
    monkeypatch.setattr(BaseHTTPRequestHandler, "date_time_string", lambda *_: date)
    client = open_client(api.kubeconfig(tmp_path / "k"))
    assert read_cluster(client, QUEUE).statuses["Queue"].count == 1
    assert client.skew_seconds is None
