"""What the demo cluster looks like through the API: its state as Kubernetes, KAI, Grove and Dynamo objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gangdash.simulator.events import Event
from gangdash.simulator.objects import grove, kai, nodes, pods, system
from gangdash.simulator.objects.pods import PLANTED_SECRET
from gangdash.simulator.plant import QUEUES

if TYPE_CHECKING:
    from gangdash.simulator.world import World

__all__ = ["PLANTED_SECRET", "cluster_objects", "event_object", "scheduling_objects"]


def event_object(world: World, event: Event) -> dict[str, Any]:
    """Return one Event; there are many, so only those that changed are worth making."""
    return system.event(world, event)


def cluster_objects(world: World) -> Iterator[dict[str, Any]]:
    """Yield every object of the cluster but its Events, as it is at the world's present moment."""
    yield from scheduling_objects(world)
    yield grove.binding(world)
    for service in world.services:
        yield from grove.chain(world, service)
    yield from (pods.job(world, gang) for gang in world.gangs if gang.job)


def scheduling_objects(world: World) -> Iterator[dict[str, Any]]:
    """Yield the objects that the scheduler itself looks at, with the settings it was started with."""
    yield from system.furniture(world)
    for machine in world.nodes.values():
        yield nodes.node(world, machine)
        yield nodes.exporter(world, machine)
    yield from (kai.queue(world, terms) for terms in QUEUES.values())
    yield kai.topology(world)
    # Who deletes a gang deletes its group; the pods take their time.
    yield from (kai.podgroup(world, gang) for gang in world.gangs if not gang.ends)
    for gang, member in world.members():
        yield pods.pod(world, gang, member)
        if member.asked:
            yield kai.bind_request(world, gang, member)
