"""The demo cluster behind its API server: publishes each step of the world as writes to the server's objects.

Only what changed is written, so resourceVersions move as in a real cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from gangdash.simulator.objects import cluster_objects, event_object
from gangdash.simulator.store import ObjectStore, utc_now
from gangdash.simulator.world import World

# Kinds a cluster with KAI, Grove and Dynamo has no reason to serve.
NOT_INSTALLED = (
    "pytorchjobs",
    "rayclusters",
    "rayjobs",
    "workloads",
    "localqueues",
    "clusterqueues",
    "resourceflavors",
    "jobsets",
    "leaderworkersets",
    "noderesourcetopologies",
    "computedomains",
    "clustertopologies",
)
# A cluster that has lived for 20 minutes, in ever smaller steps: enough for its queues to fill and for gangs to have
# come and gone, and few enough that it is there in seconds.
WARM_UP = (300, 240, 180, 150, 120, 90, 60, 30, 20, 10)


class Demo:
    """A world and the store of the server that shows it."""

    def __init__(self, store: ObjectStore, seed: int = 1, now: datetime | None = None) -> None:
        """Make a cluster that has lived for a while before `now`."""
        moment = (now or utc_now()) - timedelta(seconds=sum(WARM_UP))
        self.world = World(seed, moment)
        self.store = store
        self.store.clock = lambda: self.world.now
        self._shown: set[tuple[str, str, str]] = set()
        for seconds in WARM_UP:
            moment += timedelta(seconds=seconds)
            self.world.step(moment)
        self.publish()

    def step(self, now: datetime) -> None:
        """Move the cluster on and show it."""
        self.world.step(now.astimezone(UTC))
        self.publish()

    def publish(self) -> None:
        """Write what changed since the last time, in one step that no list can see half of."""
        objects = list(cluster_objects(self.world))
        shown = {_key(obj) for obj in objects}
        shown |= {("Event", event.about.namespace, event.name) for event in self.world.events}
        objects += [event_object(self.world, event) for event in self.world.events.take_changed()]
        self.store.write(objects, sorted(self._shown - shown))
        self._shown = shown


def _key(obj: Mapping[str, Any]) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
