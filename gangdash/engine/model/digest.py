"""Canonical form and sha256 of a snapshot: same content in another order gives the same digest.

Lists that the API serves in no fixed order are sorted by their canonical text; lists whose order means
something (containers, levels, terms, taints) stay as they are. The name of the file and what it was
read from do not count, ``as_of`` does.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gangdash.engine.model.cluster import ClusterSnapshot

_VOLATILE_FIELDS = frozenset({"name", "source"})


def canonical(value: Any) -> Any:
    """Return plain JSON data for a fact: defaults left out, maps sorted, so equal facts give equal text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        out = {}
        for spec in dataclasses.fields(value):
            item = getattr(value, spec.name)
            if item is None or item == () or item == "" or item == {}:
                continue
            out[spec.name] = canonical(item)
        return out
    if isinstance(value, Mapping):
        return {str(k): canonical(v) for k, v in sorted(value.items())}
    if isinstance(value, frozenset | set):
        return sorted(canonical(v) for v in value)
    if isinstance(value, tuple | list):
        return [canonical(v) for v in value]
    return value


def text(value: Any) -> str:
    return json.dumps(canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def snapshot_digest(snapshot: ClusterSnapshot) -> str:
    """Return ``sha256:...`` over the snapshot's content, independent of the order in which it was read."""
    sha = hashlib.sha256()
    for spec in dataclasses.fields(snapshot):
        if spec.name in _VOLATILE_FIELDS:
            continue
        item = getattr(snapshot, spec.name)
        if isinstance(item, Mapping):
            parts = sorted(f"{key}={_joined(part)}" for key, part in item.items())
        elif isinstance(item, tuple | frozenset):
            parts = sorted(text(part) for part in item)
        else:
            parts = [text(item)]
        sha.update(f"{spec.name}\x00".encode())
        for part in parts:
            sha.update(part.encode() + b"\x00")
    return f"sha256:{sha.hexdigest()}"


def _joined(part: Any) -> str:
    return "\x01".join(sorted(text(p) for p in part)) if isinstance(part, tuple) else text(part)
