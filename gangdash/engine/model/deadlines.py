"""How long each controller may take for its step before the step counts as stuck and not merely slow.

Part of a snapshot, so that whoever replays it says the same. "Measured" is with the real controllers of KAI and Grove
on two busy cores: the default leaves many times that. The others rest on what a controller promises, or are a choice.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds per step."""

    first_status: float = 60.0
    """Dynamo's operator writes a first status. A choice, as for a first child: it follows a watch too."""
    first_child: float = 60.0
    """The first children of a graph or set exist. Measured: 5 s after a PodCliqueSet."""
    children: float = 60.0
    """All children of a set exist. Measured: within 0.3 s of the first."""
    pods: float = 60.0
    """A clique has its pods. Measured: within 0.3 s of the first child."""
    gate: float = 200.0
    """A gate whose condition is met is gone. Measured: 0.2 s; missed once, Grove's resync of 3 min removes it."""
    podgroup: float = 60.0
    """A gang has its PodGroup. Measured: with the PodGang, and in under a second for pods that KAI groups itself."""
    migration: float = 300.0
    """Gangs are moved to another layout after an upgrade of Grove. A choice: its resync of 3 min, and time to work."""
    rollout: float = 1800.0
    """A rollout makes progress. A choice: it waits for new pods to be ready, and large models load slowly."""
    status: float = 300.0
    """A status follows what its objects do. Measured: Grove follows each change of Ready; this is above its resync."""
    discovery: float = 300.0
    """A ready worker is known to the model's frontend. A choice: nothing of it could be measured."""
