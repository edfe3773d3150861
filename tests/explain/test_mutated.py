"""Dumps that no cluster would write: dropped, doubled, odd. They get an answer or one clear refusal, never a fault."""

from __future__ import annotations

import copy
import gzip
import json
import logging
from functools import cache
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gangdash.replay import replay
from gangdash.snapshot.archive import load_bytes, snapshot_of
from gangdash.snapshot.errors import SnapshotError
from tests.explain.helpers import scene_files

LARGEST = 60_000
ODD: list[Any] = [
    None, "", 0, -1, 1, True, [], {}, "x" * 300, "1e30", "-5", "999999999999999999999", "NaN", 10**30, -(10**18), 1.5,
    "2099-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "Unknown", "\x00", "a/../b", [None],
    {"a": None}, "8Gi", "100m", "true",
]  # fmt: skip
CHANGES = ("drop kind", "drop object", "double object", "rename", "drop field", "odd value", "odd value")


@cache
def dumps() -> tuple[dict[str, Any], ...]:
    texts = (gzip.decompress(file.read_bytes()) for file in scene_files())
    return tuple(json.loads(text) for text in texts if len(text) <= LARGEST)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all fields and entries below a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, child in pairs for found in ((*path, key), *places(child, (*path, key)))]


def mutate(dump: dict[str, Any], data: st.DataObject) -> None:
    items = dump["items"]
    if not items:
        return
    item = items[data.draw(st.integers(0, len(items) - 1))]
    change = data.draw(st.sampled_from(CHANGES))
    if change == "drop kind":
        dump["items"] = [other for other in items if other.get("kind") != item.get("kind")]
        if data.draw(st.booleans()) and "read" in dump:
            dump["read"] = [kind for kind in dump["read"] if kind != item.get("kind")]
    elif change == "drop object":
        items.remove(item)
    elif change == "double object":
        items.append(copy.deepcopy(item))
    elif change == "rename" and isinstance(item.get("metadata"), dict):
        other = items[data.draw(st.integers(0, len(items) - 1))]
        item["metadata"]["name"] = (other.get("metadata") or {}).get("name")
    elif found := places(item):
        *parents, last = found[data.draw(st.integers(0, len(found) - 1))]
        parent = item
        for key in parents:
            parent = parent[key]
        if change == "drop field":
            del parent[last]
        else:
            parent[last] = data.draw(st.sampled_from(ODD))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
@given(data=st.data())
def test_a_mutated_dump_gets_an_answer_or_one_clear_refusal(data: st.DataObject) -> None:
    dump = copy.deepcopy(dumps()[data.draw(st.integers(0, len(dumps()) - 1))])
    for _ in range(data.draw(st.integers(1, 4))):
        mutate(dump, data)
    logged, diagnosis, refusal = Logged(), None, ""
    logging.getLogger("gangdash").addHandler(logged)
    try:
        diagnosis = replay(snapshot_of(load_bytes(json.dumps(dump).encode(), name="odd.json")), include_all=True)
    except SnapshotError as error:
        refusal = str(error)
    finally:
        logging.getLogger("gangdash").removeHandler(logged)
    assert logged.faults == []
    assert "\n" not in refusal
    for entry in diagnosis.explanations if diagnosis is not None else ():
        assert entry.code != "ENGINE_FAULT", entry.sentence
        assert 0 < len(entry.sentence) <= 240
        assert all(needs_more(item.need, item.have) for item in entry.binding), entry.sentence


def needs_more(need: Any, have: Any) -> bool:
    return isinstance(need, str) or isinstance(have, str | None) or need > have


class Logged(logging.Handler):
    """Keeps what the per-gang boundaries caught: an answer without its part is a fault here."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.faults: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.faults.append(f"{record.getMessage()}: {record.exc_info}")
