"""An authenticated way to one API server that can do nothing but GET.

The official package sets up addresses, credentials (tokens, token files, client certificates, exec
plugins, the pod's own account) and TLS; requests go out raw, so no object is ever parsed twice. Retries
have one owner, here: two for a connection or an answer worth asking again for. Leaves out what is asked.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Self

import msgspec
import urllib3
import yaml
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    MaxRetryError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)

from gangdash import __version__
from gangdash.kube.errors import KubeconfigError, Unreachable, of_status

CONNECT_SECONDS = 3.0
READ_SECONDS = 30.0
"""Silence, not duration: a page may take longer as long as bytes keep coming; its deadline is the caller's."""
LONGEST_RETRY_AFTER = 10
LARGEST_ANSWER = 2**30
_CHUNK = 2**18
_JSON = "application/json"


class _Retry(urllib3.Retry):
    """Asks again, but not after silence: waiting once was long enough."""

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: urllib3.BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: Any = None,
        _stacktrace: Any = None,
    ) -> Self:
        if isinstance(error, ReadTimeoutError):
            raise error
        return super().increment(method, url, response, error, _pool, _stacktrace)


_RETRIES = _Retry(
    total=2,
    redirect=0,
    status_forcelist=(429, 500, 502, 503, 504),
    allowed_methods=frozenset({"GET"}),
    backoff_factor=0.2,
    backoff_jitter=0.1,
    retry_after_max=LONGEST_RETRY_AFTER,
    raise_on_status=False,
    raise_on_redirect=False,
)


class _Status(msgspec.Struct):
    message: str = ""


class Client:
    """One API server. Counts what it asked and got, for the record of the poll."""

    def __init__(self, configuration: Any, pool: urllib3.PoolManager) -> None:
        self._configuration = configuration
        self._pool = pool
        self.requests = 0
        self.received_bytes = 0
        self.skew_seconds: float | None = None
        """How far the server's clock is ahead of ours, to half a second; None where it does not tell the time."""
        self._skew_error = float("inf")

    @property
    def host(self) -> str:
        return str(self._configuration.host).rstrip("/")

    def get(self, what: str, path: str, query: Mapping[str, str], *, deadline: float, accept: str = _JSON) -> bytes:
        """Return the body of a good answer; ``what`` names it in errors, ``deadline`` is in monotonic seconds."""
        self.requests += 1
        asked_at = time.time()
        try:
            response = self._pool.request(
                "GET",
                f"{self.host}{path}",
                fields=dict(query),
                headers=self._headers(accept),
                timeout=_timeout(what, deadline),
                retries=_RETRIES,
                redirect=False,
                preload_content=False,
            )
            self._compare_clocks(response.headers.get("Date", ""), asked_at, time.time())
            body = self._body(what, response, deadline)
        except HTTPError as err:
            raise Unreachable(what, _why(err), _detail(err)) from err
        except (OSError, ValueError) as err:
            raise Unreachable(what, "unreachable", str(err)) from err
        if response.status != 200:
            raise of_status(what, response.status, _said(body))
        return body

    def _compare_clocks(self, date: str, asked_at: float, answered_at: float) -> None:
        """Note what the answer says of the server's clock; the answer that took least says it best.

        The header leaves the fraction of its second out, and was written somewhere between the two moments.
        """
        error = (answered_at - asked_at) / 2
        if error >= self._skew_error:
            return
        try:
            server = parsedate_to_datetime(date).timestamp() + 0.5
        except (TypeError, ValueError):
            return
        self.skew_seconds, self._skew_error = server - asked_at - error, error

    def _headers(self, accept: str) -> dict[str, str]:
        """Ask for credentials anew each time: the package refreshes those that expire."""
        headers = {"Accept": accept, "Accept-Encoding": "gzip", "User-Agent": f"gangdash/{__version__}"}
        for setting in self._configuration.auth_settings().values():
            headers[setting["key"]] = str(setting["value"] or "").strip()
        return headers

    def _body(self, what: str, response: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            for chunk in response.stream(_CHUNK, decode_content=True):
                size += len(chunk)
                parts.append(chunk)
                _check_bounds(what, size, deadline)
        except BaseException:
            response.close()
            raise
        finally:
            self.received_bytes += size
        response.release_conn()
        return b"".join(parts)

    def close(self) -> None:
        self._pool.clear()


def open_client(kubeconfig: str | Path | None = None, context: str = "") -> Client:
    """Return a client for a kubeconfig, or for the pod's own service account.

    Raises ``KubeconfigError``; asks nothing of the server yet. Costs an exec plugin's run, so callers keep it.
    """
    # Half a second of imports that no command without a cluster should pay for.
    from kubernetes.client import ApiClient, Configuration
    from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

    where = str(kubeconfig) if kubeconfig is not None else "service account"
    configuration = Configuration()
    try:
        if kubeconfig is None:
            load_incluster_config(client_configuration=configuration)
        else:
            load_kube_config(str(kubeconfig), context or None, configuration, persist_config=False)
        pool = ApiClient(configuration).rest_client.pool_manager
    except (ConfigException, yaml.YAMLError, OSError, ValueError, KeyError, TypeError, AttributeError) as err:
        raise KubeconfigError(where, "kubeconfig cannot be used", _config_problem(err)) from err
    return Client(configuration, pool)


def _config_problem(err: Exception) -> str:
    """A YAML error quotes the lines around it, and those may be a credential."""
    if isinstance(err, yaml.YAMLError):
        mark = getattr(err, "problem_mark", None)
        return f"not YAML at line {mark.line + 1}" if mark else "not YAML"
    if isinstance(err, OSError):
        return err.strerror or type(err).__name__
    return str(err) if isinstance(err, ValueError) or type(err).__name__ == "ConfigException" else "not a kubeconfig"


def _check_bounds(what: str, size: int, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise Unreachable(what, "timed out", f"after {size} bytes")
    if size > LARGEST_ANSWER:
        raise Unreachable(what, "too large", f"more than {LARGEST_ANSWER} bytes in one answer")


def _timeout(what: str, deadline: float) -> urllib3.Timeout:
    left = deadline - time.monotonic()
    if left <= 0:
        raise Unreachable(what, "timed out", "no time left for it")
    return urllib3.Timeout(connect=min(CONNECT_SECONDS, left), read=min(READ_SECONDS, left))


def _why(err: HTTPError) -> str:
    cause = err.reason if isinstance(err, MaxRetryError) and err.reason is not None else err
    if isinstance(cause, NewConnectionError):
        return "unreachable"
    if isinstance(cause, ReadTimeoutError | ConnectTimeoutError):
        return "timed out"
    if isinstance(cause, SSLError):
        return "not trusted"
    return "connection cut" if isinstance(cause, ProtocolError) else "unreachable"


def _detail(err: HTTPError) -> str:
    cause = err.reason if isinstance(err, MaxRetryError) and err.reason is not None else err
    return str(cause)


def _said(body: bytes) -> str:
    """What a Status object says, or the beginning of whatever came instead."""
    try:
        return msgspec.json.decode(body, type=_Status).message
    except msgspec.DecodeError:
        return body[:1024].decode("utf-8", "replace")
