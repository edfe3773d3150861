"""Files that are no snapshot: one clear line each, never another exception, never half an answer."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangdash.snapshot.archive import FILE_LIMITS, Limits, SnapshotError, load_bytes, load_snapshot, snapshot_of
from tests.kube import raw

SMALL = Limits(packed=10_000, unpacked=100_000, nesting=50)
GOOD = json.dumps(raw.dump(raw.pod("p"), raw.node("n"), raw.queue("q"))).encode()


def _zip(*members: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def _encrypted() -> bytes:
    content = bytearray(_zip(("snapshot.json", GOOD)))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1
    return bytes(content)


def _corrupt_zip() -> bytes:
    content = bytearray(_zip(("snapshot.json", GOOD * 20)))
    content[60:70] = b"\x00" * 10
    return bytes(content)


def _frame(**keys: Any) -> bytes:
    return json.dumps(raw.dump(raw.pod("p")) | keys).encode()


def _scheduler(budgets: dict[str, str]) -> bytes:
    whole = raw.scheduler_snapshot()
    return json.dumps(whole | {"config": {"scenarioSearchBudgets": budgets}}).encode()


BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "blanks": (b" \n\t" * 100, "empty"),
    "zipped blanks": (gzip.compress(b" " * 90_000), "empty"),
    "truncated JSON": (GOOD[:-20], "broken JSON"),
    "truncated in a text": (GOOD[:40], "broken JSON"),
    "two documents": (GOOD + GOOD, "broken JSON"),
    "not JSON": (b"{hello}", "broken JSON"),
    "plain text": (b"Error from server (Forbidden): nope", "neither a scheduler snapshot"),
    "a word": (b"hello", "neither JSON nor YAML"),
    "binary": (bytes(range(256)) * 4, "YAML"),
    "another object": (b'{"a": 1}', "neither a scheduler snapshot"),
    "one pod": (json.dumps(raw.pod("p")).encode(), "neither a scheduler snapshot"),
    "a list": (b"[1, 2]", "Expected `object`"),
    "null": (b'{"kind": "List", "items": null}', "neither a scheduler snapshot"),
    "items of a wrong type": (b'{"kind": "List", "items": {"a": 1}}', "items: Expected `array"),
    "rawObjects of a wrong type": (b'{"rawObjects": [1]}', "rawObjects: Expected `object"),
    "pods of a wrong type": (b'{"rawObjects": {"pods": "none"}}', "Expected `array"),
    "config of a wrong type": (b'{"rawObjects": {}, "config": {"tiers": 5}}', "config.tiers: Expected"),
    "params of a wrong type": (b'{"rawObjects": {}, "schedulerParams": {"schedulePeriod": "1s"}}', "schedulePeriod"),
    "budget that means nothing": (_scheduler({"maxJobSearchDuration": "soon"}), "maxJobSearchDuration: not a duration"),
    "read of a wrong type": (_frame(read="Pod"), "read: Expected `array"),
    "notRead of a wrong type": (_frame(notRead=["Pod"]), "notRead[0]: Expected `object"),
    "history of a wrong type": (_frame(history={"uid": {"last_ran": "yesterday"}}), "last_ran"),
    "asOf of a wrong type": (_frame(asOf=5), "asOf: Expected `datetime"),
    "asOf without a zone": (_frame(asOf="2026-11-30T09:00:00"), "asOf"),
    "nothing but bad objects": (json.dumps(raw.dump(raw.pod("p", priority="x"))).encode(), "Pod/team/p: spec.priority"),
    "items that are no objects": (b'{"kind": "List", "items": [1, "x", null]}', "items[0]"),
    "no time at all": (b'{"kind": "List", "items": []}', "--as-of"),
    "deep": (b'{"kind": "List", "items": [' + b"[" * 60 + b"]" * 60 + b"]}", "nested deeper than 50"),
    "very deep": (b"[" * 9_000, "nested deeper than 50"),
    "very deep YAML": (b"a: " + b"[" * 9_000, "nest"),
    "NaN": (GOOD.replace(b'"1500m"', b"NaN"), "NaN is no number"),
    "infinity": (GOOD.replace(b'"1500m"', b"-Infinity"), "-Infinity is no number"),
    "huge number": (GOOD.replace(b'"1500m"', b"9" * 5_000), "a number of 5000 digits"),
    "a key twice": (GOOD.replace(b'"kind": "List"', b'"kind": "List", "items": []'), "'items' given twice"),
    "a key twice inside": (GOOD.replace(b'"name": "p"', b'"name": "p", "name": "q"'), "'name' given twice"),
    "invalid UTF-8": (GOOD.replace(b'"p"', b'"\xff\xfe"'), "not valid UTF-8"),
    "YAML alias bomb": (b"a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]", "alias"),
    "YAML list": (b"- a\n- b", "neither JSON nor YAML"),
    "YAML tag": (b"kind: !!python/object:os.system List", "a tag"),
    "broken gzip": (gzip.compress(GOOD)[:-30], "broken gzip"),
    "gzip of rubbish": (b"\x1f\x8b" + b"rubbish" * 9, "broken gzip"),
    "gzip checksum": (gzip.compress(GOOD)[:-8] + b"\x00" * 8, "broken gzip"),
    "gzip bomb": (gzip.compress(b" " * 2_000_000), "larger than the limit of 100000 bytes"),
    "zip bomb": (_zip(("snapshot.json", b" " * 2_000_000)), "larger than the limit of 100000 bytes"),
    "zip with a path outside": (_zip(("../../etc/passwd", GOOD)), "a path outside"),
    "zip with an absolute path": (_zip(("/etc/passwd", GOOD)), "a path outside"),
    "zip with a Windows path outside": (_zip(("..\\snapshot.json", GOOD)), "a path outside"),
    "zip of nothing": (_zip(), "empty zip"),
    "zip of a folder": (_zip(("folder/", b"")), "empty zip"),
    "zip of many": (_zip(("a.json", GOOD), ("b.json", GOOD)), "2 files inside"),
    "truncated zip": (_zip(("snapshot.json", GOOD))[:-30], "broken zip"),
    "corrupt zip": (_corrupt_zip(), "broken zip"),
    "encrypted zip": (_encrypted(), "encrypted zip"),
    "zip in zip in zip": (_zip(("a", _zip(("b", _zip(("c", GOOD)))))), "archive inside an archive"),
    "too large": (GOOD + b" " * 10_000, "larger than the limit of 10000 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_broken_content_is_one_clear_line(name: str) -> None:
    content, problem = BROKEN[name]

    with pytest.raises(SnapshotError) as caught:
        snapshot_of(load_bytes(content, name="upload.json", limits=SMALL))
    line = str(caught.value)
    assert line.startswith("upload.json: ")
    assert problem in line
    assert "\n" not in line
    assert len(line) < 300


@pytest.mark.parametrize("name", ["truncated JSON", "zip bomb", "deep", "nothing but bad objects"])
def test_broken_file_is_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_bytes(BROKEN[name][0])

    with pytest.raises(SnapshotError) as caught:
        load_snapshot(path, limits=SMALL)
    assert str(path) in str(caught.value)
    assert BROKEN[name][1] in str(caught.value)


def _missing(folder: Path) -> Path:
    return folder / "none.json"


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.json")
    return folder / "pipe.json"


def _unreadable(folder: Path) -> Path:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = folder / "closed.json"
    path.write_bytes(GOOD)
    path.chmod(0)
    return path


@pytest.mark.parametrize(
    "make,problem",
    [(_missing, "no such file"), (lambda folder: folder, "not a file"), (_pipe, "not a file"),
     (_unreadable, "Permission denied")],
)  # fmt: skip
def test_path_that_is_no_readable_file_is_said(make: Callable[[Path], Path], problem: str, tmp_path: Path) -> None:
    path = make(tmp_path)

    with pytest.raises(SnapshotError, match=problem):
        load_snapshot(path)


def test_two_hundred_megabytes_of_blanks_are_empty() -> None:
    content = gzip.compress(b" " * 200_000_000, compresslevel=1)

    with pytest.raises(SnapshotError, match="empty"):
        load_bytes(content, name="blanks", limits=FILE_LIMITS)


def _loaded(content: bytes) -> None:
    """Load without any exception but the one that is told to the user."""
    with contextlib.suppress(SnapshotError):
        snapshot_of(load_bytes(content, name="fuzz", limits=SMALL))


@given(st.binary(max_size=300))
def test_any_bytes_are_a_snapshot_or_refused(content: bytes) -> None:
    _loaded(content)


@settings(max_examples=300)
@given(st.data())
def test_bytes_changed_anywhere_are_a_snapshot_or_refused(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(GOOD)))
    end = data.draw(st.integers(start, min(len(GOOD), start + 12)))
    _loaded(GOOD[:start] + data.draw(st.binary(max_size=6)) + GOOD[end:])


@given(st.data())
def test_archives_changed_anywhere_are_a_snapshot_or_refused(data: st.DataObject) -> None:
    packed = data.draw(st.sampled_from([gzip.compress(GOOD), _zip(("snapshot.json", GOOD))]))
    at = data.draw(st.integers(0, len(packed) - 1))
    _loaded(packed[:at] + data.draw(st.binary(min_size=1, max_size=4)) + packed[at + 1 :])


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
    | st.sampled_from(["1Gi", "2026-11-30T09:00:00Z", "-1s", "0", "Always", "true"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


def _spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(spot for key, inner in below for spot in _spots(inner, (*path, key)))]


def _replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy


@settings(max_examples=400)
@given(st.data())
def test_any_value_anywhere_is_a_snapshot_or_refused(data: st.DataObject) -> None:
    whole = json.loads(GOOD) | {
        "history": {"u": {"last_verdict": "x"}},
        "notRead": [{"kind": "Event", "reason": "403"}],
    }
    whole["items"] += [raw.podgroup(), raw.scheduler_deployment("kai-scheduler-s", "--schedule-period=1s")]
    whole["items"] += [raw.shard("s", args={"schedule-period": "1s"}, plugins={"numa": {"enabled": True}})]
    spot = data.draw(st.sampled_from(_spots(whole)))
    _loaded(json.dumps(_replaced(whole, spot, data.draw(_VALUES))).encode())
