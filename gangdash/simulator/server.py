"""A Kubernetes API server over real HTTP on loopback: discovery, LIST, GET and WATCH, for a bearer of its token.

Answers from an ObjectStore, refuses every writing verb, and breaks where its Faults say so. Leaves out TLS,
roles and admission: one token may read everything that no fault forbids.
"""

from __future__ import annotations

import gzip
import hmac
import os
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

from gangdash.simulator.answers import ApiError, Response, json_response, not_found_page
from gangdash.simulator.discovery import discover
from gangdash.simulator.faults import DISCOVERY, Faults, Plan
from gangdash.simulator.kinds import KINDS, Kind
from gangdash.simulator.paging import ListRequest, answer_list, expire, partial, whole
from gangdash.simulator.store import ObjectStore
from gangdash.simulator.watching import Stop, watch_lines

# Real servers compress above this size, at the fastest level.
_GZIP_FROM = 128 * 1024
# Answers up to this size carry a Content-Length, larger ones come in chunks: Go's own rule.
_LENGTH_UP_TO = 2048
_CHUNK = 256 * 1024
_PUBLIC = {"/healthz", "/livez", "/readyz", "/version"}
_LOG_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class Request:
    """One line of the request log."""

    method: str
    path: str
    query: Mapping[str, str]
    accept: str = ""
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class _Target:
    """The kind, and perhaps the object, that a path names."""

    kind: Kind
    version: str
    namespace: str | None
    name: str | None


def _target(path: tuple[str, ...], hidden: frozenset[str]) -> _Target | None:
    """Read `/api/v1/...` and `/apis/GROUP/VERSION/...`; None where nothing is served there."""
    match path:
        case ("api", version, *rest):
            group = ""
        case ("apis", group, version, *rest):
            pass
        case _:
            return None
    namespace = None
    if len(rest) >= 3 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 2:
        return None
    name = rest[1] if len(rest) == 2 else None
    found = (k for k in KINDS if k.group == group and k.plural == rest[0] and version in k.versions)
    kind = next(found, None)
    if kind is None or kind.resource in hidden or (namespace is not None and not kind.namespaced):
        return None
    if name is not None and kind.namespaced and namespace is None:
        return None
    return _Target(kind, version, namespace, name)


class _Handler(BaseHTTPRequestHandler):
    """One connection; the state of the server is in `api`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Listener

    @property
    def api(self) -> FakeApiServer:
        return self.server.api

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        """Stay silent: the request log is the record."""

    def handle(self) -> None:
        """Serve until the client goes; a connection that breaks is the client's business."""
        with suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        self._note()
        try:
            self._get()
        except ApiError as refusal:
            self._send(refusal.response(), Plan())

    def _refuse_verb(self) -> None:
        self._note()
        # The body stays unread, so the connection cannot go on.
        self.close_connection = True
        refusal = ApiError(405, f"the server does not allow {self.command} here", headers={"Allow": "GET"})
        self._send(refusal.response(), Plan())

    # The base class looks its verbs up by these names.
    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _refuse_verb  # noqa: N815

    def _note(self) -> None:
        split = urlsplit(self.path)
        self.route = split.path
        self.query = dict(parse_qsl(split.query, keep_blank_values=True))
        accept, client = self.headers.get("Accept", ""), self.headers.get("User-Agent", "")
        self.api.requests.append(Request(self.command, self.route, self.query, accept, client))

    def _get(self) -> None:
        if self.route not in _PUBLIC:
            self._authenticate()
        if self.route in _PUBLIC - {"/version"}:
            self._send(Response(200, b"ok", "text/plain; charset=utf-8"), Plan())
            return
        path = tuple(unquote(part) for part in self.route.split("/") if part)
        hidden = self.api.faults.hidden
        target = _target(path, hidden)
        plan = self.api.faults.plan(target.kind.resource if target else DISCOVERY, paging="continue" in self.query)
        self._obey(plan)
        if target is None:
            document = discover(path, hidden)
            self._send(plan.instead or (json_response(document) if document else not_found_page()), plan)
        elif plan.instead is not None:
            self._send(plan.instead, plan)
        elif target.name is None and self.query.get("watch") in ("1", "true"):
            self._watch(self._list_request(target))
        else:
            self._send(self._read(target, plan), plan)

    def _authenticate(self) -> None:
        given = self.headers.get("Authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {self.api.token}".encode()):
            raise ApiError(401, "Unauthorized")

    def _obey(self, plan: Plan) -> None:
        """Carry out what comes before any answer."""
        if plan.delay:
            time.sleep(plan.delay)
        if plan.expire:
            raise expire(self.query["continue"])

    def _list_request(self, target: _Target) -> ListRequest:
        metadata_only = "as=PartialObjectMetadata" in self.headers.get("Accept", "")
        return ListRequest(target.kind, target.version, target.namespace, self.query, metadata_only)

    def _read(self, target: _Target, plan: Plan) -> Response:
        headers = {}
        if target.version in target.kind.deprecated:
            old = f"{target.kind.api_version(target.version)} {target.kind.kind} is deprecated"
            headers["Warning"] = f'299 - "{old}"'
        if target.name is None:
            page = answer_list(
                self.api.store,
                self._list_request(target),
                ignore_limit=plan.ignore_limit,
                page_cached=plan.page_cached,
            )
            return Response(page.status, page.body, page.content_type, headers)
        return Response(200, self._object(target, target.name), headers=headers)

    def _object(self, target: _Target, name: str) -> bytes:
        body = self.api.store.get(target.kind, (target.namespace or "", name))
        if body is None:
            details = {"name": name, "kind": target.kind.plural, "group": target.kind.group}
            raise ApiError(404, f'{target.kind.resource} "{name}" not found', details=details)
        if "as=PartialObjectMetadata" in self.headers.get("Accept", ""):
            return partial(body)
        return whole(target.kind, target.version, body)

    def _watch(self, request: ListRequest) -> None:
        lines = watch_lines(self.api.store, request, self.api.stop_watches)
        self._head(Response(200, b""), {"Transfer-Encoding": "chunked"})
        for line in lines:
            self._chunk(line)
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, response: Response, plan: Plan) -> None:
        """Send a response, whole or as the plan spoils it."""
        body = _spoiled(response.body, plan)
        headers = dict(response.headers)
        if len(body) >= _GZIP_FROM and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body, compresslevel=1)
            headers["Content-Encoding"] = "gzip"
        short = len(body) <= _LENGTH_UP_TO and not plan.padding
        headers |= {"Content-Length": str(len(body))} if short else {"Transfer-Encoding": "chunked"}
        self._head(response, headers)
        if self.command == "HEAD":
            return
        if plan.cut_at is not None:
            self._send_part(body[: int(len(body) * plan.cut_at)], chunked=not short)
        elif short:
            self.wfile.write(body)
        else:
            self._send_chunked(body, plan.padding)

    def _send_part(self, body: bytes, *, chunked: bool) -> None:
        """Send the beginning of a body and close before its end."""
        if chunked:
            self._chunk(body)
        else:
            self.wfile.write(body)
        self.close_connection = True

    def _send_chunked(self, body: bytes, padding: int) -> None:
        """Send a body, and blanks after it, which JSON allows."""
        for start in range(0, len(body), _CHUNK):
            self._chunk(body[start : start + _CHUNK])
        for start in range(0, padding, _CHUNK):
            self._chunk(b" " * min(_CHUNK, padding - start))
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        if data:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _head(self, response: Response, headers: Mapping[str, str]) -> None:
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Cache-Control", "no-cache, private")
        self.send_header("Audit-Id", secrets.token_hex(8))
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()


