"""Polls of a real HTTP API server: what is stored, what is left alone, and what the record says when things break."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.db import connection
from pytest_django import Settings

from apps.clusters.models import Cluster, KindFreshness, PollRun
from apps.collector import connections, services, tasks
from apps.collector.models import Reading, ReadingContent
from apps.inventory.models import Node
from apps.workloads.models import Gang, Pod
from gangdash.simulator.server import FakeApiServer
from tests.apps import raw

pytestmark = pytest.mark.django_db
SECRET = "hunter2-do-not-store"


@pytest.fixture
def api(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApiServer]:
    """Serve a small cluster, named by a kubeconfig in the folder that the settings name."""
    settings.GANGDASH_CLUSTERS_DIR, settings.GANGDASH_KUBECONFIG = tmp_path, None
    settings.GANGDASH_POLL_SECONDS = 15
    monkeypatch.setattr(services, "diagnosis_ask", lambda: None)
    with FakeApiServer(raw.cluster(raw.gang("wait", pods=2, gpus=8), raw.pod("x", "wait", secret=SECRET))) as server:
        server.kubeconfig(tmp_path / "east.yaml")
        yield server
    connections.forget("east")


def poll() -> PollRun:
    """Run the tick as the beat would, and return the newest record."""
    tasks.poll_clusters()
    return PollRun.objects.order_by("-pk")[0]


def test_the_first_poll_stores_the_cluster(api: FakeApiServer) -> None:
    run = poll()
    cluster = Cluster.objects.get()
    assert (run.outcome, run.is_unchanged, run.code) == ("read", False, "")
    assert run.requests >= len(run.kinds)
    assert run.received_bytes > 1000
    assert (cluster.name, cluster.failures, cluster.locked_until) == ("east", 0, None)
    assert cluster.read_as_of is not None
    assert cluster.server_version
    assert set(Node.objects.values_list("name", flat=True)) == {"n1", "n2"}
    gang = Gang.objects.get()
    assert (gang.name, gang.pods_total, gang.gpus_waiting) == ("wait", 3, 17)
    assert Pod.objects.filter(gang=gang).count() == 3


def test_an_unchanged_cluster_is_confirmed_and_nothing_is_written(api: FakeApiServer) -> None:
    poll()
    first = Reading.objects.get()
    run = poll()
    second = Reading.objects.get()
    assert (run.is_unchanged, run.rows_written) == (True, 0)
    assert second.as_of == first.as_of
    assert second.confirmed_at > first.confirmed_at
    assert Cluster.objects.get().read_as_of == second.confirmed_at


@time_machine.travel("2026-11-30T09:00:00Z")
def test_a_change_makes_a_new_reading_and_overtakes_one_that_nobody_took(api: FakeApiServer) -> None:
    poll()
    api.store.write(raw.gang("second"))
    poll()
    assert Reading.objects.count() == 1
    Reading.objects.update(claimed_at=Reading.objects.get().as_of)
    api.store.write(raw.gang("third"))
    poll()
    assert Reading.objects.count() == 2
    assert Gang.objects.count() == 3


def test_nothing_secret_and_no_credential_reaches_the_database(api: FakeApiServer) -> None:
    poll()
    stored = zlib.decompress(bytes(ReadingContent.objects.get().packed), wbits=31).decode()
    assert '"wait-0"' in stored
    for row in [stored, *_all_rows()]:
        assert SECRET not in row
        assert api.token not in row


def _all_rows() -> Iterator[str]:
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')
            yield repr(cursor.fetchall())


def test_every_request_was_a_get(api: FakeApiServer) -> None:
    poll()
    assert {request.method for request in api.requests} == {"GET"}


def test_a_forbidden_optional_kind_is_named_and_the_rest_is_read(api: FakeApiServer) -> None:
    api.faults.forbid("events")
    run = poll()
    event = KindFreshness.objects.get(kind="Event")
    assert run.outcome == "read"
    assert (event.is_read, event.count) == (False, None)
    assert event.reason.startswith("403")
    assert Gang.objects.count() == 1


def test_a_forbidden_required_kind_makes_the_poll_partial_and_keeps_what_is_known(api: FakeApiServer) -> None:
    poll()
    api.faults.forbid("podgroups")
    api.store.write([raw.node("n3")])
    run = poll()
    assert run.outcome == "partial"
    assert Gang.objects.get().gone_at is None
    assert Node.objects.count() == 3


def test_a_kind_that_is_not_served_is_not_an_error(api: FakeApiServer) -> None:
    api.faults.unserve("topologies")
    run = poll()
    assert run.outcome == "read"
    assert KindFreshness.objects.get(kind="Topology").reason.startswith("not served")


@pytest.mark.parametrize(
    "fault", [lambda f: f.fail("pods"), lambda f: f.malformed("pods"), lambda f: f.truncate("pods")]
)
def test_an_accident_with_a_required_kind_is_not_taken_for_the_truth(api: FakeApiServer, fault: Any) -> None:
    poll()
    before = Cluster.objects.get().read_as_of
    fault(api.faults)
    api.store.write(raw.gang("second"))
    run = poll()
    assert (run.outcome, run.code) == ("failed", "required_kind")
    assert "Pod" in run.detail
    assert Gang.objects.count() == 1
    assert Cluster.objects.get().read_as_of == before
    assert not KindFreshness.objects.get(kind="Pod").is_read
    api.faults.clear()
    assert poll().outcome == "read"
    assert Gang.objects.count() == 2


def test_a_list_that_expires_in_the_middle_is_read_again(api: FakeApiServer) -> None:
    api.store.write([raw.pod(f"many-{index}", "wait") for index in range(600)])
    api.faults.expire("pods")
    assert poll().outcome == "read"
    assert Gang.objects.get().pods_total == 603


def test_a_cluster_that_is_down_is_told_and_left_longer_each_time(api: FakeApiServer, tmp_path: Path) -> None:
    poll()
    api.stop()
    first, second = poll(), poll()
    assert [first.outcome, second.outcome] == ["failed", "failed"]
    cluster = Cluster.objects.get()
    assert (cluster.fault_code, cluster.failures) == ("unreachable", 2)
    assert cluster.next_poll_at is not None
    runs = PollRun.objects.count()
    tasks.poll_clusters()
    assert PollRun.objects.count() == runs
    assert Gang.objects.get().gone_at is None


def test_a_rotated_credential_is_followed(api: FakeApiServer, tmp_path: Path) -> None:
    poll()
    api.rotate_token()
    assert poll().code == "unauthorized"
    api.kubeconfig(tmp_path / "east.yaml")
    assert poll().outcome == "read"


def test_a_removed_kubeconfig_ends_the_reading_and_keeps_the_history(api: FakeApiServer, tmp_path: Path) -> None:
    poll()
    (tmp_path / "east.yaml").unlink()
    runs = PollRun.objects.count()
    tasks.poll_clusters()
    assert PollRun.objects.count() == runs
    assert not Cluster.objects.get().is_read
    assert Gang.objects.count() == 1


@pytest.mark.parametrize("content", ["{{ broken", "", "current-context: nowhere\n", "\x00\x01"])
def test_a_broken_kubeconfig_is_one_clear_fault(api: FakeApiServer, tmp_path: Path, content: str) -> None:
    (tmp_path / "east.yaml").write_text(content)
    run = poll()
    assert (run.outcome, run.code) == ("failed", "kubeconfig")
    assert "\n" not in run.detail


def test_two_workers_do_not_read_one_cluster_at_once(api: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    inner: list[int] = []

    def read_and_try_again(source: Any) -> Any:
        tasks.poll_cluster(Cluster.objects.get().pk)
        inner.append(PollRun.objects.count())
        return connections.cluster_read(source)

    monkeypatch.setattr(services, "cluster_read", read_and_try_again)
    poll()
    assert inner == [1]


def test_a_poll_that_is_killed_is_taken_up_after_its_lock_ends(
    api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(services, "rows_sync", _killed)
        with pytest.raises(KeyboardInterrupt):
            tasks.poll_clusters()
    assert not Reading.objects.exists()
    assert not Gang.objects.exists()
    tasks.poll_clusters()
    assert not Reading.objects.exists()  # still locked
    Cluster.objects.update(locked_until=None)
    poll()
    assert list(PollRun.objects.order_by("pk").values_list("outcome", flat=True)) == ["lost", "read"]
    assert Gang.objects.count() == 1


def _killed(**_arguments: Any) -> int:
    raise KeyboardInterrupt


def test_a_fault_of_ours_lets_the_cluster_go_and_is_recorded(
    api: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_arguments: Any) -> int:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(services, "rows_sync", broken)
        run = poll()
    assert (run.outcome, run.code) == ("failed", "fault")
    assert not Reading.objects.exists()
    assert poll().outcome == "read"


def test_a_poll_asks_for_diagnosis_once_it_is_committed_and_a_failed_one_does_not(
    api: FakeApiServer, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(services, "diagnosis_ask", lambda: asked.append(1))
    with django_capture_on_commit_callbacks(execute=True):
        poll()
    assert asked == [1]
    api.faults.fail("pods")
    with django_capture_on_commit_callbacks(execute=True):
        poll()
    assert asked == [1]


def test_kinds_that_seldom_change_are_not_asked_for_each_time(api: FakeApiServer) -> None:
    poll()
    api.requests.clear()
    assert poll().is_unchanged
    asked = {request.path.rsplit("/", 1)[-1] for request in api.requests}
    assert "pods" in asked
    assert "storageclasses" not in asked
