"""`manage.py up` on a real API server with a viewer's rights: what it shows, and what it says it may not read.

Runs when ``GANGDASH_LIVE_KUBECONFIG`` names an admin's kubeconfig of a throw-away cluster with the scheduler's
CRDs and a few nodes; ``viewer.kubeconfig`` beside it is what the dashboard gets. Objects are made from
``manifests.yaml`` and removed again.
"""

from __future__ import annotations

import contextlib
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
from kubernetes import client, config

from tests.system.conftest import Installation, installation

__all__ = ["installation"]

LIVE = os.environ.get("GANGDASH_LIVE_KUBECONFIG", "")
MANIFESTS = Path(__file__).parent / "manifests.yaml"
PLURALS = {"Queue": "queues", "PodGroup": "podgroups"}
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
        "metadata": {
            "name": f"{gang}-{index}",
            "annotations": {"pod-group-name": gang},
            "labels": {"kai.scheduler/queue": queue},
        },
        "spec": {"schedulerName": "kai-scheduler", "containers": [container]},
    }


@pytest.fixture
def gangs() -> Iterator[None]:
    """Make the manifests' objects and the gangs' pods, and take them away again."""
    config.load_kube_config(config_file=LIVE)
    custom, core = client.CustomObjectsApi(), client.CoreV1Api()
    documents = list(yaml.safe_load_all(MANIFESTS.read_text()))
    _remove(custom, core, documents)
    for document in documents:
        group, version = document["apiVersion"].split("/")
        plural = PLURALS[document["kind"]]
        if "namespace" in document["metadata"]:
            custom.create_namespaced_custom_object(group, version, "default", plural, document)
        else:
            custom.create_cluster_custom_object(group, version, plural, document)
    for gang, (count, queue) in PODS.items():
        for index in range(count):
            core.create_namespaced_pod("default", _pod(gang, index, queue))
    yield
    _remove(custom, core, documents)


def _remove(custom: Any, core: Any, documents: list[dict[str, Any]]) -> None:
    for gang, (count, _) in PODS.items():
        for index in range(count):
            with contextlib.suppress(client.ApiException):
                core.delete_namespaced_pod(f"{gang}-{index}", "default", grace_period_seconds=0)
    for document in documents:
        group, version = document["apiVersion"].split("/")
        plural, name = PLURALS[document["kind"]], document["metadata"]["name"]
        with contextlib.suppress(client.ApiException):
            if "namespace" in document["metadata"]:
                custom.delete_namespaced_custom_object(group, version, "default", plural, name)
            else:
                custom.delete_cluster_custom_object(group, version, plural, name)


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


@pytest.mark.usefixtures("gangs")
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
    code, seconds = installation.stop(signal.SIGINT)
    assert code == 0
    assert seconds < 15
