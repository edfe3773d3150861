"""What one look at a cluster or a file brought: reduced records by kind, and what could not be read.

A ``Reading`` is the raw material of a snapshot and the content of a saved dump. A kind that is a key of
``items`` was read, empty or not; a kind in ``not_read`` was not, with the reason. Leaves out any joining
of objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from gangdash.kube.records.base import Record, Time
from gangdash.kube.records.kai import SchedulerConfig, SchedulerParams


class BadObject(msgspec.Struct, frozen=True):
    """An object that was left out: which (``Kind/namespace/name``), at which field, and why."""

    object: str
    field: str
    problem: str


class History(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was known of a gang before this reading."""

    placeable_since: Time | None = None
    last_ran: Time | None = None
    last_verdict: str = ""
    evictions: list[Time] = []
    """The newest times that it, or an attempt at the same thing before it, lost its nodes; oldest first."""


class SchedulerFile(msgspec.Struct, omit_defaults=True, rename="camel"):
    """The configuration that a scheduler snapshot carries."""

    config: SchedulerConfig
    scheduler_params: SchedulerParams


@dataclass(frozen=True, slots=True)
class KindStatus:
    """How the live reading of one kind went: ``count`` is ``None`` and ``reason`` set where it failed."""

    kind: str
    is_required: bool
    read_at: datetime
    count: int | None = None
    reason: str = ""
    detail: str = ""
    requests: int = 0
    received_bytes: int = 0
    took_ms: int = 0


@dataclass(slots=True)
class Reading:
    """``as_of`` knows its zone; ``source`` is ``live``, ``kai`` or ``dump``.

    ``statuses`` belong to live readings and are not saved.
    """

    as_of: datetime
    source: str
    name: str = ""
    items: dict[str, list[Record]] = field(default_factory=dict)
    not_read: dict[str, str] = field(default_factory=dict)
    oddities: list[BadObject] = field(default_factory=list)
    unknown_kinds: list[str] = field(default_factory=list)
    history: dict[str, History] = field(default_factory=dict)
    deadlines: dict[str, float] = field(default_factory=dict)
    """Seconds by the step of a controller, where they are not the usual ones."""
    scheduler: SchedulerFile | None = None
    statuses: dict[str, KindStatus] = field(default_factory=dict)
