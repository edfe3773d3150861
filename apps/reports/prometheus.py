"""Asks a Prometheus server what the cluster's own objects do not tell: use of devices, time of scheduling cycles.

Read-only instant and range queries over its HTTP API. Everything that can go wrong becomes a reason in words; a
missing metric, an unreachable server and a measured zero stay apart. Which address belongs to which cluster is in
``GANGDASH_PROMETHEUS_URL``. Device metrics are those of NVIDIA's DCGM exporter, cycle times those of KAI.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import msgspec
import requests
from django.conf import settings

from apps.reports.facts.period import Period

CONNECT_SECONDS, READ_SECONDS, TOTAL_SECONDS = 5, 10, 20
"""Of one query; a report has some seven of them."""
ANSWER_MAX = 8 * 1024**2
CHUNK = 64 * 1024
SETTING = "GANGDASH_PROMETHEUS_URL"
CONNECT = f"Set {SETTING} to the address of a Prometheus server that scrapes this cluster"
DEVICES = "Let that server scrape NVIDIA's DCGM exporter (metric DCGM_FI_DEV_GPU_UTIL)"
CYCLES = "Let that server scrape the scheduler's metrics (port 8080, metric kai_e2e_scheduling_latency_milliseconds)"

_UTIL = "DCGM_FI_DEV_GPU_UTIL"
_CYCLE = "kai_e2e_scheduling_latency_milliseconds"
_EXHAUSTED = "kai_scenario_search_action_budget_exhausted_total"


class PrometheusError(Exception):
    """Why a query has no answer, in words without the address or the token."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A measured number, or why there is none and what would connect it."""

    value: float | None
    reason: str = ""
    remedy: str = ""

    @property
    def is_read(self) -> bool:
        return self.value is not None


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """What was measured over one span. ``use`` are the mean shares per step, None where nothing was measured."""

    devices: Reading
    held: Reading
    idle: Reading
    mean_use: Reading
    cycle_median: Reading
    cycle_95th: Reading
    exhausted: Reading
    use: tuple[float | None, ...] = ()


class _Sample(msgspec.Struct):
    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct, rename="camel"):
    result_type: Literal["vector", "matrix", "scalar", "string"]
    result: list[_Sample]


class _Answer(msgspec.Struct, rename="camel"):
    status: Literal["success", "error"]
    data: _Data | None = None
    error_type: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One server. ``token`` is sent as a bearer token and never shown."""

    url: str
    token: str = field(default="", repr=False)

    def instant(self, query: str, at: datetime) -> list[float]:
        """Return the values at a moment, one per series; those that are no number are left out."""
        samples = self._ask("query", {"query": query, "time": _stamp(at)})
        numbers = [float(sample.value[1]) for sample in samples if sample.value is not None]
        return [number for number in numbers if math.isfinite(number)]

    def span(self, query: str, moments: Sequence[datetime]) -> tuple[float | None, ...]:
        """Return the value of the first series at equally spaced moments, None where there is none."""
        step = (moments[1] - moments[0]).total_seconds() if len(moments) > 1 else 60.0
        asked = {"query": query, "start": _stamp(moments[0]), "end": _stamp(moments[-1]), "step": f"{step:.0f}"}
        samples = self._ask("query_range", asked)
        found = {round(at): float(text) for at, text in (samples[0].values if samples else ())}
        values = (found.get(round(moment.timestamp())) for moment in moments)
        return tuple(value if value is not None and math.isfinite(value) else None for value in values)

    def _ask(self, what: str, asked: Mapping[str, str]) -> list[_Sample]:
        status, body = self._fetch(what, asked)
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except (msgspec.DecodeError, ValueError) as error:
            if status != requests.codes.ok:
                raise PrometheusError(f"the server answered with status {status}") from error
            raise PrometheusError("what the server answered is not Prometheus' JSON") from error
        if answer.status == "error" or answer.data is None:
            raise PrometheusError(f"the server refused the query: {(answer.error or answer.error_type)[:200]}")
        if answer.data.result_type not in {"vector", "matrix"}:
            raise PrometheusError(f"the server answered with a {answer.data.result_type}")
        return answer.data.result

    def _fetch(self, what: str, asked: Mapping[str, str]) -> tuple[int, bytes]:
        """Return status and body. Redirects are not followed, as the token would go with them."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            with requests.get(
                f"{self.url}/api/v1/{what}",
                params={**asked, "timeout": f"{READ_SECONDS}s"},
                headers=headers,
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                allow_redirects=False,
                stream=True,
            ) as response:
                return response.status_code, _body(response)
        except requests.Timeout as error:
            raise PrometheusError(f"the server did not answer within {READ_SECONDS} s") from error
        except requests.RequestException as error:
            raise PrometheusError(f"the server cannot be reached ({type(error).__name__})") from error


