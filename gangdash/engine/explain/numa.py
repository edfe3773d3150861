"""Free GPUs that a node's kubelet may not give out together: its policy wants them from one NUMA zone.

Relies on NodeResourceTopology and on the placement that KAI notes on pods; like KAI's numa plugin it takes a zone's
free amount as what it has less what pods there are noted to hold. Leaves out nodes without that object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gangdash.engine.explain.amounts import amount
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.config import Shard
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.resources import GPU_NAMES

OBSERVED = "kai.scheduler/numa-placement-observed"
_STRICT = frozenset({"single-numa-node", "SingleNUMANodeContainerLevel", "SingleNUMANodePodLevel"})


@dataclass(frozen=True, slots=True)
class Zones:
    """Free GPUs of a node by NUMA zone."""

    free: Mapping[str, float]

    @property
    def best(self) -> float:
        return max(self.free.values(), default=0.0)

    @property
    def total(self) -> float:
        return sum(self.free.values())


def strict_zones(snapshot: ClusterSnapshot, shard: Shard) -> dict[str, Zones]:
    """Return the zones of nodes whose kubelet insists on one zone, where the shard's numa plugin heeds it."""
    if shard.config.plugin("numa") is None:
        return {}
    pods: dict[str, list[Pod]] = {}
    for pod in snapshot.pods:
        if pod.node_name and pod.phase not in {"Succeeded", "Failed"}:
            pods.setdefault(pod.node_name, []).append(pod)
    found = {}
    for item in snapshot.objects.get("NodeResourceTopology", ()):
        policies = {
            a.get("value") for a in item.facts.get("attributes") or () if a.get("name") == "topologyManagerPolicy"
        }
        policies.update(item.facts.get("topologyPolicies") or ())
        if policies & _STRICT:
            zones = item.facts.get("zones") or ()
            found[item.meta.name] = Zones(_free(zones, pods.get(item.meta.name, ())))
    return found


def _free(zones: Iterable[Mapping[str, object]], pods: Iterable[Pod]) -> dict[str, float]:
    free: dict[str, float] = {}
    for zone in zones:
        resources = zone.get("resources")
        for resource in resources if isinstance(resources, list) else ():
            if resource.get("name") in GPU_NAMES:
                has = amount(str(resource["name"]), resource.get("allocatable", resource.get("capacity", "0")))
                free[str(zone.get("name", ""))] = has.value if has is not None else 0.0
    for pod in pods:
        for name, held in _held(pod):
            if name in free:
                free[name] -= held
    return free


def _held(pod: Pod) -> list[tuple[str, float]]:
    """Return the GPUs that a pod is noted to hold, by zone; nothing where the note is missing or no JSON."""
    try:
        notes = json.loads(pod.meta.annotations.get(OBSERVED, "[]"))
    except ValueError:
        return []
    found = []
    for note in notes if isinstance(notes, list) else ():
        amounts = note.get("amount") if isinstance(note, dict) else None
        for resource, quantity in amounts.items() if isinstance(amounts, dict) else ():
            held = amount(str(resource), quantity) if resource in GPU_NAMES else None
            if held is not None:
                found.append((str(note.get("zone", "")), held.value))
    return found
