"""What the demo cluster looks like through the API: its state as Kubernetes, KAI, Grove and Dynamo objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gangdash.simulator.events import Event
from gangdash.simulator.objects import grove, kai, nodes, pods, system
from gangdash.simulator.objects.pods import PLANTED_SECRET
from gangdash.simulator.plant import QUEUES
from gangdash.simulator.world import World

__all__ = ["PLANTED_SECRET", "cluster_objects", "event_object"]


def event_object(world: World, event: Event) -> dict[str, Any]:
    """Return one Event; there are many, so only those that changed are worth making."""
    return system.event(world, event)


def cluster_objects(world: World) -> Iterator[dict[str, Any]]:
    """Yield every object of the cluster but its Events, as it is at the world's present moment."""
    yield from system.furniture(world)
    for machine in world.nodes.values():
        yield nodes.node(world, machine)
        yield nodes.agent(world, machine)
    yield from (kai.queue(world, terms) for terms in QUEUES.values())
    yield kai.topology(world)
    yield grove.binding(world)
    for service in world.services:
        yield from grove.chain(world, service)
    for gang in world.gangs:
        yield kai.podgroup(world, gang)
        if gang.job:
            yield pods.job(world, gang)
    for gang, member in world.members():
        yield pods.pod(world, gang, member)
        if member.asked:
            yield kai.bind_request(world, gang, member)
