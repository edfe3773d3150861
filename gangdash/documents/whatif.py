"""The documents of what-if and of free capacity: the difference of two cycles, and which gangs fit where."""

from __future__ import annotations

import msgspec

from gangdash.documents.model import ChangeValue, Number


class Totals(msgspec.Struct, frozen=True):
    """After one cycle: gangs with waiting pods, the GPUs those pods ask for, and the GPUs of all pods with a node."""

    gangs_waiting: int
    gpus_waiting: Number
    gpus_placed: Number


class WhatIf(msgspec.Struct, frozen=True):
    """What changes do to the whole cycle of the snapshot with this digest; gangs as ``namespace/name``.

    ``one_of_several`` names gangs of the lists for which the scheduler picks among equals in no fixed order.
    """

    digest: str
    as_of: str
    engine: str
    changes: list[dict[str, ChangeValue]]
    sentence: str
    starts: list[str]
    moves: list[str]
    delays: list[str]
    sets_back: list[str]
    evicts: list[str]
    before: Totals
    after: Totals
    one_of_several: list[str]
    not_modelled: list[str]


class DomainEntry(msgspec.Struct, frozen=True):
    """One domain (``path`` from the broadest level down; empty for the whole cluster). See ``engine.capacity``."""

    shard: str
    topology: str
    level: str
    path: list[str]
    nodes: int
    gpus: int
    free: int
    held: int
    largest: dict[int, int]
    """GPUs a pod -> the most pods of that shape that fit now."""
    blocked: dict[str, int]
    fragmentation: Number | None


class Capacity(msgspec.Struct, frozen=True):
    digest: str
    as_of: str
    engine: str
    domains: list[DomainEntry]
