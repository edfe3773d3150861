"""A real HTTP or HTTPS server on this machine that answers as it is told, also as no server should."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Answer = Callable[[socket.socket], None]


@dataclass
class Request:
    """What arrived. ``headers`` have lower-case names."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


@dataclass
class FarSide:
    """``answers`` are used up one by one; the last one stays."""

    port: int
    answers: list[Answer]
    requests: list[Request] = field(default_factory=list)
    scheme: str = "http"
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    def will(self, *answers: Answer) -> None:
        self.answers[:] = answers


def says(status: int, body: str | bytes = b"", **headers: str) -> Answer:
    """Answer with a status, a body and headers; underscores in names stand for hyphens."""
    content = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Words", f"Content-Length: {len(content)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return lambda connection: connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + content)


OK = says(200, "ok")


def bot_says(ok: bool = True, **fields: object) -> Answer:
    """Answer as Slack's Web API does: 200 whatever happened."""
    return says(200, json.dumps({"ok": ok, **fields}), Content_Type="application/json")


def silence(seconds: float) -> Answer:
    """Take the request and say nothing for a while."""
    return lambda _connection: time.sleep(seconds)


def cut(connection: socket.socket) -> None:
    """Take the request and hang up."""


def cut_in_body(connection: socket.socket) -> None:
    """Promise more than comes."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nok")


def drip(connection: socket.socket) -> None:
    """Send a byte now and then, so that no single wait is long."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
    for _ in range(200):
        connection.sendall(b"x")
        time.sleep(0.05)


def no_http(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")


@contextmanager
def far_side(*, context: ssl.SSLContext | None = None) -> Iterator[FarSide]:
    """Serve until the test is over."""
    listener = socket.create_server(("127.0.0.1", 0))
    side = FarSide(listener.getsockname()[1], [OK], scheme="https" if context else "http")
    thread = threading.Thread(target=_serve, args=(listener, side, context), daemon=True)
    thread.start()
    try:
        yield side
    finally:
        listener.close()


def _serve(listener: socket.socket, side: FarSide, context: ssl.SSLContext | None) -> None:
    while True:
        try:
            connection, _address = listener.accept()
        except OSError:
            return
        threading.Thread(target=_talk, args=(connection, side, context), daemon=True).start()


def _talk(connection: socket.socket, side: FarSide, context: ssl.SSLContext | None) -> None:
    try:
        with context.wrap_socket(connection, server_side=True) if context else connection as spoken:
            spoken.settimeout(5)
            side.requests.append(_request(spoken))
            answer = side.answers.pop(0) if len(side.answers) > 1 else side.answers[0]
            answer(spoken)
    except OSError:
        connection.close()


def _request(connection: socket.socket) -> Request:
    content = b""
    while b"\r\n\r\n" not in content:
        content += _some(connection)
    head, _, body = content.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += _some(connection)
    return Request(first.split(" ")[1], headers, body)


def _some(connection: socket.socket) -> bytes:
    content = connection.recv(65536)
    if not content:
        raise ConnectionResetError
    return content
