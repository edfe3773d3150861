"""What the demo cluster's scheduler does in one cycle: the engine's own replay decides, for the default shard.

The cluster is shown to the engine as a snapshot of its objects, exactly as a reader of the API would see it.
The night shard has no scheduler that runs, so nobody decides there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from gangdash.engine.cycle import run_cycle
from gangdash.engine.model.cycle import FitError, GangResult, PodOutcome, PodResult
from gangdash.simulator.objects import scheduling_objects
from gangdash.snapshot.archive import load_bytes, snapshot_of

if TYPE_CHECKING:
    from gangdash.simulator.world import World

_PROMISES = (PodOutcome.PIPELINED, PodOutcome.MOVED)
_EVICTIONS = (PodOutcome.EVICTED, PodOutcome.MOVED)


@dataclass(frozen=True, slots=True)
class Decision:
    """What one cycle means for one gang: nodes by pod name, pods to evict, what to say."""

    ready: bool = True
    bound: dict[str, str] = field(default_factory=dict)
    promised: dict[str, str] = field(default_factory=dict)
    evicted: tuple[str, ...] = ()
    action: str = ""
    errors: tuple[FitError, ...] = ()


# By namespace and name of the PodGroup.
Decisions = dict[tuple[str, str], Decision]


def decide(world: World) -> Decisions:
    """Return what the scheduler does about every gang of its shard at the world's present moment."""
    items = list(scheduling_objects(world))
    dump = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
    snapshot = snapshot_of(load_bytes(dump, name="demo", as_of=world.now))
    shard = next(shard for shard in snapshot.shards if shard.name == "default")
    return {(gang.namespace, gang.name): _decision(gang) for gang in run_cycle(snapshot, shard).gangs}


def _decision(gang: GangResult) -> Decision:
    return Decision(
        ready=gang.ready,
        bound=dict(_nodes(gang.pods, (PodOutcome.BOUND,))),
        promised=dict(_nodes(gang.pods, _PROMISES)),
        evicted=tuple(pod.name for pod in gang.pods if pod.outcome in _EVICTIONS),
        action=gang.action or "",
        errors=gang.errors,
    )


def _nodes(pods: tuple[PodResult, ...], outcomes: tuple[PodOutcome, ...]) -> Iterator[tuple[str, str]]:
    return ((pod.name, pod.node) for pod in pods if pod.outcome in outcomes and pod.node)
