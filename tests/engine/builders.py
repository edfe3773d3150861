"""Small clusters in few lines: nodes, queues, gangs and the snapshot they make, and what a cycle does to them.

Defaults are the generous ones of the scheduler's own tests: queues without limits, nodes with room for
everything but GPUs, gangs that need all of their pods. Everything made is kept on the ``Cluster``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gangdash.engine.cycle import run_cycle
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.config import DEFAULT_ACTIONS, Plugin, SchedulerConfig, SchedulerParams, Shard
from gangdash.engine.model.cycle import CycleResult, GangResult
from gangdash.engine.model.meta import Condition, Meta
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Container, Pod
from gangdash.engine.model.podgroup import BindRequest, PodGroup, SubGroupSpec, TopologyConstraint
from gangdash.engine.model.queue import PriorityClass, Queue, QueueResource
from gangdash.engine.model.selectors import Taint, Toleration
from gangdash.engine.model.topology import Topology, TopologyLevel

NOW = 1_800_000_000.0
GIB = 1024**3
CLASSES = {"train": 50, "build-preemptible": 75, "build": 100, "inference": 125}
RACK = "example.com/rack"
ZONE = "example.com/zone"
HOST = "kubernetes.io/hostname"


def condition(type_: str, status: str) -> Condition:
    return Condition(type_, status)


@dataclass(slots=True)
class Cluster:
    """Collects objects; ``snapshot`` freezes them and ``run`` replays one cycle."""

    nodes: list[Node] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    podgroups: list[PodGroup] = field(default_factory=list)
    queues: list[Queue] = field(default_factory=list)
    topologies: list[Topology] = field(default_factory=list)
    bind_requests: list[BindRequest] = field(default_factory=list)
    config: SchedulerConfig = field(default_factory=SchedulerConfig)
    extra: dict[str, Any] = field(default_factory=dict)
    """Further fields of the snapshot, by name."""

    # Objects

    def node(
        self,
        name: str,
        gpus: int = 8,
        *,
        cpu: float = 64,
        memory: int = 512,
        pods: int = 110,
        labels: Mapping[str, str] | None = None,
        taints: tuple[Taint, ...] = (),
        cordoned: bool = False,
        conditions: tuple[Condition, ...] = (),
        gpu_memory: int | None = 10_000,
        resources: Mapping[str, int] | None = None,
    ) -> Node:
        """Add a node; ``cpu`` in cores, ``memory`` in GiB, ``gpu_memory`` in MiB per GPU."""
        allocatable = {"cpu": int(cpu * 1000), "memory": memory * GIB, "pods": pods, **(resources or {})}
        own = {HOST: name, **(labels or {})}
        if gpus:
            allocatable["nvidia.com/gpu"] = gpus
            own.setdefault("nvidia.com/gpu.count", str(gpus))
            if gpu_memory is not None:
                own.setdefault("nvidia.com/gpu.memory", str(gpu_memory))
        made = Node(
            Meta(name, uid=f"node-{name}", labels=own),
            allocatable,
            allocatable,
            taints,
            unschedulable=cordoned,
            conditions=conditions or (Condition("Ready", "True"),),
        )
        self.nodes.append(made)
        return made

    def queue(
        self,
        name: str,
        quota: float = -1,
        limit: float = -1,
        *,
        parent: str = "",
        weight: float = 1,
        priority: int | None = None,
        created: float = NOW - 9000,
        cpu: QueueResource | None = None,
        memory: QueueResource | None = None,
        shown: str = "",
    ) -> Queue:
        """Add a queue; ``quota`` and ``limit`` are GPUs, cpu and memory are unlimited unless given."""
        endless = QueueResource(-1, -1, 1)
        made = Queue(
            Meta(name, uid=f"queue-{name}", created=created),
            display_name=shown,
            parent=parent,
            cpu=cpu or endless,
            memory=memory or endless,
            gpu=QueueResource(quota, limit, weight),
            priority=priority,
        )
        self.queues.append(made)
        return made

    def gang(
        self,
        name: str,
        pods: int = 1,
        gpus: float = 1,
        *,
        queue: str = "q",
        minimum: int | None = None,
        kind: str = "train",
        cpu: float = 0,
        memory: int = 0,
        on: Iterable[str] = (),
        status: str = "Running",
        topology: TopologyConstraint | None = None,
        age: float = 600,
        namespace: str = "team",
        sub_groups: tuple[SubGroupSpec, ...] = (),
        min_sub_group: int | None = None,
        pod: Mapping[str, Any] | None = None,
        group: Mapping[str, Any] | None = None,
    ) -> PodGroup:
        """Add a gang whose pods run ``on`` the nodes named, one each, and wait beyond those.

        A fraction of a GPU is asked for by annotation. ``pod`` and ``group`` overwrite fields.
        """
        made = PodGroup(
            Meta(name, namespace, uid=f"pg-{namespace}-{name}", created=NOW - age),
            queue=queue,
            min_member=None if sub_groups else (pods if minimum is None else minimum),
            min_sub_group=min_sub_group,
            priority_class_name=kind,
            topology=topology,
            sub_groups=sub_groups,
        )
        self.podgroups.append(replace(made, **(group or {})))
        places = list(on)
        for index in range(pods):
            self.pod(
                name,
                index,
                gpus,
                cpu=cpu,
                memory=memory,
                on=places[index] if index < len(places) else "",
                status=status,
                namespace=namespace,
                age=age,
                fields=pod,
            )
        return made

    def pod(
        self,
        gang: str,
        index: int,
        gpus: float = 1,
        *,
        cpu: float = 0,
        memory: int = 0,
        on: str = "",
        status: str = "Running",
        sub_group: str = "",
        namespace: str = "team",
        age: float = 600,
        deleted: float | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        scheduler: str = "kai-scheduler",
        requests: Mapping[str, int] | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> Pod:
        """Add one pod, of no gang where ``gang`` is empty; ``deleted`` is how long ago its grace period ended."""
        name = f"{gang or 'pod'}-{sub_group + '-' if sub_group else ''}{index}"
        asked = {"cpu": int(cpu * 1000), "memory": memory * GIB, **(requests or {})}
        notes = dict(annotations or {})
        own = dict(labels or {})
        if gang:
            notes["pod-group-name"] = gang
        if sub_group:
            own["kai.scheduler/subgroup-name"] = sub_group
        if gpus and gpus == int(gpus):
            asked["nvidia.com/gpu"] = int(gpus)
        elif gpus:
            notes["gpu-fraction"] = str(gpus)
        made = Pod(
            Meta(
                name,
                namespace,
                uid=f"pod-{namespace}-{name}",
                created=NOW - age,
                deleted=None if deleted is None else NOW - deleted,
                labels=own,
                annotations=notes,
            ),
            phase=status if on else "Pending",
            scheduler_name=scheduler,
            node_name=on,
            containers=(Container("main", requests={k: v for k, v in asked.items() if v}),),
        )
        made = replace(made, **(fields or {}))
        self.pods.append(made)
        return made

    def topology(self, *labels: str, name: str = "topo") -> Topology:
        made = Topology(Meta(name), tuple(TopologyLevel(label) for label in labels))
        self.topologies.append(made)
        return made

    def racks(self, layout: Mapping[str, Mapping[str, int]]) -> None:
        """Add nodes by rack, ``{rack: {node: gpus}}``, and the topology of racks."""
        for rack, nodes in layout.items():
            for name, gpus in nodes.items():
                self.node(name, gpus, labels={RACK: rack})
        self.topology(RACK)

    # Running

    def snapshot(self) -> ClusterSnapshot:
        if not self.queues:
            self.queue("q")
        made = ClusterSnapshot(
            as_of=NOW,
            shards=(Shard(config=self.config),),
            nodes=tuple(self.nodes),
            pods=tuple(self.pods),
            podgroups=tuple(self.podgroups),
            queues=tuple(self.queues),
            topologies=tuple(self.topologies),
            bind_requests=tuple(self.bind_requests),
            priority_classes=tuple(PriorityClass(Meta(name), value) for name, value in CLASSES.items()),
            read=ALL_READ,
        )
        return replace(made, **self.extra)

    def run(self, *actions: str) -> CycleResult:
        """Replay one cycle, of the given actions or of all."""
        self.config = replace(self.config, actions=actions or DEFAULT_ACTIONS)
        snapshot = self.snapshot()
        return run_cycle(snapshot, snapshot.shards[0])

    def params(self, **changes: Any) -> None:
        """Change scheduler flags."""
        self.config = replace(self.config, params=replace(self.config.params, **changes))

    def plugin(self, name: str, **arguments: str) -> None:
        """Set a plugin's arguments, adding it where it is not listed."""
        others = tuple(plugin for plugin in self.config.plugins if plugin.name != name)
        self.config = replace(self.config, plugins=(*others, Plugin(name, arguments)))


