"""Everything around placement that an explanation may cite: events, controllers, leases, CRDs.

These objects never change what the replay does; they say who acted when. ``facts`` holds the
allow-listed fields of the kind, as plain JSON values under their dotted API path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gangdash.engine.model.meta import Condition, Meta


@dataclass(frozen=True, slots=True)
class Event:
    """``first`` and ``last`` are the times of the first and the latest occurrence; ``count`` stops at 25 upstream."""

    meta: Meta
    kind: str
    namespace: str
    name: str
    uid: str = ""
    type: str = ""
    reason: str = ""
    message: str = ""
    source: str = ""
    count: int = 1
    first: float | None = None
    last: float | None = None


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """An object of a kind that the replay does not use."""

    api_version: str
    kind: str
    meta: Meta
    facts: Mapping[str, Any] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()

    @property
    def ref(self) -> str:
        """``Kind/namespace/name`` as explanations cite it."""
        return f"{self.kind}/{self.meta.key}"
