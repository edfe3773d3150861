"""The fake API server answers as a real one does, over real HTTP."""

from __future__ import annotations

import json
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from gangdash.simulator.server import FakeApiServer
from tests.simulator.objects import pod, pods, queue

METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    graph: dict[str, Any] = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "spec": {}}
    graph["metadata"] = {"name": "llm", "namespace": "team"}
    with FakeApiServer([*pods(5), pod("alone", "other"), queue("team-a"), graph]) as server:
        yield server


@pytest.fixture
def session(api: FakeApiServer) -> Iterator[requests.Session]:
    with requests.Session() as client:
        client.headers["Authorization"] = f"Bearer {api.token}"
        yield client


def _get(api: FakeApiServer, session: requests.Session, path: str, **query: object) -> Any:
    answer = session.get(api.url + path, params={key: str(value) for key, value in query.items()}, timeout=5)
    return answer.json() | {"_code": answer.status_code}


def _names(listed: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def test_discovery_names_what_can_be_read(api: FakeApiServer, session: requests.Session) -> None:
    groups = {group["name"] for group in _get(api, session, "/apis")["groups"]}
    resources = _get(api, session, "/apis/scheduling.run.ai/v2alpha2")["resources"]

    assert {"scheduling.run.ai", "kai.scheduler", "grove.io", "scheduler.grove.io", "nvidia.com"} <= groups
    assert [(r["name"], r["namespaced"], r["verbs"]) for r in resources] == [
        ("podgroups", True, ["get", "list", "watch"])
    ]
    assert "pods" in {resource["name"] for resource in _get(api, session, "/api/v1")["resources"]}
    assert _get(api, session, "/version")["gitVersion"].startswith("v1.")


def test_list_of_builtin_kind_has_items_without_kind(api: FakeApiServer, session: requests.Session) -> None:
    listed = _get(api, session, "/api/v1/pods")

    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert not {"kind", "apiVersion"} & set(listed["items"][0])
    assert listed["items"][0]["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]
    assert len(listed["items"]) == 6


def test_list_of_custom_kind_has_items_with_kind(api: FakeApiServer, session: requests.Session) -> None:
    item = _get(api, session, "/apis/scheduling.run.ai/v2/queues")["items"][0]

    assert (item["kind"], item["apiVersion"]) == ("Queue", "scheduling.run.ai/v2")
    assert item["metadata"]["uid"]


def test_namespaced_list_and_single_object(api: FakeApiServer, session: requests.Session) -> None:
    assert _names(_get(api, session, "/api/v1/namespaces/other/pods")) == ["alone"]
    assert _names(_get(api, session, "/api/v1/namespaces/nowhere/pods")) == []
    one = _get(api, session, "/api/v1/namespaces/other/pods/alone")
    assert (one["kind"], one["metadata"]["namespace"]) == ("Pod", "other")
    missing = _get(api, session, "/api/v1/namespaces/other/pods/none")
    assert (missing["_code"], missing["reason"]) == (404, "NotFound")


def test_pages_show_one_revision_though_the_cluster_moves_on(api: FakeApiServer, session: requests.Session) -> None:
    first = _get(api, session, "/api/v1/pods", limit=2)
    api.store.delete("pods", "team", "pod-004")
    api.store.put(pod("pod-002", app="changed"))
    api.store.put(pod("pod-009"))
    second = _get(api, session, "/api/v1/pods", limit=100, **{"continue": first["metadata"]["continue"]})

    assert _names(first) + _names(second) == ["alone", *(f"pod-{n:03}" for n in range(5))]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert first["metadata"]["remainingItemCount"] == 4
    assert "continue" not in second["metadata"]
    assert second["items"][1]["metadata"]["labels"] == {}
    assert "pod-009" in _names(_get(api, session, "/api/v1/pods"))


def test_token_of_forgotten_revision_is_gone_and_offers_another(api: FakeApiServer, session: requests.Session) -> None:
    first = _get(api, session, "/api/v1/pods", limit=2)
    api.store.put(pod("pod-009"))
    api.store.compact()
    gone = _get(api, session, "/api/v1/pods", limit=2, **{"continue": first["metadata"]["continue"]})
    rest = _get(api, session, "/api/v1/pods", **{"continue": gone["metadata"]["continue"]})

    assert (gone["_code"], gone["reason"], gone["kind"]) == (410, "Expired", "Status")
    assert _names(rest) == ["pod-001", "pod-002", "pod-003", "pod-004", "pod-009"]


def test_limit_is_ignored_from_the_cache(api: FakeApiServer, session: requests.Session) -> None:
    listed = _get(api, session, "/api/v1/pods", limit=2, resourceVersion=0)

    assert len(listed["items"]) == 6
    assert "continue" not in listed["metadata"]


@pytest.mark.parametrize(
    "query, code",
    [
        ({"continue": "not-a-token"}, 400),
        ({"limit": "many"}, 400),
        ({"resourceVersion": "abc"}, 400),
        ({"resourceVersion": "999999"}, 504),
        ({"resourceVersionMatch": "Exact"}, 400),
        ({"fieldSelector": "spec.hostNetwork=true"}, 400),
        ({"labelSelector": "a in b"}, 400),
    ],
)
def test_wrong_list_queries_are_refused(
    api: FakeApiServer, session: requests.Session, query: dict[str, str], code: int
) -> None:
    answer = _get(api, session, "/api/v1/pods", **query)

    assert (answer["_code"], answer["code"], answer["kind"]) == (code, code, "Status")


def test_exact_revision_is_listed_as_it_was(api: FakeApiServer, session: requests.Session) -> None:
    before = _get(api, session, "/api/v1/pods")["metadata"]["resourceVersion"]
    api.store.delete("pods", "team", "pod-000")
    listed = _get(api, session, "/api/v1/pods", resourceVersion=before, resourceVersionMatch="Exact")

    assert "pod-000" in _names(listed)


def test_selectors_choose_objects(api: FakeApiServer, session: requests.Session) -> None:
    api.store.put(pod("red", app="a", tier="x"))
    api.store.put(pod("blue", app="b", tier="x"))

    def by_label(selector: str) -> list[str]:
        return _names(_get(api, session, "/api/v1/pods", labelSelector=selector))

    assert by_label("app=a") == ["red"]
    assert by_label("app in (a, b),tier=x") == ["blue", "red"]
    assert by_label("app,app!=a") == ["blue"]
    assert len(by_label("!app")) == 6
    assert by_label("app notin (a),tier") == ["blue"]
    named = _get(api, session, "/api/v1/pods", fieldSelector="metadata.name=red,status.phase=Pending")
    assert _names(named) == ["red"]


def test_metadata_form_carries_metadata_only(api: FakeApiServer, session: requests.Session) -> None:
    session.headers["Accept"] = METADATA_ONLY
    listed = _get(api, session, "/api/v1/pods", limit=1)

    assert listed["kind"] == "PartialObjectMetadataList"
    assert set(listed["items"][0]) == {"kind", "apiVersion", "metadata"}
    assert listed["metadata"]["continue"]


def test_old_version_is_served_with_a_warning(api: FakeApiServer, session: requests.Session) -> None:
    path = "/apis/nvidia.com/v1alpha1/namespaces/team/dynamographdeployments"
    answer = session.get(api.url + path, timeout=5)

    assert answer.json()["items"][0]["apiVersion"] == "nvidia.com/v1alpha1"
    assert "deprecated" in answer.headers["Warning"]


@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH", "DELETE"])
def test_writing_verbs_are_refused(api: FakeApiServer, session: requests.Session, verb: str) -> None:
    path = "/api/v1/namespaces/team/pods/pod-000"
    answer = session.request(verb, api.url + path, data=b'{"a": 1}', timeout=5)

    assert answer.status_code == 405
    assert answer.json()["reason"] == "MethodNotAllowed"
    assert _get(api, session, path)["_code"] == 200


def test_wrong_or_rotated_token_is_unauthorized(api: FakeApiServer, session: requests.Session) -> None:
    assert requests.get(f"{api.url}/api/v1/pods", timeout=5).status_code == 401
    assert requests.get(f"{api.url}/readyz", timeout=5).text == "ok"
    api.rotate_token()
    assert _get(api, session, "/api/v1/pods")["reason"] == "Unauthorized"


@pytest.mark.parametrize(
    "path", ["/apis/none.example/v1/things", "/api/v1/namespaces/a/nodes", "/api/v1/pods/a/b/c", "/"]
)
def test_unknown_paths_answer_plain_text(api: FakeApiServer, session: requests.Session, path: str) -> None:
    answer = session.get(api.url + path, timeout=5)

    assert (answer.status_code, answer.text.strip()) == (404, "404 page not found")


def test_connection_is_kept_for_many_requests(api: FakeApiServer) -> None:
    with socket.create_connection(("127.0.0.1", int(api.url.rpartition(":")[2])), timeout=5) as raw:
        for _ in range(3):
            raw.sendall(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n")
            answer = b""
            while not answer.endswith(b"\r\n\r\nok"):
                answer += raw.recv(4096)
            assert answer.startswith(b"HTTP/1.1 200")


def test_large_answers_are_compressed_on_request(api: FakeApiServer, session: requests.Session) -> None:
    api.store.write(pods(400))
    answer = session.get(f"{api.url}/api/v1/pods", timeout=5)
    plain = session.get(f"{api.url}/api/v1/pods", headers={"Accept-Encoding": "identity"}, timeout=5)

    assert answer.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain.headers
    assert len(answer.json()["items"]) == len(plain.json()["items"]) == 401


def test_secrets_are_always_refused(api: FakeApiServer, session: requests.Session) -> None:
    assert _get(api, session, "/api/v1/secrets")["_code"] == 403


def test_watch_tells_changes_after_a_revision(api: FakeApiServer, session: requests.Session) -> None:
    start = _get(api, session, "/api/v1/pods")["metadata"]["resourceVersion"]
    query = {"watch": "1", "resourceVersion": start, "timeoutSeconds": "30", "allowWatchBookmarks": "true"}
    with session.get(f"{api.url}/api/v1/pods", params=query, stream=True, timeout=5) as answer:
        api.store.put(pod("new"))
        api.store.put(queue("unrelated"))
        api.store.put(pod("new", app="changed"))
        api.store.delete("pods", "team", "new")
        lines = answer.iter_lines()
        events = [json.loads(next(lines)) for _ in range(3)]
        api.end_watches()
        last = json.loads(next(lines))

    assert answer.headers["Transfer-Encoding"] == "chunked"
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert {event["object"]["kind"] for event in events} == {"Pod"}
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    assert versions[0] > int(start)
    assert last["type"] == "BOOKMARK"


def test_watch_without_revision_begins_with_what_is_there(api: FakeApiServer, session: requests.Session) -> None:
    query = {"watch": "true", "timeoutSeconds": "1"}
    answer = session.get(f"{api.url}/api/v1/namespaces/other/pods", params=query, timeout=5)

    events = [json.loads(line) for line in answer.text.splitlines()]
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("ADDED", "alone")]


def test_watch_from_forgotten_revision_gets_an_error_event(api: FakeApiServer, session: requests.Session) -> None:
    api.store.put(pod("new"))
    api.store.compact()
    answer = session.get(f"{api.url}/api/v1/pods", params={"watch": "1", "resourceVersion": "2"}, timeout=5)

    event = json.loads(answer.text)
    assert (answer.status_code, event["type"], event["object"]["code"]) == (200, "ERROR", 410)


def test_request_log_and_kubeconfig(api: FakeApiServer, session: requests.Session, tmp_path: Path) -> None:
    _get(api, session, "/api/v1/pods", limit=1)
    path = api.kubeconfig(tmp_path / "config", name="demo")

    assert (api.requests[-1].method, api.requests[-1].path) == ("GET", "/api/v1/pods")
    assert api.requests[-1].query == {"limit": "1"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["config"]
    config = yaml.safe_load(path.read_text())
    assert config["clusters"][0]["cluster"]["server"] == api.url
    assert config["users"][0]["user"]["token"] == api.token


def test_stop_is_immediate_with_a_watch_and_an_idle_connection_open() -> None:
    api = FakeApiServer(pods(1)).start()
    headers = {"Authorization": f"Bearer {api.token}"}
    idle = socket.create_connection(("127.0.0.1", int(api.url.rpartition(":")[2])), timeout=5)
    ended = threading.Event()

    def watch() -> None:
        with requests.get(f"{api.url}/api/v1/pods?watch=1", headers=headers, stream=True, timeout=10) as answer:
            try:
                for _line in answer.iter_lines():
                    pass
            except requests.exceptions.ChunkedEncodingError:
                pass
        ended.set()

    thread = threading.Thread(target=watch)
    thread.start()
    while not api.requests:
        time.sleep(0.01)
    began = time.monotonic()
    api.stop()

    assert ended.wait(5)
    assert time.monotonic() - began < 2
    assert idle.recv(1) == b""
    idle.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(api.url.rpartition(":")[2])), timeout=1)