def _spoiled(body: bytes, plan: Plan) -> bytes:
    if plan.malformed:
        # Same length, first bytes kept: only a parser notices.
        body = body[: len(body) // 2] + b"}" * (len(body) - len(body) // 2)
    if plan.keep_part is not None:
        body = body[: int(len(body) * plan.keep_part)]
    return body


class _Listener(ThreadingHTTPServer):
    """Accepts connections without polling, and can drop the open ones."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    api: FakeApiServer

    def __init__(self, port: int, api: FakeApiServer) -> None:
        self.api = api
        self.stopping = False
        self.open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    def server_bind(self) -> None:
        """Bind without the base class's look-up of the host's name, which can take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        host, port = self.socket.getsockname()[:2]
        self.server_address = (host, port)
        self.server_name, self.server_port = host, port

    def serve_until_stopped(self) -> None:
        while not self.stopping:
            self.handle_request()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.open.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Be loud only about own faults, not about connections cut by stop()."""
        if not self.stopping:
            super().handle_error(request, client_address)

    def stop(self) -> None:
        """Wake the accepting thread and cut every connection."""
        self.stopping = True
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.server_port), timeout=1):
            pass
        for connection in list(self.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class FakeApiServer:
    """A running API server over some objects: `with FakeApiServer(objects) as api: ...`.

    Secrets are always refused, so that a reader that asks for them is caught.
    """

    def __init__(
        self, objects: Iterable[Mapping[str, Any]] = (), *, store: ObjectStore | None = None, port: int = 0
    ) -> None:
        self.store = store or ObjectStore()
        self.store.write(objects)
        self.faults = Faults()
        self.faults.forbid("secrets")
        self.token = secrets.token_urlsafe(24)
        self.requests: deque[Request] = deque(maxlen=_LOG_SIZE)
        self.stop_watches = Stop()
        self._listener = _Listener(port, self)
        self._thread = threading.Thread(target=self._listener.serve_until_stopped, name="fake-api", daemon=True)

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"http://127.0.0.1:{self._listener.server_port}"

    def start(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Cut every watch and connection and free the port."""
        self.end_watches()
        self._listener.stop()
        self._thread.join()
        self._listener.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def end_watches(self) -> None:
        """End all open watches properly; later ones run again."""
        ending, self.stop_watches = self.stop_watches, Stop()
        with self.store.changed:
            ending.requested = True
            self.store.changed.notify_all()

    def rotate_token(self) -> None:
        """Make every kubeconfig written so far invalid."""
        self.token = secrets.token_urlsafe(24)

    def kubeconfig(self, path: Path | str, *, name: str = "fake") -> Path:
        """Write a kubeconfig for this server and its present token, readable by its owner only."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": self.url}}],
            "users": [{"name": name, "user": {"token": self.token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        }
        target = Path(path)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            yaml.safe_dump(config, file, sort_keys=False)
        # Renamed into place, so that a follower of the file never reads half of it.
        temporary.replace(target)
        return target
