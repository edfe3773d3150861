"""Page, REST and command line say the same sentence about the demo cluster's gangs.

The cluster is polled and diagnosed as the workers do it; then each face is asked, the command line on the dump
that the REST API offers of the diagnosed moment, which carries the history that the store knew.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from apps.accounts.choices import Role
from apps.accounts.models import User
from apps.collector import connections, services, tasks
from apps.dashboard.links import gang_url
from apps.diagnosis.tasks import diagnose_due
from apps.workloads.models import Gang
from gangdash.simulator.demo import NOT_INSTALLED, Demo
from gangdash.simulator.server import FakeApiServer

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def demo(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve the demo cluster, polled and diagnosed twice, so that there is a history."""
    folder = tmp_path / "clusters"
    folder.mkdir()
    settings.GANGDASH_CLUSTERS_DIR, settings.GANGDASH_KUBECONFIG = folder, None
    monkeypatch.setattr(services, "diagnosis_ask", lambda: None)
    start = datetime.now(UTC) - timedelta(minutes=5)
    with FakeApiServer() as api:
        for kind in NOT_INSTALLED:
            api.faults.unserve(kind)
        cluster = Demo(api.store, 7, start)
        api.kubeconfig(folder / "demo.yaml", name="demo")
        for minutes in (2, 5):
            cluster.step(start + timedelta(minutes=minutes))
            tasks.poll_clusters()
            diagnose_due()
        yield
    connections.forget("demo")


@pytest.fixture
def client_of_alice() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("alice", password="alice-password", role=Role.ADMIN))
    return client


def _sentences_of_command(dump: Path) -> dict[str, tuple[str, str, str]]:
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("diagnose", str(dump), "--format", "json", "--all", stdout=out)
    entries = json.loads(out.getvalue())["explanations"]
    return {entry["gang"]["uid"]: _said(entry) for entry in entries if entry["gang"]["kind"] == "PodGroup"}


def _said(entry: dict[str, Any]) -> tuple[str, str, str]:
    return entry["verdict"], entry["code"], entry["sentence"]


@pytest.mark.usefixtures("demo")
def test_page_rest_and_command_line_say_the_same(client_of_alice: Client, tmp_path: Path) -> None:
    there = Gang.objects.filter(gone_at=None, kind="PodGroup")
    gangs = list(there.exclude(verdict="").exclude(verdict="HEALTHY"))
    assert len({gang.verdict for gang in gangs}) >= 4
    response = client_of_alice.get(f"/api/v1/gangs/{gangs[0].public_id}/snapshot")
    dump = tmp_path / "dump.json.gz"
    dump.write_bytes(response.getvalue())
    by_command = _sentences_of_command(dump)
    for gang in gangs:
        explanation = client_of_alice.get(f"/api/v1/gangs/{gang.public_id}/explanation").json()
        assert _said(explanation) == by_command[gang.uid], gang.name
        page = html.unescape(client_of_alice.get(gang_url(gang)).content.decode())
        assert explanation["sentence"] in " ".join(page.split()), gang.name
