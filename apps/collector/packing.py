"""A reading as bytes for the store, and back: the dump that is offered for download, without time and history.

Time and history belong to the moment that is analysed; without them two readings of an unchanged cluster are the same
bytes, which is how an unchanged cluster is told.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.conf import settings

from apps.collector.models import Reading as StoredReading
from apps.collector.models import ReadingContent
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.deadlines import Deadlines
from gangdash.kube.reading import History, Reading
from gangdash.snapshot.archive import Limits, load_bytes, write_dump

EPOCH = datetime.fromtimestamp(0, UTC)
LEVEL = 3
"""Of gzip: a level more costs a third more time for a few hundredths less size."""
OWN = Limits(packed=2**32, unpacked=2**33, nesting=1000)
"""What was written here was inside the limits when it came."""


@dataclass(frozen=True, slots=True)
class Packed:
    """``key`` is the SHA-256 of the content before packing."""

    key: str
    content: bytes
    objects: int


def packed(reading: Reading, snapshot: ClusterSnapshot) -> Packed:
    """Return a reading as it is stored, apart from its moment."""
    plain = write_dump(replace(settled(reading, snapshot), as_of=EPOCH, deadlines={}), history={})
    objects = sum(len(items) for items in reading.items.values())
    return Packed(hashlib.sha256(plain).hexdigest(), gzip.compress(plain, LEVEL, mtime=0), objects)


def settled(reading: Reading, snapshot: ClusterSnapshot) -> Reading:
    """Return the reading with every reason for not having read a kind spelled out.

    Reasons that follow from where a reading came from would become others once it is a dump.
    """
    return replace(reading, not_read={gap.kind: gap.reason for gap in snapshot.not_read})


def unpacked(*, reading: StoredReading, as_of: datetime, history: Mapping[str, Any], name: str) -> Reading:
    """Return a stored reading as of a moment, with what was known before it."""
    content = ReadingContent.objects.get(cluster=reading.cluster_id, key=reading.content_key)
    return opened(bytes(content.packed), as_of=as_of, history=history, name=name)


def opened(content: bytes, *, as_of: datetime, history: Mapping[str, Any], name: str) -> Reading:
    """Return what ``packed`` wrote as of a moment, with what was known before it."""
    found = load_bytes(content, name=name, as_of=as_of, limits=OWN)
    found.history = msgspec.convert(dict(history), dict[str, History])
    found.deadlines = deadlines()
    return found


def deadlines() -> dict[str, float]:
    """Return how long controllers may take here, as far as that is not the usual time."""
    usual = Deadlines()
    return {name: value for name, value in settings.GANGDASH_DEADLINES.items() if value != getattr(usual, name)}