ALL_READ = frozenset({
    "Node", "Pod", "PodGroup", "Queue", "BindRequest", "PriorityClass", "Topology", "ConfigMap",
    "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSIDriver", "CSIStorageCapacity",
    "ResourceClaim", "ResourceSlice", "DeviceClass", "Namespace",
})  # fmt: skip


def gang_of(result: CycleResult, name: str) -> GangResult:
    return next(gang for gang in result.gangs if gang.name == name)


def outcome(result: CycleResult, name: str) -> str:
    return str(gang_of(result, name).outcome)


def places(result: CycleResult, name: str) -> dict[str, str | None]:
    """Return the node of every pod of a gang, ``None`` where it has none."""
    return {pod.name: pod.node for pod in gang_of(result, name).pods}


def counts(result: CycleResult, name: str) -> dict[str, int]:
    """Return how many pods of a gang came to which outcome."""
    found: dict[str, int] = {}
    for pod in gang_of(result, name).pods:
        found[str(pod.outcome)] = found.get(str(pod.outcome), 0) + 1
    return found


def texts(result: CycleResult, name: str) -> list[tuple[str, str]]:
    return [(error.reason, error.message) for error in gang_of(result, name).errors]


__all__ = [
    "CLASSES",
    "GIB",
    "HOST",
    "NOW",
    "RACK",
    "ZONE",
    "Cluster",
    "SchedulerParams",
    "Toleration",
    "condition",
    "counts",
    "gang_of",
    "outcome",
    "places",
    "texts",
]
