"""Canonical form and sha256 of a snapshot: same content in another order gives the same digest.

Lists that the API serves in no fixed order are sorted by their canonical text; lists whose order means
something (containers, levels, terms, taints) stay as they are. The name of the file and what it was
read from do not count, ``as_of`` does.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from gangdash.engine.model.cluster import ClusterSnapshot

_VOLATILE_FIELDS = frozenset({"name", "source"})
_encoder = msgspec.json.Encoder(order="deterministic")


def text(value: object) -> str:
    """Return one JSON text of a fact: keys and sets sorted, so equal facts give equal text."""
    return _encoder.encode(value).decode()


def snapshot_digest(snapshot: ClusterSnapshot) -> str:
    """Return ``sha256:...`` over the snapshot's content, independent of the order in which it was read."""
    sha = hashlib.sha256()
    for spec in dataclasses.fields(snapshot):
        if spec.name in _VOLATILE_FIELDS:
            continue
        sha.update(f"{spec.name}\x00".encode())
        for part in _parts(getattr(snapshot, spec.name)):
            sha.update(f"{part}\x00".encode())
    return f"sha256:{sha.hexdigest()}"


def _parts(item: Any) -> Iterable[str]:
    if isinstance(item, Mapping):
        return sorted(f"{text(key)}=" + "\x01".join(_parts(part)) for key, part in item.items())
    if isinstance(item, tuple | frozenset):
        return sorted(text(part) for part in item)
    return [text(item)]
