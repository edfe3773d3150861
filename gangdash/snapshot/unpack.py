"""Any file that was handed in -> its JSON text, within limits: zip, gzip, JSON or YAML, told by content.

Nothing is written to disk and no name inside an archive is used as a path. Leaves out what the JSON
means. The only exception that leaves this module is ``SnapshotError``.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import msgspec

from gangdash.kube import yaml
from gangdash.snapshot.errors import SnapshotError

_GIB = 2**30
_CHUNK = 2**20
_GZIP_MAGIC = b"\x1f\x8b"
_ZIP_MAGIC = b"PK"
_DEFLATE_AT_MOST = 1032
"""No deflated byte holds more than this many."""
_ENCRYPTED = 0x1
_LAYERS = 2
"""Archives inside one another: a zip that was gzipped for transport, not more."""

_STRINGS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(set(range(256)) - set(_STEPS))


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes as they come, bytes unpacked, and how deep objects may lie in one another."""

    packed: int
    unpacked: int
    nesting: int = 200


FILE_LIMITS = Limits(packed=2 * _GIB, unpacked=2 * _GIB)
UPLOAD_LIMITS = Limits(packed=_GIB // 4, unpacked=2 * _GIB)


def read_file(path: Path, limits: Limits) -> bytes:
    """Return the file's JSON text."""
    try:
        if not path.is_file():
            raise SnapshotError(str(path), "not a file" if path.exists() else "no such file")
        size = path.stat().st_size
        _check_size(str(path), size, limits.packed)
        content = path.read_bytes()
    except OSError as err:
        raise SnapshotError(str(path), err.strerror or "cannot be read") from err
    return unpack(content, str(path), limits)


def unpack(content: bytes, file: str, limits: Limits) -> bytes:
    """Return the JSON text in ``content``, checked: one value, UTF-8, no key twice, not too deep."""
    _check_size(file, len(content), limits.packed)
    for _ in range(_LAYERS):
        if content.startswith(_GZIP_MAGIC):
            content = _gunzip(content, file, limits.unpacked)
        elif content.startswith(_ZIP_MAGIC):
            content = _unzip(content, file, limits.unpacked)
        else:
            break
    else:
        if content.startswith((_GZIP_MAGIC, _ZIP_MAGIC)):
            raise SnapshotError(file, "an archive inside an archive inside an archive")
    content = content.removeprefix(b"\xef\xbb\xbf").strip()
    if not content:
        raise SnapshotError(file, "empty")
    if content[:1] in {b"{", b"["}:
        _check_json(content, file, limits.nesting)
        return content
    return _from_yaml(content, file, limits.nesting)


def _check_size(file: str, size: int, limit: int) -> None:
    if size > limit:
        raise SnapshotError(file, f"larger than the limit of {limit} bytes")


def _gunzip(content: bytes, file: str, limit: int) -> bytes:
    try:
        if len(content) * _DEFLATE_AT_MOST > limit:
            _measure(content, file, limit)
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            return _read_within(stream, file, limit)
    except (OSError, EOFError, zlib.error) as err:
        raise SnapshotError(file, f"broken gzip: {err}") from err


def _measure(content: bytes, file: str, limit: int) -> None:
    """Unpack once without keeping anything: a gzip does not say how large it is, and memory is dearer than time."""
    size = 0
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            _check_size(file, size, limit)


def _unzip(content: bytes, file: str, limit: int) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            member = _member(archive, file)
            if member.flag_bits & _ENCRYPTED:
                raise SnapshotError(file, "encrypted zip")
            _check_size(file, member.file_size, limit)
            with archive.open(member) as stream:
                return _read_within(stream, file, limit)
    except (zipfile.BadZipFile, OSError, EOFError, zlib.error, RuntimeError, NotImplementedError, ValueError) as err:
        raise SnapshotError(file, f"broken zip: {_one_line(err)}") from err


def _member(archive: zipfile.ZipFile, file: str) -> zipfile.ZipInfo:
    """Return ``snapshot.json``, or the only file there is."""
    members = [m for m in archive.infolist() if not m.is_dir()]
    for member in members:
        path = PurePosixPath(member.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise SnapshotError(file, f"a path outside of the archive: {member.filename[:80]!r}")
    named = [m for m in members if PurePosixPath(m.filename).name == "snapshot.json"] or members
    if len(named) != 1:
        raise SnapshotError(
            file, f"{len(members)} files inside and no single snapshot.json" if members else "empty zip"
        )
    return named[0]


def _read_within(stream: io.BufferedIOBase | IO[bytes], file: str, limit: int) -> bytes:
    """Read no more than the limit, whatever the archive's own figures promise."""
    parts: list[bytes] = []
    size = 0
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        _check_size(file, size, limit)
        parts.append(chunk)
    return b"".join(parts)


def _check_json(content: bytes, file: str, nesting: int) -> None:
    _check_nesting(content, file, nesting)
    try:
        json.loads(content, object_pairs_hook=_checked_keys, parse_constant=_refused, parse_int=_counted)
    except RecursionError as err:
        raise SnapshotError(file, f"nested deeper than {nesting}") from err
    except UnicodeDecodeError as err:
        raise SnapshotError(file, f"not valid UTF-8 at byte {err.start}") from err
    except json.JSONDecodeError as err:
        raise SnapshotError(file, f"broken JSON: {err.msg} at line {err.lineno} column {err.colno}") from err
    except ValueError as err:
        raise SnapshotError(file, f"broken JSON: {_one_line(err)}") from err


def _check_nesting(content: bytes, file: str, nesting: int) -> None:
    """Brackets in texts count at first: the exact count costs ten times as much and is seldom needed.

    Texts can hide depth from the first count; what hides enough ends as ``RecursionError`` later on.
    """
    if _depth(content) > nesting and _depth(_STRINGS.sub(b"", content)) > nesting:
        raise SnapshotError(file, f"nested deeper than {nesting}")


def _depth(content: bytes) -> int:
    brackets = content.translate(None, _NO_BRACKETS)
    return max(itertools.accumulate(map(_STEPS.__getitem__, brackets)), default=0)


def _checked_keys(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) != len({key for key, _ in pairs}):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice[:40]!r} given twice in one object")


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _counted(digits: str) -> int:
    if len(digits) > 40:
        raise ValueError(f"a number of {len(digits)} digits")
    return 0


def _from_yaml(content: bytes, file: str, nesting: int) -> bytes:
    try:
        value = yaml.load(content, nesting=nesting)
        if not isinstance(value, dict):
            raise SnapshotError(file, "neither JSON nor YAML of an object")
        return msgspec.json.encode(value)
    except yaml.YamlError as err:
        raise SnapshotError(file, _one_line(err)) from err
    except (ValueError, OverflowError, RecursionError) as err:
        raise SnapshotError(file, f"cannot be read as YAML: {_one_line(err)}") from err


def _one_line(err: Exception) -> str:
    return " ".join(str(err).split())[:200] or type(err).__name__
