"""Faults on purpose: nothing is lost, nothing doubled, and no conclusion is drawn from what was not read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from pytest_django import Settings

from apps.clusters.choices import Freshness
from apps.clusters.models import Cluster, KindFreshness, PollRun
from apps.clusters.selectors import freshness_state
from apps.collector import connections, services, tasks
from apps.collector.models import Reading
from apps.inventory.models import Node, Queue, StateChange, Topology
from apps.workloads.models import Attempt, Gang, Pod
from gangdash.kube import client, kinds
from gangdash.simulator.faults import ALL
from gangdash.simulator.server import FakeApiServer
from tests.apps import raw
from tests.apps.diagnosis.conftest import NOW
from tests.chain import world as w

pytestmark = pytest.mark.django_db
TOPOLOGY = {
    "apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "metadata": {"name": "t"},
    "spec": {"levels": [{"nodeLabel": "rack"}]},
}  # fmt: skip
LIVE = [kind for kind in kinds.live() if kind.name != "ConfigMap"]


@pytest.fixture
def api(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApiServer]:
    """Serve a small cluster that has something of each kind that makes rows."""
    settings.GANGDASH_CLUSTERS_DIR, settings.GANGDASH_KUBECONFIG = tmp_path, None
    settings.GANGDASH_POLL_SECONDS = 15
    monkeypatch.setattr(services, "diagnosis_ask", lambda: None)
    with FakeApiServer(raw.cluster(raw.gang("g", pods=2, gpus=8), TOPOLOGY)) as server:
        server.kubeconfig(tmp_path / "east.yaml")
        yield server
    connections.forget("east")


def poll() -> PollRun:
    """Poll anew, without what an earlier poll lent and whether it is due or not."""
    connections.forget("east")
    Cluster.objects.update(next_poll_at=None)
    tasks.poll_clusters()
    return PollRun.objects.order_by("-pk")[0]


def known() -> dict[str, Any]:
    """Return everything that is said of the cluster."""
    gangs = Gang.objects.filter(gone_at=None).values_list("uid", "pods_total", "pods_waiting", "gpus", "is_running")
    return {
        "gangs": sorted(gangs),
        "pods": sorted(Pod.objects.values_list("uid", "node", "gang__uid")),
        "nodes": sorted(Node.objects.values_list("name", "state", "gpus_free")),
        "queues": sorted(Queue.objects.values_list("name", "parent")),
        "topologies": sorted(Topology.objects.values_list("name", flat=True)),
        "attempts": sorted(Attempt.objects.filter(ended_at=None).values_list("gang__uid", "number", "evictions")),
        "changes": StateChange.objects.count(),
    }


@pytest.mark.slow
def test_a_kind_that_is_forbidden_or_not_served_is_named_and_takes_nothing_with_it(api: FakeApiServer) -> None:
    poll()
    before = known()
    for kind in LIVE:
        faults = [(api.faults.forbid, "403"), (api.faults.unserve, "not served")]
        for fault, reason in faults if kind.group else faults[:1]:  # the core kinds are always served
            fault(kind.name)
            run = poll()
            missed = {row["kind"] for row in run.kinds if row["reason"].startswith(reason)}
            assert kind.name in missed, (kind.name, reason, run.detail)
            assert not KindFreshness.objects.get(kind=kind.name).is_read
            assert run.outcome == ("partial" if kind.required else "read"), kind.name
            assert known() == before, (kind.name, reason)
            api.faults.clear()
            api.faults.forbid("secrets")
    assert poll().outcome == "read"
    assert known() == before


def test_ten_polls_without_an_answer_keep_the_last_data_and_its_age(
    api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_RETRIES", client._RETRIES.new(total=0))
    with time_machine.travel(NOW, tick=False) as clock:
        poll()
        before, read_as_of = known(), Cluster.objects.get().read_as_of
        api.faults.fail(ALL, status=503)
        for number in range(1, 11):
            clock.move_to(NOW + timedelta(seconds=15 * number))
            assert poll().outcome == "failed"
        cluster = Cluster.objects.get()
        assert (known(), cluster.read_as_of, cluster.failures) == (before, read_as_of, 10)
        assert freshness_state(cluster=cluster, now=NOW + timedelta(seconds=150)) is Freshness.BLIND
        api.faults.clear()
        assert poll().outcome == "read"
    assert (known(), Cluster.objects.get().failures, Reading.objects.count()) == (before, 0, 1)


def test_a_list_that_expires_with_each_page_is_asked_for_whole(api: FakeApiServer) -> None:
    api.store.write([raw.pod(f"many-{index}", "g") for index in range(1100)])
    api.faults.expire("pods", times=None)
    assert poll().outcome == "read"
    assert Gang.objects.get().pods_total == Pod.objects.count() == 1102


def test_a_storm_of_429_is_waited_out_or_told(api: FakeApiServer) -> None:
    poll()
    before = known()
    api.faults.throttle("pods", times=2, retry_after=0)
    assert poll().outcome == "read"
    api.faults.throttle("pods", times=None, retry_after=0)
    api.store.write([raw.node("n3")])
    run = poll()
    assert (run.outcome, run.code) == ("failed", "required_kind")
    assert known() == before


@pytest.mark.parametrize("kind", ["pods", "podgroups", "nodes", "queues", "discovery"])
@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_a_body_that_ends_early_is_never_taken_for_a_short_list(api: FakeApiServer, kind: str, keep: float) -> None:
    poll()
    before = known()
    api.faults.truncate(kind, keep=keep)
    assert poll().outcome == "failed"
    assert known() == before


def test_two_objects_with_one_uid_break_nothing(api: FakeApiServer) -> None:
    twin, group = raw.pod("twin", "g"), raw.podgroup("copy", uid="gang-team-a-g")
    twin["metadata"]["uid"] = "pod-team-a-g-0"
    api.store.write([twin, group])
    assert poll().outcome == "read"
    assert Gang.objects.count() == Attempt.objects.count() == 1
    assert Pod.objects.count() == 2
    first = known()
    assert poll().is_unchanged
    assert known() == first


def test_a_burst_of_events_costs_pages_and_no_rows(api: FakeApiServer) -> None:
    poll()
    before = known()
    api.store.write(
        {
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": f"e{number}", "namespace": "team-a"},
            "involvedObject": {"kind": "Pod", "namespace": "team-a", "name": "g-0"}, "reason": "FailedScheduling",
            "message": "x", "type": "Warning", "count": number + 1, "lastTimestamp": raw.CREATED,
        }
        for number in range(5000)
    )  # fmt: skip
    assert poll().outcome == "read"
    assert KindFreshness.objects.get(kind="Event").count == 5000
    assert known() == before


@pytest.mark.slow
def test_a_worker_that_is_killed_at_any_step_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    objects = [*raw.cluster(raw.gang("g", pods=2, gpus=8), TOPOLOGY), *w.served()]
    with FakeApiServer(objects) as server:
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "gangdash.settings.embedded",
            "GANGDASH_STATE_DIR": str(tmp_path),
            "GANGDASH_KUBECONFIG": str(server.kubeconfig(tmp_path / "east.yaml")),
            "GANGDASH_CLUSTERS_DIR": "",
        }
        run = subprocess.run(
            [sys.executable, "-m", "tests.apps.history.killed"],
            env=environment, capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
    found = json.loads(run.stdout.splitlines()[-1])
    deaths = found["deaths"]
    assert {death["signal"] for death in deaths.values()} == {signal.SIGKILL}
    # Nothing of a poll is there before all of it is; after the commit all of it is, whatever dies then.
    after_commit = [deaths.pop(step) for step in ("diagnosis_ask", "reading_done")]
    assert all(death["rows"] == {} and death["locked"] for death in deaths.values())
    of_signal = {"TopObject", "TopMoment", "ChainLink", "RecordedReading"}
    stored = {name: count for name, count in found["rows"].items() if name not in of_signal}
    assert [(death["rows"], death["locked"]) for death in after_commit] == [(stored, False)] * 2
    assert (found["rows"]["Gang"], found["rows"]["Attempt"], found["rows"]["Reading"]) == (2, 2, 1)
    # What hangs on the poll and died with it comes with the next one, though nothing has changed.
    assert (found["rows"]["TopObject"], found["rows"]["TopMoment"]) == (1, 1)
    assert found["outcomes"] == ["lost"] * (len(deaths) - 1) + ["read"] * 3
