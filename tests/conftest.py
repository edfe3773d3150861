"""What every level of the suite shares: order, a closed network, reproducible property tests, the oracle's folders."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings

ROOT = Path(__file__).resolve().parent.parent
# Cheap levels run first, so that a broken rule is seen before any process is started.
LEVELS = ("engine", "snapshot", "kube", "reasons", "simulator", "apps", "api", "dashboard", "oracle", "system")
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1", ""})

# A failing example is printed with what reproduces it; a slow machine is no failure.
hypothesis_settings.register_profile("gangdash", deadline=None, print_blob=True)
hypothesis_settings.load_profile("gangdash")


def _level(item: pytest.Item) -> int:
    parts = item.path.relative_to(ROOT).parts
    level = next((index for index, name in enumerate(LEVELS) if name in parts), len(LEVELS))
    return level + len(LEVELS) * bool(item.get_closest_marker("slow"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests by level, slow ones last; the order inside a level stays."""
    items.sort(key=_level)


@pytest.fixture(autouse=True)
def closed_network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test that connects to anything but this machine; `live` tests may."""
    if request.node.get_closest_marker("live"):
        yield
        return
    connect = socket.socket.connect

    def local_only(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in LOCAL_NAMES:
            raise AssertionError(f"a test tried to reach {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local_only)
    yield


@pytest.fixture(scope="session")
def project_root() -> Path:
    """Return the folder that holds manage.py."""
    return ROOT


@pytest.fixture(scope="session")
def oracle_dir() -> Path:
    """Return the folder of further recorded cases; skip where none is at hand."""
    named = os.environ.get("GANGDASH_ORACLE_DIR", "")
    if not named or not Path(named).is_dir():
        pytest.skip("GANGDASH_ORACLE_DIR names no folder of recorded cases")
    return Path(named)
