"""Bytes of one API object -> its reduced record, or an error that names object and field.

Relies on msgspec for typed kinds and on the table's paths for observed ones. Whatever the bytes are,
the only exception that leaves this module is ``BadObjectError``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from gangdash.kube.allowed import kept_scheduler_args
from gangdash.kube.kinds import Kind, Tree, path_tree
from gangdash.kube.reading import BadObject
from gangdash.kube.records.base import Metadata, Observed, Record

Raw = bytes | memoryview | msgspec.Raw
_LONGEST_PROBLEM = 200


class BadObjectError(ValueError):
    """An object that cannot be decoded."""

    def __init__(self, bad: BadObject) -> None:
        super().__init__(f"{bad.object}: {bad.field}: {bad.problem}" if bad.field else f"{bad.object}: {bad.problem}")
        self.bad = bad


class _NamedMetadata(msgspec.Struct):
    name: Any = None
    namespace: Any = None


class _Named(msgspec.Struct):
    metadata: _NamedMetadata | None = None


def decode_object(kind: Kind, raw: Raw, version: str, position: str) -> Record:
    """Return the record in ``raw``; ``version`` and ``position`` (``items[3]``) are for objects that do not say."""
    try:
        record = _observed(kind, raw) if kind.is_observed else _decoder(kind.record).decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as err:
        field, problem = describe(err)
        raise BadObjectError(BadObject(_label(kind, raw, position), field, problem)) from err
    record.api_version = kind.api_version(version)
    record.kind = kind.name
    return record


def describe(err: Exception) -> tuple[str, str]:
    """Return field and problem of a decoding error, each on one line."""
    if isinstance(err, RecursionError):
        return "", "nested too deep"
    problem, _, path = str(err).partition(" - at `")
    field = path.rstrip("`").removeprefix("$").removeprefix(".")
    return _short(field), _short(problem)


def _short(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_PROBLEM]


@cache
def _decoder(record: type[Record]) -> msgspec.json.Decoder[Record]:
    return msgspec.json.Decoder(record)


def _label(kind: Kind, raw: Raw, position: str) -> str:
    try:
        metadata = msgspec.json.decode(raw, type=_Named).metadata
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        metadata = None
    name = metadata.name if metadata else None
    if not isinstance(name, str) or not name:
        return f"{kind.name}/{position}"
    namespace = metadata.namespace if metadata and isinstance(metadata.namespace, str) else ""
    return f"{kind.name}/{namespace}/{name}" if namespace else f"{kind.name}/{name}"


class _WithMetadata(msgspec.Struct):
    metadata: Metadata


def _observed(kind: Kind, raw: Raw) -> Observed:
    content = msgspec.json.decode(raw, type=dict[str, Any])
    kept = _pruned(content, path_tree(kind.paths)) if kind.paths else {}
    if kind.name == "Deployment":
        _keep_scheduler_args(kept)
    return Observed(
        api_version=msgspec.convert(content.get("apiVersion") or "", str),
        metadata=msgspec.convert({"metadata": content.get("metadata")}, _WithMetadata).metadata,
        fields=kept,
    )


def _pruned(value: Any, tree: Tree) -> Any:
    """Return the part of ``value`` that the tree names; ``None`` where the shape is another."""
    if not tree:
        return _plain(value)
    if "[]" in tree:
        items = value if isinstance(value, list) else ()
        return [kept for item in items if (kept := _pruned(item, tree["[]"])) is not None]
    if not isinstance(value, dict):
        return None
    wanted = dict.fromkeys(value, tree["*"]) if "*" in tree else tree
    kept = {key: _pruned(value[key], below) for key, below in wanted.items() if key in value}
    return {key: v for key, v in kept.items() if v is not None}


def _plain(value: Any) -> Any:
    """Return a leaf: a scalar, a list of scalars or a flat map of scalars; anything else is nobody's business."""
    if isinstance(value, dict):
        return {k: v for k, v in value.items() if not isinstance(v, dict | list)}
    if isinstance(value, list):
        return [v for v in value if not isinstance(v, dict | list)]
    return value


def _keep_scheduler_args(deployment: dict[str, Any]) -> None:
    template = deployment.get("spec", {}).get("template", {}).get("spec", {})
    for container in template.get("containers", ()):
        args = container.pop("args", ())
        kept = kept_scheduler_args(a for a in args if isinstance(a, str)) if isinstance(args, list) else []
        if kept:
            container["args"] = kept


def encodable(record: Record) -> Record | dict[str, Any]:
    """Return what the JSON encoder turns into the record in the API's own shape."""
    if not isinstance(record, Observed):
        return record
    content: dict[str, Any] = msgspec.to_builtins(record)
    fields: dict[str, Any] = content.pop("fields", {})
    return content | fields
