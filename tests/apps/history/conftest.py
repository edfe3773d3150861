"""The stored cluster of the diagnosis tests, and a clock that stands still unless moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import time_machine

from tests.apps.diagnosis import conftest
from tests.apps.diagnosis.conftest import NOW, READ, east, store

__all__ = ["clock", "east", "store"]


@pytest.fixture
def clock() -> Iterator[Any]:
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


@pytest.fixture(autouse=True)
def reads_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the stored readings have the kinds that only history looks at."""
    monkeypatch.setattr(conftest, "READ", [*READ, "Deployment", "Namespace"])