def _body(response: requests.Response) -> bytes:
    """Return the body of an answer that is neither endless nor endlessly slow."""
    began, parts, size = time.monotonic(), [], 0
    for part in response.iter_content(CHUNK):
        parts.append(part)
        size += len(part)
        if size > ANSWER_MAX:
            raise PrometheusError(f"the answer is larger than {ANSWER_MAX // 1024**2} MiB")
        if time.monotonic() - began > TOTAL_SECONDS:
            raise PrometheusError(f"the answer took longer than {TOTAL_SECONDS} s")
    return b"".join(parts)


def prometheus_for(cluster: str, *, alone: bool) -> Prometheus | str:
    """Return the server of a cluster, or why there is none. An address without a name is good for one cluster only."""
    named, bare = settings.GANGDASH_PROMETHEUS_URLS, settings.GANGDASH_PROMETHEUS_URLS.get("")
    url = named.get(cluster) or (bare if alone else None)
    if url:
        return Prometheus(url, settings.GANGDASH_PROMETHEUS_TOKEN)
    return "its address has no cluster's name, and several clusters are read" if bare else "no Prometheus is connected"


def metric_facts(period: Period, source: Prometheus | str) -> MetricFacts:
    """Ask everything that a report shows of one span."""
    if isinstance(source, str):
        remedy = f"Write {SETTING} as NAME=URL,NAME=URL" if "several" in source else CONNECT
        nothing = Reading(None, source, remedy)
        return MetricFacts(nothing, nothing, nothing, nothing, nothing, nothing, nothing)
    window = f"[{max(60, round(period.length.total_seconds()))}s]"
    ask = _asker(source, period.end)
    devices = ask(f"count(last_over_time({_UTIL}[1h]))", sum, DEVICES)
    held = _none_is_zero(ask(f"count({_held('last_over_time', '[1h]')})", sum, DEVICES), devices)
    idle = _none_is_zero(ask(f"count({_held('max_over_time', '[1h]')} == 0)", sum, DEVICES), devices)
    return MetricFacts(
        devices=devices,
        held=held,
        idle=idle,
        mean_use=ask(f"avg({_held('avg_over_time', window)})", max, DEVICES),
        cycle_median=ask(f"quantile_over_time(0.5, {_CYCLE}{window})", max, CYCLES),
        cycle_95th=ask(f"quantile_over_time(0.95, {_CYCLE}{window})", max, CYCLES),
        exhausted=ask(f"sum(increase({_EXHAUSTED}{window}))", sum, CYCLES),
        use=_use(source, period) if devices.is_read else (),
    )


def _held(function: str, window: str) -> str:
    """Return a query for the devices that some pod holds.

    The exporter says which pod that is in ``pod``, or in ``exported_pod`` where the scrape keeps ``pod`` for the
    exporter's own. A device that nobody holds carries the exporter's name or none.
    """
    exported = f'{_UTIL}{{exported_pod!=""}}{window}'
    plain = f'{_UTIL}{{exported_pod="",pod!="",pod!~".*dcgm-exporter.*"}}{window}'
    return f"({function}({exported}) or {function}({plain}))"


def _asker(source: Prometheus, at: datetime) -> Callable[[str, Callable[[list[float]], float], str], Reading]:
    def ask(query: str, join: Callable[[list[float]], float], remedy: str) -> Reading:
        try:
            values = source.instant(query, at)
        except PrometheusError as error:
            return Reading(None, str(error), f"See that {SETTING} is right and may be reached from here")
        return Reading(join(values)) if values else Reading(None, "the server has no such metric", remedy)

    return ask


def _none_is_zero(reading: Reading, devices: Reading) -> Reading:
    """Return zero where devices are measured and none of them is counted: a count over nothing has no series."""
    return Reading(0.0) if not reading.is_read and devices.is_read and "no such" in reading.reason else reading


def _use(source: Prometheus, period: Period) -> tuple[float | None, ...]:
    """Return the mean use of all devices in each step; empty where the server does not tell."""
    width = f"[{period.step.total_seconds():.0f}s]"
    ends = [moment + period.step for moment in period.step_starts]
    try:
        return source.span(f"avg(avg_over_time({_UTIL}{width}))", ends)
    except PrometheusError:
        return ()


def _stamp(moment: datetime) -> str:
    return f"{moment.timestamp():.3f}"
