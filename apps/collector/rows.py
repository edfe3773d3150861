"""From one reading to the rows of the store: what the pages count, computed once per poll.

Pure: the same snapshot gives the same unsaved rows. GPU amounts are whole GPUs and shares of one; MIG slices are
not counted. Placement itself is the engine's business, nothing here decides who fits.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

from apps.collector.nodefilters import NodeFilters, node_filters
from apps.inventory.choices import NodeState
from apps.inventory.models import Domain, Node, NodeFilter, Queue, Topology
from apps.workloads.models import Gang, Pod
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.node import Node as NodeFacts
from gangdash.engine.model.pod import Pod as PodFacts
from gangdash.engine.model.podgroup import PodGroup
from gangdash.engine.model.queue import Queue as QueueFacts
from gangdash.engine.model.queue import QueueResource
from gangdash.engine.model.resources import CPU, GPU_NAMES, MEMORY
from gangdash.engine.model.topology import Topology as TopologyFacts

GROUP_ANNOTATION = "pod-group-name"
SUBGROUP_LABEL = "kai.scheduler/subgroup-name"
HOSTNAME_LABEL = "kubernetes.io/hostname"
PRODUCT_LABEL = "nvidia.com/gpu.product"
GPU_MEMORY_LABEL = "nvidia.com/gpu.memory"
STATE_TAINT_PREFIX = "node.kubernetes.io/"
ENDED = frozenset({"Succeeded", "Failed"})

Row = TypeVar("Row", Node, Queue, Topology, Domain, Gang, Pod, NodeFilter)


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The unsaved rows of one reading; None where what they are made of was not read.

    ``members`` says by uid which gang of its namespace a pod names.
    """

    queues: Mapping[str, Queue] | None
    nodes: Mapping[str, Node] | None
    topologies: Mapping[str, Topology] | None
    domains: Mapping[tuple[str, str], Domain] | None
    gangs: Mapping[str, Gang] | None
    filters: Mapping[str, NodeFilter] | None
    pods: Mapping[str, Pod] | None
    members: Mapping[str, str]


def found_rows(snapshot: ClusterSnapshot) -> FoundRows:
    """Return all rows of a reading. Takes a second for ten thousand pods, so no transaction is held meanwhile."""
    memory = smallest_gpu_memory(snapshot.nodes)
    gpus = {pod.meta.uid: pod_gpus(pod, gpu_memory=memory) for pod in snapshot.pods}
    read = snapshot.was_read
    nodes = node_rows(snapshot, gpu_use(snapshot, gpus)) if read("Node") and read("Pod") else None
    filters = node_filters(snapshot, {row.name: row.gpus for row in nodes.values()}) if nodes is not None else None
    gangs = gang_rows(snapshot, gpus, filters) if read("PodGroup") else None
    return FoundRows(
        queues=queue_rows(snapshot) if read("Queue") else None,
        nodes=nodes,
        topologies=topology_rows(snapshot) if read("Topology") else None,
        domains=domain_rows(snapshot, nodes) if read("Topology") and nodes is not None else None,
        gangs=gangs,
        filters=filter_rows(filters) if gangs is not None and filters is not None else None,
        pods=pod_rows(snapshot, gpus) if read("Pod") else None,
        members={pod.meta.uid: pod.meta.annotations.get(GROUP_ANNOTATION, "") for pod in snapshot.pods},
    )


@dataclass(frozen=True, slots=True)
class GpuUse:
    """GPUs held on one node, and by how many pods."""

    gpus: float = 0.0
    pods: int = 0


