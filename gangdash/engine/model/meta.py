"""What every API object carries: identity, labels, owners, times, conditions.

Times are seconds since the epoch (UTC) as floats; ``None`` means the object does not say.
Maps are read-only by convention: nothing in the engine writes into a frozen fact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OwnerRef:
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


@dataclass(frozen=True, slots=True)
class Meta:
    """Object metadata. ``annotations`` holds the keys that some rule or join reads, no others."""

    name: str
    namespace: str = ""
    uid: str = ""
    created: float | None = None
    deleted: float | None = None
    """The deletionTimestamp: request time plus grace period, so it may lie in the future."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[OwnerRef, ...] = ()
    generation: int | None = None
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """``namespace/name``, or the bare name of a cluster-wide object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Condition:
    """A status condition of any kind; ``since`` is its lastTransitionTime."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: float | None = None
    observed_generation: int | None = None
