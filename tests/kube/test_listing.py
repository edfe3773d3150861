"""A cluster read over real HTTP: what is read, and what happens to each kind when its list goes wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gangdash.kube import kinds
from gangdash.kube.client import Client, open_client
from gangdash.kube.errors import Unauthorized, Unreachable
from gangdash.kube.listing import SELDOM, read_cluster
from gangdash.kube.reading import Reading
from gangdash.kube.records import kai
from gangdash.simulator.answers import Response
from gangdash.simulator.faults import ALL, DISCOVERY
from gangdash.simulator.kinds import KINDS as SERVED
from gangdash.simulator.server import FakeApiServer
from tests.kube import raw

PODS = 1203
"""Three pages."""
PROXY_PAGE = Response(200, b"<html>login</html>", "text/html")
ELSEWHERE = Response(302, b"", headers={"Location": "http://127.0.0.1:1/"})


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    objects = [raw.pod(f"p-{i:04}") for i in range(PODS)]
    objects += [raw.node("n-0"), raw.queue("q"), raw.podgroup(), raw.shard("default")]
    objects += [raw.config_map("kai-scheduler-default", "kai-scheduler", config_yaml="actions: allocate\ntiers: [{}]")]
    objects += [raw.config_map("other", "team", password="s3cret")]
    with FakeApiServer(objects) as server:
        yield server


@pytest.fixture
def client(api: FakeApiServer, tmp_path: Path) -> Iterator[Client]:
    opened = open_client(api.kubeconfig(tmp_path / "kubeconfig"))
    yield opened
    opened.close()


def _only(*names: str) -> list[kinds.Kind]:
    return [kinds.by_name()[name] for name in names]


def _names(reading: Reading, kind: str) -> list[str]:
    return [record.metadata.name for record in reading.items[kind]]


def _paths(api: FakeApiServer, end: str) -> list[dict[str, Any]]:
    return [dict(request.query) for request in api.requests if request.path.endswith(end)]


def test_all_pages_are_read_and_accounted_for(api: FakeApiServer, client: Client) -> None:
    before = datetime.now(UTC)
    reading = read_cluster(client)
    status = reading.statuses["Pod"]

    assert _names(reading, "Pod") == [f"p-{i:04}" for i in range(PODS)]
    assert (status.count, status.reason, status.requests) == (PODS, "", 3)
    assert status.received_bytes > 100_000
    assert before <= status.read_at <= reading.as_of
    assert [query.get("limit") for query in _paths(api, "/pods")] == ["500", "500", "500"]
    assert reading.not_read.keys() == {kind.name for kind in kinds.KINDS if not kind.live}
    assert reading.source == "live"


def test_nothing_but_get_is_ever_sent(api: FakeApiServer, client: Client) -> None:
    read_cluster(client)

    assert {request.method for request in api.requests} == {"GET"}
    assert not [request.path for request in api.requests if "secrets" in request.path]
    assert not [name for name in dir(client) if name in {"post", "put", "patch", "delete", "request"}]


def test_list_that_expires_is_begun_again(api: FakeApiServer, client: Client) -> None:
    api.faults.expire("pods", times=1)
    reading = read_cluster(client, _only("Pod"))

    assert _names(reading, "Pod") == [f"p-{i:04}" for i in range(PODS)]
    assert reading.statuses["Pod"].requests == 5


def test_list_that_keeps_expiring_is_asked_for_whole(api: FakeApiServer, client: Client) -> None:
    api.faults.expire("pods", times=None)
    reading = read_cluster(client, _only("Pod"))

    assert len(reading.items["Pod"]) == PODS
    assert "limit" not in _paths(api, "/pods")[-1]


def test_server_without_paging_is_read(api: FakeApiServer, client: Client) -> None:
    api.faults.ignore_limit("pods")

    assert len(read_cluster(client, _only("Pod")).items["Pod"]) == PODS


def test_throttled_list_waits_as_told(api: FakeApiServer, client: Client) -> None:
    api.faults.throttle("queues", times=1, retry_after=1)
    reading = read_cluster(client, _only("Queue"))

    assert _names(reading, "Queue") == ["q"]
    assert reading.statuses["Queue"].took_ms >= 1000


def test_server_error_that_passes_is_no_error(api: FakeApiServer, client: Client) -> None:
    api.faults.fail("queues", status=500, times=1)

    assert _names(read_cluster(client, _only("Queue")), "Queue") == ["q"]


@pytest.mark.parametrize(
    "fault,reason",
    [
        (lambda faults: faults.forbid("podgroups"), "403"),
        (lambda faults: faults.unserve("podgroups"), "not served"),
        (lambda faults: faults.throttle("podgroups", times=None, retry_after=0), "429"),
        (lambda faults: faults.fail("podgroups", status=503), "503"),
        (lambda faults: faults.cut("podgroups"), "connection cut"),
        (lambda faults: faults.truncate("podgroups"), "malformed answer"),
        (lambda faults: faults.malformed("podgroups"), "malformed answer"),
        (lambda faults: faults.answer("podgroups", PROXY_PAGE), "malformed answer"),
        (lambda faults: faults.answer("podgroups", ELSEWHERE), "302"),
    ],
)  # fmt: skip
def test_kind_that_fails_is_named_and_the_others_are_read(
    api: FakeApiServer, client: Client, fault: Any, reason: str
) -> None:
    fault(api.faults)
    reading = read_cluster(client)
    status = reading.statuses["PodGroup"]

    assert reading.not_read["PodGroup"] == status.reason == reason
    assert status.count is None
    assert status.is_required
    assert "PodGroup" not in reading.items
    assert len(reading.items["Pod"]) == PODS
    assert _names(reading, "Queue") == ["q"]


def test_slow_kind_gives_up_at_the_deadline(api: FakeApiServer, client: Client) -> None:
    api.faults.slow("podgroups", 5)
    reading = read_cluster(client, _only("Queue", "PodGroup", "Node"), seconds=0.5)

    assert reading.not_read["PodGroup"] == "timed out"
    assert reading.not_read["Node"] == "timed out"
    assert _names(reading, "Queue") == ["q"]


def test_endless_answer_ends_at_the_limit(api: FakeApiServer, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gangdash.kube.client.LARGEST_ANSWER", 2**21)
    api.faults.huge("queues", 2**24)

    assert read_cluster(client, _only("Queue")).not_read["Queue"] == "too large"


def test_blanks_after_an_answer_are_no_fault(api: FakeApiServer, client: Client) -> None:
    api.faults.huge("queues", 2**21)

    assert _names(read_cluster(client, _only("Queue")), "Queue") == ["q"]


def test_bad_object_is_left_out_and_named(api: FakeApiServer, client: Client) -> None:
    api.store.write([raw.queue("odd", priority="first")])
    reading = read_cluster(client, _only("Queue"))

    assert _names(reading, "Queue") == ["q"]
    assert [(odd.object, odd.field) for odd in reading.oddities] == [("Queue/odd", "spec.priority")]


def test_older_version_is_read_where_the_newer_is_not_served(tmp_path: Path) -> None:
    claim = raw.thing("resource.k8s.io/v1beta1", "ResourceClaim", "c", "team")
    groups = b'{"groups":[{"name":"resource.k8s.io","versions":[{"version":"v1beta1"},{"version":"v1alpha3"}]}]}'
    with FakeApiServer([claim]) as api:
        api.faults.answer(DISCOVERY, Response(200, groups))
        client = open_client(api.kubeconfig(tmp_path / "kubeconfig"))
        reading = read_cluster(client, _only("ResourceClaim", "Queue"))

    assert _names(reading, "ResourceClaim") == ["c"]
    assert reading.items["ResourceClaim"][0].api_version == "resource.k8s.io/v1beta1"
    assert reading.not_read["Queue"] == "not served"
    assert reading.statuses["Queue"].requests == 0


def test_forbidden_discovery_is_no_obstacle(api: FakeApiServer, client: Client) -> None:
    api.faults.forbid(DISCOVERY)
    reading = read_cluster(client, _only("Queue", "PodGroup"))

    assert _names(reading, "Queue") == ["q"]
    assert _names(reading, "PodGroup") == ["gang"]


def test_config_maps_are_listed_by_name_and_only_the_schedulers_is_read(api: FakeApiServer, client: Client) -> None:
    reading = read_cluster(client, _only("SchedulingShard", "Config", "ConfigMap"))
    config_maps = {r.metadata.name: r for r in reading.items["ConfigMap"] if isinstance(r, kai.ConfigMap)}
    lists = [r for r in api.requests if r.path.endswith("/configmaps")]
    single = [r.path for r in api.requests if "/configmaps/" in r.path]

    assert config_maps.keys() == {"kai-scheduler-default", "other"}
    assert config_maps["other"].data is None
    assert config_maps["kai-scheduler-default"].scheduler_config is not None
    assert all("PartialObjectMetadataList" in r.accept for r in lists)
    assert single == ["/api/v1/namespaces/kai-scheduler/configmaps/kai-scheduler-default"]


def test_scheduler_configuration_may_be_allowed_alone(
    api: FakeApiServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = client.get

    def without_list(what: str, path: str, *args: Any, **kwargs: Any) -> bytes:
        if path == "/api/v1/configmaps":
            api.faults.forbid("configmaps", times=1)
        return get(what, path, *args, **kwargs)

    monkeypatch.setattr(client, "get", without_list)
    reading = read_cluster(client, _only("SchedulingShard", "Config", "ConfigMap"))

    assert reading.not_read["ConfigMap"] == "403"
    assert _names(reading, "ConfigMap") == ["kai-scheduler-default"]


def test_kind_that_seldom_changes_is_lent_by_the_last_reading(api: FakeApiServer, client: Client) -> None:
    first = read_cluster(client, _only("SchedulingShard", "Queue"))
    api.requests.clear()
    second = read_cluster(client, _only("SchedulingShard", "Queue"), previous=first)

    assert not _paths(api, "/schedulingshards")
    assert _paths(api, "/queues")
    assert second.items["SchedulingShard"] == first.items["SchedulingShard"]
    assert second.statuses["SchedulingShard"].read_at == first.statuses["SchedulingShard"].read_at


@pytest.mark.parametrize("age,forbidden", [(SELDOM + timedelta(seconds=5), False), (timedelta(0), True)])
def test_old_or_failed_kind_is_not_lent(
    api: FakeApiServer,
    client: Client,
    age: timedelta,
    forbidden: bool,
) -> None:
    if forbidden:
        api.faults.forbid("schedulingshards", times=1)
    first = read_cluster(client, _only("SchedulingShard"))
    status = first.statuses["SchedulingShard"]
    first.statuses["SchedulingShard"] = type(status)(**{**_fields(status), "read_at": status.read_at - age})
    api.requests.clear()
    second = read_cluster(client, _only("SchedulingShard"), previous=first)

    assert _paths(api, "/schedulingshards")
    assert _names(second, "SchedulingShard") == ["default"]


def test_kind_whose_group_went_away_is_not_lent(api: FakeApiServer, client: Client) -> None:
    first = read_cluster(client, _only("SchedulingShard", "Topology"))
    for kind in ("schedulingshards", "topologies", "configs"):
        api.faults.unserve(kind)
    second = read_cluster(client, _only("SchedulingShard", "Topology"), previous=first)

    assert second.not_read["SchedulingShard"] == second.not_read["Topology"] == "not served"
    assert "SchedulingShard" not in second.items


def test_what_seldom_changes_may_come_from_the_servers_cache(api: FakeApiServer, client: Client) -> None:
    read_cluster(client, _only("SchedulingShard", "Pod"))

    assert [query.get("resourceVersion") for query in _paths(api, "/schedulingshards")] == ["0"]
    assert [query.get("resourceVersion") for query in _paths(api, "/pods")] == [None] * 3


def test_cached_list_that_pages_goes_on_without_a_version(tmp_path: Path) -> None:
    shards = [raw.shard(f"s-{i:04}") for i in range(501)]
    with FakeApiServer(shards) as server:
        client = open_client(server.kubeconfig(tmp_path / "kubeconfig"))
        server.faults.page_cached("schedulingshards")
        reading = read_cluster(client, _only("SchedulingShard"))
        client.close()

    assert len(reading.items["SchedulingShard"]) == 501
    assert [q.get("resourceVersion") for q in _paths(server, "/schedulingshards")] == ["0", None]


def test_leases_of_nodes_are_not_asked_for(api: FakeApiServer, client: Client) -> None:
    read_cluster(client, _only("Lease"))

    assert _paths(api, "/leases")[0]["fieldSelector"] == "metadata.namespace!=kube-node-lease"


def _fields(status: Any) -> dict[str, Any]:
    return {name: getattr(status, name) for name in status.__dataclass_fields__}


def test_refused_credential_fails_the_reading(api: FakeApiServer, client: Client) -> None:
    api.rotate_token()

    with pytest.raises(Unauthorized, match="401"):
        read_cluster(client)


def test_server_that_is_gone_fails_the_reading(api: FakeApiServer, tmp_path: Path) -> None:
    path = api.kubeconfig(tmp_path / "kubeconfig")
    api.stop()

    with pytest.raises(Unreachable) as caught:
        read_cluster(open_client(path))
    assert caught.value.reason == "unreachable"


def test_everything_forbidden_is_still_a_reading(api: FakeApiServer, client: Client) -> None:
    api.faults.forbid(ALL)
    reading = read_cluster(client)

    assert reading.items == {}
    assert {status.reason for status in reading.statuses.values()} == {"403"}


def test_each_kind_may_be_refused_or_missing_alone(api: FakeApiServer, client: Client) -> None:
    for kind in kinds.live():
        if kind.name == "Node":
            continue
        served = next(s for s in SERVED if (s.group, s.kind) == (kind.group, kind.name)).resource
        api.faults.forbid(served)
        assert read_cluster(client, _only(kind.name, "Node")).not_read[kind.name] == "403"
        api.faults.clear()
        api.faults.unserve(served)
        reading = read_cluster(client, _only(kind.name, "Node"))
        assert (reading.not_read[kind.name], _names(reading, "Node")) == ("not served", ["n-0"])
        api.faults.clear()


def test_items_without_kind_and_a_warning_beside_them_are_read(api: FakeApiServer, client: Client) -> None:
    """Items of core kinds have no kind and version; a deprecated version comes with a warning in a header."""
    item = raw.node("n-1")
    del item["kind"], item["apiVersion"]
    body = json.dumps({"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": [item]}).encode()
    warning = {"Warning": '299 - "nvidia.com/v1alpha1 DynamoGraphDeployment is deprecated"'}
    api.faults.answer("nodes", Response(200, body, headers=warning))
    reading = read_cluster(client, _only("Node"))
    assert (_names(reading, "Node"), reading.oddities) == (["n-1"], [])
