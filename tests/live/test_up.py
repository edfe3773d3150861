"""`manage.py up` on a real API server with a viewer's rights: what it shows, and what it says it may not read.

Runs when ``GANGDASH_LIVE_KUBECONFIG`` names an admin's kubeconfig of a throw-away cluster with the scheduler's
CRDs and a few nodes; ``viewer.kubeconfig`` beside it is what the dashboard gets. Objects are made from
``manifests.yaml`` and removed again.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from tests.chain import world as w
from tests.live.cluster import LiveCluster
from tests.live.test_chain import complete, namespaces
from tests.system.conftest import Installation, installation

__all__ = ["installation"]

LIVE = os.environ.get("GANGDASH_LIVE_KUBECONFIG", "")
MANIFESTS = Path(__file__).parent / "manifests.yaml"
PODS = {"too-many": (5, "live-team"), "over-limit": (1, "live-capped"), "lost-queue": (1, "nowhere")}
VERDICTS = {"too-many": "NO_FIT", "over-limit": "POLICY", "lost-queue": "CONFIG"}
NEW_PASSWORD = "correct-horse-battery-9"

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not LIVE, reason="GANGDASH_LIVE_KUBECONFIG names no cluster"),
]


def _pod(gang: str, index: int, queue: str) -> dict[str, Any]:
    amounts = {"nvidia.com/gpu": "8"}
    container = {"name": "main", "image": "example/worker", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{gang}-{index}",
            "namespace": "default",
            "annotations": {"pod-group-name": gang},
            "labels": {"kai.scheduler/queue": queue},
        },
        "spec": {"schedulerName": "kai-scheduler", "containers": [container]},
    }


@pytest.fixture
def cluster() -> Iterator[LiveCluster]:
    """Make the manifests' objects, the gangs' pods and a served model, and take them away again."""
    made = LiveCluster(LIVE)
    pods = [_pod(gang, index, queue) for gang, (count, queue) in PODS.items() for index in range(count)]
    chain = complete(w.served())
    made.make([*yaml.safe_load_all(MANIFESTS.read_text()), *pods, *namespaces(chain), *chain])
    yield made
    made.remove()


def _login(base: str, password: str) -> requests.Session:
    """Log in and change the one-time password, as a person would have to."""
    session = requests.Session()
    _post(session, f"{base}login/", {"username": "admin", "password": password})
    fields = {"old": password, "new": NEW_PASSWORD, "again": NEW_PASSWORD}
    _post(session, f"{base}account/password/", fields)
    return session


def _post(session: requests.Session, url: str, fields: dict[str, str]) -> None:
    session.get(url, timeout=10)
    token = session.cookies.get("gangdash_csrf") or ""
    answer = session.post(url, {**fields, "csrfmiddlewaretoken": token}, headers={"Referer": url}, timeout=10)
    assert answer.ok, answer.text[:300]


def _diagnosed(session: requests.Session, base: str) -> dict[str, dict[str, Any]]:
    """Wait until the three gangs have verdicts; return their rows by name."""
    deadline = time.monotonic() + 90
    rows: dict[str, dict[str, Any]] = {}
    while time.monotonic() < deadline:
        found = session.get(f"{base}api/v1/gangs", timeout=10).json()["results"]
        rows = {row["name"]: row for row in found if row["name"] in VERDICTS and row.get("verdict")}
        if len(rows) == len(VERDICTS):
            return rows
        time.sleep(1)
    pytest.fail(f"only {sorted(rows)} were diagnosed")


@pytest.mark.usefixtures("cluster")
def test_up_shows_a_real_cluster_and_what_it_may_not_read(installation: Installation) -> None:
    viewer = str(Path(LIVE).with_name("viewer.kubeconfig"))
    line = installation.start("--kubeconfig", viewer)
    base = re.search(r"http://\S+", line)
    password = re.search(r"password (\S+)", line)
    assert base is not None
    assert password is not None
    session = _login(base.group(), password.group(1))
    rows = _diagnosed(session, base.group())
    assert {name: row["verdict"] for name, row in rows.items()} == VERDICTS
    cluster = session.get(f"{base.group()}api/v1/clusters", timeout=10).json()["results"][0]["name"]
    health = session.get(f"{base.group()}api/v1/clusters/{cluster}/health", timeout=10).text
    assert "PriorityClass" in health
    assert "403" in health
    page = session.get(base.group(), timeout=10).text
    assert all(name in page for name in VERDICTS)
    [top] = session.get(f"{base.group()}api/v1/deployments", timeout=10).json()["results"]
    assert (top["kind"], top["name"], top["stage"]) == ("DynamoGraphDeployment", "llm", "")
    query = {"cluster": cluster, "kind": "PodClique", "namespace": "team", "name": "llm-0-decode"}
    led = session.get(f"{base.group()}api/v1/resolve", params=query, timeout=10).json()
    assert [gang["name"] for gang in led["gangs"]] == ["pg-llm-0"]
    code, seconds = installation.stop(signal.SIGINT)
    assert code == 0
    assert seconds < 15
