"""Each switch breaks what it says, for as long as it says, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import requests

from gangdash.simulator.answers import Response
from gangdash.simulator.faults import ALL, DISCOVERY
from gangdash.simulator.server import FakeApiServer
from tests.simulator.objects import pods, queue


@pytest.fixture
def api() -> Iterator[FakeApiServer]:
    with FakeApiServer([*pods(8), queue("team-a")]) as server:
        yield server


def _get(api: FakeApiServer, path: str = "/api/v1/pods", query: str = "") -> requests.Response:
    headers = {"Authorization": f"Bearer {api.token}"}
    return requests.get(f"{api.url}{path}?{query}", headers=headers, timeout=5)


def test_forbid_is_for_one_kind_until_cleared(api: FakeApiServer) -> None:
    api.faults.forbid("Pod")

    assert [_get(api).status_code for _ in range(3)] == [403, 403, 403]
    assert _get(api).json()["reason"] == "Forbidden"
    assert _get(api, "/api/v1/nodes").status_code == 200
    api.faults.clear("pods")
    assert _get(api).status_code == 200


def test_throttle_counts_down(api: FakeApiServer) -> None:
    api.faults.throttle("pods", times=2, retry_after=3)
    answers = [_get(api) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [429, 429, 200]
    assert answers[0].headers["Retry-After"] == "3"


def test_fail_answers_any_status(api: FakeApiServer) -> None:
    api.faults.fail("pods", status=503, times=1)

    assert [_get(api).status_code for _ in range(2)] == [503, 200]


def test_expire_strikes_in_mid_list_only(api: FakeApiServer) -> None:
    api.faults.expire("pods")
    token = _get(api, query="limit=3").json()["metadata"]["continue"]
    gone = _get(api, query=f"limit=3&continue={token}")
    again = _get(api, query=f"limit=3&continue={token}")

    assert (gone.status_code, gone.json()["reason"]) == (410, "Expired")
    assert gone.json()["metadata"]["continue"]
    assert again.status_code == 200


def test_slow_waits(api: FakeApiServer) -> None:
    api.faults.slow("pods", 0.2, times=1)
    began = time.monotonic()
    _get(api)

    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize("path", ["/api/v1/pods", "/api/v1/namespaces/none/pods"])
def test_cut_breaks_the_connection_in_the_body(api: FakeApiServer, path: str) -> None:
    api.faults.cut("pods", times=1)

    with pytest.raises((requests.exceptions.ChunkedEncodingError, requests.exceptions.ConnectionError)):
        _get(api, path)
    assert _get(api, path).status_code == 200


def test_truncated_and_malformed_bodies_arrive_whole_and_do_not_parse(api: FakeApiServer) -> None:
    good = len(_get(api).content)
    api.faults.truncate("pods", keep=0.25, times=1)
    short = _get(api)
    api.faults.malformed("pods", times=1)
    wrong = _get(api)

    assert (short.status_code, wrong.status_code) == (200, 200)
    assert (len(short.content), len(wrong.content)) == (good // 4, good)
    for answer in (short, wrong):
        with pytest.raises(requests.exceptions.JSONDecodeError):
            answer.json()


def test_huge_grows_the_answer_and_keeps_it_valid(api: FakeApiServer) -> None:
    good = len(_get(api).content)
    api.faults.huge("pods", 3_000_000, times=1)
    answer = _get(api)

    assert len(answer.content) == good + 3_000_000
    assert len(answer.json()["items"]) == 8


def test_ignore_limit_sends_one_page(api: FakeApiServer) -> None:
    api.faults.ignore_limit("pods")

    assert len(_get(api, query="limit=2").json()["items"]) == 8


def test_unserved_kind_is_nowhere(api: FakeApiServer) -> None:
    api.faults.unserve("queues")

    assert _get(api, "/apis/scheduling.run.ai/v2/queues").status_code == 404
    assert _get(api, "/apis/scheduling.run.ai/v2").status_code == 404
    groups = {group["name"]: group for group in _get(api, "/apis").json()["groups"]}
    assert "v2" not in {version["version"] for version in groups["scheduling.run.ai"]["versions"]}
    api.faults.clear()
    assert _get(api, "/apis/scheduling.run.ai/v2/queues").status_code == 200


def test_answer_puts_anything_in_place(api: FakeApiServer) -> None:
    api.faults.answer("pods", Response(502, b"<html>bad gateway</html>", "text/html"))

    assert _get(api).headers["Content-Type"] == "text/html"
    assert _get(api, query="watch=1").status_code == 502


def test_faults_for_all_and_for_discovery(api: FakeApiServer) -> None:
    api.faults.fail(DISCOVERY, status=500)
    assert [_get(api, path).status_code for path in ("/version", "/apis", "/api/v1/pods")] == [500, 500, 200]
    api.faults.fail(ALL, status=500)
    assert _get(api).status_code == 500


def test_faults_of_one_kind_add_up(api: FakeApiServer) -> None:
    api.faults.slow("pods", 0.1)
    api.faults.truncate("pods")
    began = time.monotonic()

    with pytest.raises(requests.exceptions.JSONDecodeError):
        _get(api).json()
    assert time.monotonic() - began >= 0.1


def test_unknown_kind_is_refused_at_the_switch(api: FakeApiServer) -> None:
    with pytest.raises(KeyError, match="pod_groups"):
        api.faults.forbid("pod_groups")
