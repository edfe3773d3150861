"""A page in a real browser, driven over its debugging protocol; only what the tests need.

Uses the WebSocket client that the Kubernetes client brings along; the browser is whatever the machine has.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
    "--remote-allow-origins=*", "--window-size=1440,900",
)  # fmt: skip
PATIENCE = 30.0


def find_chromium() -> str | None:
    """Return the browser's path, None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Tab:
    """One tab: opens addresses, runs expressions, and keeps what went wrong in it."""

    def __init__(self, socket: websocket.WebSocket) -> None:
        self.socket = socket
        self.faults: list[str] = []
        self._sent = 0
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        self._sent += 1
        self.socket.send(json.dumps({"id": self._sent, "method": method, "params": params}))
        while True:
            message: dict[str, Any] = json.loads(self.socket.recv())
            if message.get("id") == self._sent:
                return dict(message.get("result", {}))
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.faults.append(str(params["exceptionDetails"].get("exception", {}).get("description", params)))
        if message.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.faults.append(str(params["entry"]["text"]))

    def run(self, expression: str) -> Any:
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return answer["result"].get("value")

    def until(self, expression: str) -> Any:
        """Wait for an expression to be true, and return it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            value = self.run(expression)
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"never came true: {expression}; faults: {self.faults}")

    def open(self, address: str) -> None:
        self.send("Page.navigate", url=address)
        self.until(f"document.readyState === 'complete' && location.href.startsWith({json.dumps(address)})")

    def press(self, key: str) -> None:
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=key if len(key) == 1 else "")
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)


@contextmanager
def tab(path: str, profile: Path) -> Iterator[Tab]:
    """Start a browser with a fresh profile, give one tab, end the browser."""
    process = subprocess.Popen(
        [path, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = _port(profile)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE) as answer:
            page = next(target for target in json.load(answer) if target["type"] == "page")
        socket = websocket.create_connection(page["webSocketDebuggerUrl"], timeout=PATIENCE)
        try:
            yield Tab(socket)
        finally:
            socket.close()
    finally:
        process.terminate()
        process.wait(timeout=10)


def _port(profile: Path) -> int:
    end = time.monotonic() + PATIENCE
    place = profile / "DevToolsActivePort"
    while time.monotonic() < end:
        if place.exists() and (lines := place.read_text().split()):
            return int(lines[0])
        time.sleep(0.1)
    raise AssertionError("the browser did not start")
