"""What only Prometheus knows, against a real HTTP server that answers like it, and in every way that it should not."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_django import Settings

from apps.reports import prometheus
from apps.reports.facts.period import Period
from apps.reports.prometheus import Prometheus, PrometheusError, metric_facts, prometheus_for
from tests.apps.reports.sections.build import END, period

Answer = tuple[int, bytes | dict[str, Any]]


class Server:
    """A server whose answers the test gives; remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], str | None]] = []
        self.answer: Callable[[str, dict[str, str]], Answer] = lambda *_: (200, vector())
        self.stop = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                outer.asked.append((parts.path, query, self.headers["Authorization"]))
                status, body = outer.answer(parts.path, query)
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}"

    def close(self) -> None:
        self.stop.set()
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


def vector(*values: object) -> dict[str, Any]:
    result = [{"metric": {"gpu": str(at)}, "value": [1.0, str(value)]} for at, value in enumerate(values)]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def matrix(values: dict[int, object]) -> dict[str, Any]:
    result = [{"metric": {}, "values": [[at, str(value)] for at, value in values.items()]}] if values else []
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def facts(server: Server, span: Period | None = None) -> prometheus.MetricFacts:
    return metric_facts(span or period(), Prometheus(server.url, "s3cret"))


def test_numbers_come_from_the_right_queries_at_the_end_of_the_span(server: Server) -> None:
    answers = {
        "count(last_over_time(DCGM": vector(8),
        "count((last_over_time": vector(6),
        "count((max_over_time": vector(2),
        "avg((avg_over_time": vector(41.5),
        "quantile_over_time(0.5": vector(400, 350),
        "quantile_over_time(0.95": vector(1100),
        "sum(increase(kai_scenario": vector(3),
    }

    def answer(path: str, query: dict[str, str]) -> Answer:
        if path.endswith("query_range"):
            return 200, matrix({round((END - timedelta(hours=23)).timestamp()): 12, round(END.timestamp()): "NaN"})
        return 200, next(found for begin, found in answers.items() if query["query"].startswith(begin))

    server.answer = answer
    found = facts(server)
    values = [
        found.devices,
        found.held,
        found.idle,
        found.mean_use,
        found.cycle_median,
        found.cycle_95th,
        found.exhausted,
    ]
    assert [reading.value for reading in values] == [8, 6, 2, 41.5, 400, 1100, 3]
    assert found.use[0] == 12
    assert found.use[1:] == (None,) * 23
    paths = {path for path, _, _ in server.asked}
    assert paths == {"/api/v1/query", "/api/v1/query_range"}
    assert {token for _, _, token in server.asked} == {"Bearer s3cret"}
    assert {query["time"] for path, query, _ in server.asked if path == "/api/v1/query"} == {f"{END.timestamp():.3f}"}
    assert any("[86400s]" in query["query"] for _, query, _ in server.asked)


def test_no_series_is_not_read_but_no_idle_device_is_zero(server: Server) -> None:
    found = facts(server)
    assert found.devices.value is None
    assert found.idle.value is None
    assert found.idle.reason == "the server has no such metric"
    assert "DCGM" in found.idle.remedy
    assert "8080" in found.cycle_median.remedy
    server.answer = lambda _, query: (200, vector(8) if query["query"].startswith("count(last") else vector())
    assert facts(server).idle.value == 0
    assert facts(server).mean_use.value is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_what_is_no_number_is_not_read(server: Server, value: str) -> None:
    server.answer = lambda *_: (200, vector(value))
    assert facts(server).mean_use.reason == "the server has no such metric"
    server.answer = lambda *_: (200, vector(value, 7))
    assert facts(server).mean_use.value == 7


ERROR = {"status": "error", "errorType": "timeout", "error": "query timed out in expression evaluation"}


@pytest.mark.parametrize(
    "answer, reason",
    [
        ((503, ERROR), "the server refused the query: query timed out in expression evaluation"),
        ((200, ERROR), "the server refused the query: query timed out in expression evaluation"),
        ((401, b"no"), "the server answered with status 401"),
        ((302, b""), "the server answered with status 302"),
        ((200, b"<html>login</html>"), "what the server answered is not Prometheus' JSON"),
        ((200, b'{"status": "success"'), "what the server answered is not Prometheus' JSON"),
        ((200, b""), "what the server answered is not Prometheus' JSON"),
        ((200, {"status": "success"}), "the server refused the query: "),
        ((200, {"status": "success", "data": {"resultType": "vector", "result": [{"value": [1]}]}}), "what the server"),
        (
            (200, {"status": "success", "data": {"resultType": "scalar", "result": []}}),
            "the server answered with a scalar",
        ),
    ],
)
def test_a_wrong_answer_is_a_reason_and_never_a_number(server: Server, answer: Answer, reason: str) -> None:
    server.answer = lambda *_: answer
    found = facts(server)
    assert found.mean_use.value is None
    assert found.mean_use.reason.startswith(reason)
    assert found.use == ()
    assert len({path for path, _, _ in server.asked}) == 1


def test_a_slow_server_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "READ_SECONDS", 0.05)
    server.answer = lambda *_: (server.stop.wait(5), (200, vector(1)))[1]
    with pytest.raises(PrometheusError, match="did not answer within"):
        Prometheus(server.url).instant("up", END)


def test_an_endless_answer_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "ANSWER_MAX", 1000)
    server.answer = lambda *_: (200, b" " * 200_000)
    with pytest.raises(PrometheusError, match="larger than"):
        Prometheus(server.url).instant("up", END)


def test_nobody_there_is_said_without_address_and_token(server: Server) -> None:
    server.close()
    with pytest.raises(PrometheusError, match=r"^the server cannot be reached \(ConnectionError\)$"):
        Prometheus(server.url, "s3cret").instant("up", END)


def test_some_answers_are_shown_where_others_fail(server: Server) -> None:
    server.answer = lambda _, query: (200, vector(5)) if "kai_e2e" in query["query"] else (500, b"oops")
    found = facts(server)
    assert found.cycle_median.value == 5
    assert found.devices.reason == "the server answered with status 500"


def test_which_server_a_cluster_has(settings: Settings) -> None:
    settings.GANGDASH_PROMETHEUS_URLS, settings.GANGDASH_PROMETHEUS_TOKEN = {}, "t"
    assert prometheus_for("east", alone=True) == "no Prometheus is connected"
    settings.GANGDASH_PROMETHEUS_URLS = {"": "http://one"}
    assert prometheus_for("east", alone=True) == Prometheus("http://one", "t")
    assert "several clusters are read" in str(prometheus_for("east", alone=False))
    settings.GANGDASH_PROMETHEUS_URLS = {"east": "http://east"}
    assert prometheus_for("east", alone=False) == Prometheus("http://east", "t")
    assert prometheus_for("west", alone=False) == "no Prometheus is connected"


def test_what_is_not_connected_says_how() -> None:
    found = metric_facts(period(), "no Prometheus is connected")
    assert found.idle.remedy.startswith("Set GANGDASH_PROMETHEUS_URL")
    found = metric_facts(period(), "its address has no cluster's name, and several clusters are read")
    assert found.idle.remedy == "Write GANGDASH_PROMETHEUS_URL as NAME=URL,NAME=URL"


def test_the_token_is_not_in_what_is_printed() -> None:
    assert "s3cret" not in repr(Prometheus("http://one", "s3cret"))