def moment(seconds: float | None) -> datetime | None:
    """Return a stored time for the engine's epoch seconds."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def fingerprint(*facts: object) -> str:
    """Return a short hash that changes when any of the facts does."""
    return hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()


def pod_gpus(pod: PodFacts, *, gpu_memory: int | None) -> float:
    """Return the GPUs that a pod asks for; ``gpu_memory`` (MiB of the smallest GPU) makes a share of a memory request.

    Containers run together, init containers one by one before them, so the larger of the two counts.
    """
    share = _shared_gpus(pod.meta.annotations, gpu_memory)
    if share is not None:
        return share
    together = sum(_whole_gpus(part.requests) for part in pod.containers if part.role != "init")
    alone = max((_whole_gpus(part.requests) for part in pod.containers if part.role == "init"), default=0)
    return float(max(together, alone))


def _whole_gpus(requests: Mapping[str, int]) -> int:
    return sum(requests.get(name, 0) for name in GPU_NAMES)


def _shared_gpus(annotations: Mapping[str, str], gpu_memory: int | None) -> float | None:
    """Return the share that annotations ask for, None where they ask for none or for nonsense."""
    try:
        devices = int(annotations.get("gpu-fraction-num-devices", "1"))
        if "gpu-fraction" in annotations:
            return float(annotations["gpu-fraction"]) * devices
        if "gpu-memory" in annotations and gpu_memory:
            return round(int(annotations["gpu-memory"]) / gpu_memory, 2) * devices
    except ValueError:
        return None
    return None


def smallest_gpu_memory(nodes: Iterable[NodeFacts]) -> int | None:
    """Return the MiB of the smallest GPU among nodes that say it."""
    found = (node.meta.labels.get(GPU_MEMORY_LABEL, "") for node in nodes)
    return min((int(text) for text in found if text.isdecimal() and int(text) > 0), default=None)


def gpu_use(snapshot: ClusterSnapshot, gpus: Mapping[str, float]) -> dict[str, GpuUse]:
    """Return what pods that have not ended hold, per node.

    Reservation pods stand in for pods that share a GPU; those are counted themselves.
    """
    stand_ins = {shard.config.params.reservation_app_label for shard in snapshot.shards}
    held: dict[str, GpuUse] = defaultdict(GpuUse)
    for pod in snapshot.pods:
        if pod.node_name and pod.phase not in ENDED and pod.meta.labels.get("app") not in stand_ins:
            use = held[pod.node_name]
            held[pod.node_name] = GpuUse(use.gpus + gpus[pod.meta.uid], use.pods + 1)
    return held


def node_rows(snapshot: ClusterSnapshot, use: Mapping[str, GpuUse]) -> dict[str, Node]:
    """Return the nodes by name."""
    labels = {level.node_label for topology in snapshot.topologies for level in topology.levels} | {PRODUCT_LABEL}
    labels |= {shard.config.params.node_pool_label_key for shard in snapshot.shards}
    return {node.name: _node_row(node, use.get(node.name, GpuUse()), labels) for node in snapshot.nodes}


def _node_row(node: NodeFacts, use: GpuUse, labels: Iterable[str]) -> Node:
    state, reason = node_state(node)
    offered = float(_whole_gpus(node.allocatable))
    total = max(offered, float(_whole_gpus(node.capacity)))
    open_gpus = round(max(offered - use.gpus, 0.0), 6)
    free = open_gpus if state == NodeState.READY else 0.0
    row = Node(
        name=node.name,
        uid=node.meta.uid,
        state=state,
        state_reason=reason[:253],
        product=node.meta.labels.get(PRODUCT_LABEL, ""),
        gpus=total,
        gpus_used=use.gpus,
        gpus_free=free,
        gpus_lost=round(max(total - use.gpus - free, 0.0), 6),
        cpu_millicores=node.allocatable.get(CPU),
        memory_bytes=node.allocatable.get(MEMORY),
        pods=use.pods,
        labels={name: node.meta.labels[name] for name in sorted(labels) if name in node.meta.labels},
        taints=[{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.taints],
        created_at=moment(node.meta.created),
    )
    return _stamped(row)


def node_state(node: NodeFacts) -> tuple[NodeState, str]:
    """Return the first state that keeps new pods away, and why."""
    ready = next((condition for condition in node.conditions if condition.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        return NodeState.NOT_READY, ready.reason or f"Ready is {ready.status}"
    if node.unschedulable:
        return NodeState.CORDONED, "cordoned"
    by_state = [t for t in node.taints if t.key.startswith(STATE_TAINT_PREFIX) and t.effect != "PreferNoSchedule"]
    if by_state:
        return NodeState.TAINTED, by_state[0].key
    return NodeState.READY, ""


def queue_rows(snapshot: ClusterSnapshot) -> dict[str, Queue]:
    """Return the queues by name."""
    parents = {queue.parent for queue in snapshot.queues}
    return {queue.name: _queue_row(queue, is_leaf=queue.name not in parents) for queue in snapshot.queues}


def _queue_row(queue: QueueFacts, *, is_leaf: bool) -> Queue:
    resources = {
        name: _resource(amount)
        for name, amount in (("cpu", queue.cpu), ("memory", queue.memory), ("gpu", queue.gpu))
        if amount is not None
    }
    gpu = queue.gpu or QueueResource()
    row = Queue(
        name=queue.name,
        uid=queue.meta.uid,
        display_name=queue.display_name[:253],
        parent=queue.parent,
        is_leaf=is_leaf,
        priority=queue.priority,
        gpu_quota=gpu.quota,
        gpu_limit=gpu.limit,
        gpu_weight=gpu.over_quota_weight,
        resources=resources,
        created_at=moment(queue.meta.created),
    )
    return _stamped(row)


def _resource(amount: QueueResource) -> dict[str, float | None]:
    return {"quota": amount.quota, "limit": amount.limit, "over_quota_weight": amount.over_quota_weight}


def topology_rows(snapshot: ClusterSnapshot) -> dict[str, Topology]:
    """Return the topologies by name."""
    return {topology.name: _topology_row(topology) for topology in snapshot.topologies}


def _topology_row(topology: TopologyFacts) -> Topology:
    levels = [{"label": level.node_label, "alias": level.alias} for level in topology.levels]
    return _stamped(Topology(name=topology.name, uid=topology.meta.uid, levels=levels))


def domain_rows(snapshot: ClusterSnapshot, nodes: Mapping[str, Node]) -> dict[tuple[str, str], Domain]:
    """Return the domains by topology and path, from the broadest down; single nodes are no domains here.

    A node counts in a level when it carries the labels of that level and of all broader ones.
    """
    found: dict[tuple[str, str], Domain] = {}
    for topology in snapshot.topologies:
        for node in snapshot.nodes:
            _count_node(found, topology, node.meta.labels, nodes[node.name])
    return {key: _stamped(row) for key, row in found.items()}


def _count_node(
    found: dict[tuple[str, str], Domain], topology: TopologyFacts, labels: Mapping[str, str], node: Node
) -> None:
    path: list[str] = []
    for depth, level in enumerate(topology.levels):
        value = labels.get(level.node_label)
        if value is None or level.node_label == HOSTNAME_LABEL:
            return
        parent = "/".join(path)
        path.append(value)
        key = topology.name, "/".join(path)
        if key not in found:
            found[key] = Domain(
                topology=topology.name,
                level=depth,
                label=level.node_label,
                path=key[1][:1024],
                parent_path=parent[:1024],
                name=value,
            )
        _add_node(found[key], node)


def _add_node(domain: Domain, node: Node) -> None:
    domain.nodes += 1
    domain.nodes_free += node.gpus > 0 and node.gpus_free == node.gpus
    for field in ("gpus", "gpus_used", "gpus_free", "gpus_lost"):
        setattr(domain, field, round(getattr(domain, field) + getattr(node, field), 6))


def pods_by_gang(snapshot: ClusterSnapshot) -> dict[tuple[str, str], list[PodFacts]]:
    """Return pods by the namespace and name of the PodGroup that their annotation names."""
    found: dict[tuple[str, str], list[PodFacts]] = defaultdict(list)
    for pod in snapshot.pods:
        name = pod.meta.annotations.get(GROUP_ANNOTATION)
        if name:
            found[pod.meta.namespace, name].append(pod)
    return found


def gang_rows(
    snapshot: ClusterSnapshot, gpus: Mapping[str, float], filters: NodeFilters | None = None
) -> dict[str, Gang]:
    """Return the gangs by uid: one per PodGroup, with numbers of its pods where pods were read."""
    members = pods_by_gang(snapshot)
    pods_known = snapshot.was_read("Pod")
    rows = {}
    for podgroup in snapshot.podgroups:
        pods = members.get((podgroup.meta.namespace, podgroup.meta.name), []) if pods_known else None
        rows[podgroup.meta.uid] = _gang_row(podgroup, pods, gpus, filters)
    return rows


def filter_rows(filters: NodeFilters) -> dict[str, NodeFilter]:
    """Return the filters that gangs name, by key."""
    return {key: _stamped(NodeFilter(key=key, barred=list(names))) for key, names in filters.barred.items()}


def _gang_row(
    podgroup: PodGroup, pods: list[PodFacts] | None, gpus: Mapping[str, float], filters: NodeFilters | None
) -> Gang:
    topology = podgroup.topology
    row = Gang(
        uid=podgroup.meta.uid,
        namespace=podgroup.meta.namespace,
        name=podgroup.meta.name,
        queue=podgroup.queue,
        priority_class=podgroup.priority_class_name,
        preemptibility=podgroup.preemptibility[:32],
        min_member=podgroup.min_member,
        topology=topology.topology if topology else "",
        required_level=topology.required_level if topology else "",
        preferred_level=topology.preferred_level if topology else "",
        created_at=moment(podgroup.meta.created),
    )
    if pods is not None:
        _count_pods(row, pods, gpus)
        if filters is not None:
            waiting = [pod for pod in pods if pod.phase not in ENDED and not pod.node_name and gpus[pod.meta.uid]]
            row.node_filter = filters.of(waiting, podgroup.meta.labels.get(filters.pool_label, ""))
    return _stamped(row)


def _count_pods(row: Gang, pods: list[PodFacts], gpus: Mapping[str, float]) -> None:
    alive = [pod for pod in pods if pod.phase not in ENDED]
    waiting = [pod for pod in alive if not pod.node_name]
    running = sum(pod.phase == "Running" and pod.meta.deleted is None for pod in alive)
    asked = [gpus[pod.meta.uid] for pod in alive or pods]
    row.pods_total, row.pods_waiting, row.pods_placed = len(pods), len(waiting), len(alive) - len(waiting)
    row.gpus = round(sum(asked), 6)
    row.gpus_waiting = round(sum(gpus[pod.meta.uid] for pod in waiting), 6)
    row.shape = f"{len(asked)} x {asked[0]:g}" if len(set(asked)) == 1 else ""
    row.is_running = running >= max(row.min_member or 1, 1)


def pod_rows(snapshot: ClusterSnapshot, gpus: Mapping[str, float]) -> dict[str, Pod]:
    """Return by uid the pods that name a gang, ask for GPUs or are meant for a scheduler that is replayed."""
    schedulers = {shard.config.params.scheduler_name for shard in snapshot.shards}
    return {
        pod.meta.uid: _pod_row(pod, gpus[pod.meta.uid])
        for pod in snapshot.pods
        if gpus[pod.meta.uid] or GROUP_ANNOTATION in pod.meta.annotations or pod.scheduler_name in schedulers
    }


def _pod_row(pod: PodFacts, gpus: float) -> Pod:
    scheduled = pod.condition("PodScheduled")
    row = Pod(
        uid=pod.meta.uid,
        namespace=pod.meta.namespace,
        name=pod.meta.name,
        sub_group=pod.meta.labels.get(SUBGROUP_LABEL, ""),
        phase=pod.phase[:16],
        node=pod.node_name,
        gpus=gpus,
        is_gated=bool(pod.gates),
        is_terminating=pod.meta.deleted is not None,
        reason=(pod.reason or (scheduled.reason if scheduled and not pod.node_name else ""))[:253],
        restarts=sum(state.restarts for state in pod.container_states),
        created_at=moment(pod.meta.created),
    )
    return _stamped(row, pod.meta.annotations.get(GROUP_ANNOTATION, ""))


def _stamped(row: Row, *more: object) -> Row:
    """Return the row with the fingerprint of all its facts."""
    facts = [getattr(row, field.attname) for field in row._meta.concrete_fields]  # noqa: SLF001 - Django's public API
    row.fingerprint = fingerprint(*facts, *more)
    return row
