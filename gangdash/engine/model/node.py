"""A node as the API serves it: what it offers and in which state it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gangdash.engine.model.meta import Condition, Meta
from gangdash.engine.model.selectors import Taint


@dataclass(frozen=True, slots=True)
class Node:
    """``allocatable`` and ``capacity`` hold scheduler units, see ``resources``; an absent name is absent."""

    meta: Meta
    allocatable: Mapping[str, int] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    conditions: tuple[Condition, ...] = ()
    kubelet_version: str = ""
    provider_id: str = ""

    @property
    def name(self) -> str:
        return self.meta.name
