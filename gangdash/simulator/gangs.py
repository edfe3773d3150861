"""The gangs of the demo cluster as it knows them: members, what they ask for, where they are in their life.

State only. The director decides who comes, the scheduler who is placed, the world moves time on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gangdash.engine.model.cycle import FitError
from gangdash.simulator.plant import PRIORITIES


@dataclass(frozen=True, slots=True)
class Shape:
    """What one pod asks for: whole GPUs, millicores, MiB."""

    gpus: int = 0
    cpu: int = 4_000
    memory: int = 8_192


@dataclass(slots=True)
class Member:
    """One pod. It has a node from the moment the scheduler chose one, and holds it until it is gone."""

    name: str
    shape: Shape
    created: datetime
    role: str = ""
    """Name of its subgroup, empty where the gang has none."""
    index: int = 0
    gates: tuple[str, ...] = ()
    node: str | None = None
    asked: datetime | None = None
    """When the scheduler handed it to the binder."""
    bound: datetime | None = None
    deleted: datetime | None = None
    gone_at: datetime | None = None
    finished: datetime | None = None
    """When it ended by itself: it stays as an object and holds nothing."""

    @property
    def waits(self) -> bool:
        """Tell whether it wants a node and has none, gated or not."""
        return self.node is None and self.deleted is None

    @property
    def counts(self) -> bool:
        """Tell whether queues count it: placed and not on its way out."""
        return self.holds and self.deleted is None

    @property
    def holds(self) -> bool:
        """Tell whether a node's resources are taken by it."""
        return self.node is not None and self.finished is None


@dataclass(frozen=True, slots=True)
class Role:
    """One role of a served model: how many pods of which shape."""

    name: str
    replicas: int
    shape: Shape


@dataclass(slots=True)
class Service:
    """A served model: a PodCliqueSet of Grove, perhaps made by a DynamoGraphDeployment.

    `front` roles stand alone, `workers` roles form the scaling group; `replicas` of the group run, the first in the
    base gang and each further one as a scaled gang.
    """

    namespace: str
    name: str
    queue: str
    created: datetime
    front: tuple[Role, ...]
    workers: tuple[Role, ...]
    replicas: int
    dynamo: bool
    required_level: str | None = None

    def base_name(self) -> str:
        return f"{self.name}-0"

    def scaled_name(self, replica: int) -> str:
        """Return the scaled gang of one replica of the group; its index counts from the first beyond the base."""
        return f"{self.name}-0-workers-{replica - 1}"

    def clique_names(self, replica: int) -> dict[str, Role]:
        """Return the cliques of the base gang (replica 0) or of a scaled one, by name."""
        group = {f"{self.name}-0-workers-{replica}-{role.name}": role for role in self.workers}
        alone = {f"{self.name}-0-{role.name}": role for role in self.front}
        return alone | group if replica == 0 else group


@dataclass(slots=True)
class Gang:
    """One PodGroup with its pods."""

    namespace: str
    name: str
    queue: str
    priority: str
    scene: str
    """Which part of the play it belongs to; the director's business."""
    created: datetime
    minimum: int
    shape: Shape
    """What each of its pods asks for; services have roles instead."""
    members: list[Member]
    selector: Mapping[str, str] = field(default_factory=dict)
    required_level: str | None = None
    preferred_level: str | None = None
    pool: str = ""
    job: str = ""
    """Name of the Job that made the pods; empty for hand-made groups and for services."""
    service: Service | None = None
    replica: int = 0
    run_seconds: int | None = None
    """How long it runs; None for ever."""
    patience: int | None = None
    """How long its owner lets it wait; None for ever."""
    image_broken: bool = False
    started: datetime | None = None
    """When its present run began."""
    last_start: datetime | None = None
    evicted: datetime | None = None
    ends: bool = False
    """Whether its owner deleted it: the group goes at once, the pods after their shutdown."""
    errors: tuple[FitError, ...] = ()
    message: str = ""
    """What the scheduler last said of it, and since when; stays until it says something else."""
    message_since: datetime | None = None
    transition: int = 0

    @property
    def waits(self) -> bool:
        return any(member.waits for member in self.members)

    @property
    def preemptible(self) -> bool:
        return PRIORITIES[self.priority].value < 100

    @property
    def subgroups(self) -> dict[str, int]:
        """Return the minimum of each subgroup, in order; empty where the gang has none."""
        if self.service is None:
            return {}
        return {name: role.replicas for name, role in self.service.clique_names(self.replica).items()}

    @property
    def image(self) -> str:
        """Return the image its pods run; the broken one was never pushed."""
        tag = "2.9-nightly-missing" if self.image_broken else "2.8"
        return f"registry.example.com/{self.namespace}/main:{tag}"
