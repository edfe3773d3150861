"""Everything about a snapshot that more than one explanation asks for, indexed once.

Pods by gang, events by object, objects by kind and name, which shard sees what. Leaves out judgement: that is in the
modules beside this one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from gangdash.engine.chain import Chain
from gangdash.engine.chain.index import controller
from gangdash.engine.explain.stock import Stock
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.config import SchedulerParams, Shard
from gangdash.engine.model.cycle import CycleResult, GangResult, QueueUse
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.node import Node
from gangdash.engine.model.observed import Event, ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import BindRequest, PodGroup
from gangdash.engine.model.queue import Queue
from gangdash.engine.model.topology import Topology
from gangdash.engine.plugins import open_session
from gangdash.engine.session import Session
from gangdash.engine.session.build import GROUP_ANNOTATION, in_pool

if TYPE_CHECKING:
    from gangdash.engine.explain.gang import Gang


class Context:
    """One snapshot with the cycles run on it."""

    def __init__(self, snapshot: ClusterSnapshot, cycles: Iterable[CycleResult]) -> None:
        self.snapshot = snapshot
        self.as_of = snapshot.as_of
        self.chain = Chain(snapshot)
        cycles = list(cycles)
        self._sessions: dict[str, Session] = {}
        self._stocks: dict[str, Stock] = {}
        self.gangs: tuple[Gang, ...] = ()
        """Every PodGroup as a gang, filled by ``gang.gangs_of`` on first use."""
        self.graphs: Mapping[str, Mapping[str, list[Gang]]] | None = None
        """Gangs by graph and component, filled by ``siblings`` on first use."""
        self.results: Mapping[tuple[str, str], GangResult] = {
            (gang.namespace, gang.name): gang for cycle in cycles for gang in cycle.gangs
        }
        self.queue_use: Mapping[tuple[str, str], QueueUse] = {
            (queue.shard, queue.name): queue for cycle in cycles for queue in cycle.queues
        }

    @cached_property
    def nodes(self) -> Mapping[str, Node]:
        return {node.name: node for node in self.snapshot.nodes}

    @cached_property
    def pods(self) -> Mapping[tuple[str, str], Pod]:
        return {(pod.meta.namespace, pod.meta.name): pod for pod in self.snapshot.pods}

    @cached_property
    def pods_on(self) -> Mapping[str, list[Pod]]:
        """Pods by the node they are bound to, in the order of their names; ended pods are left out."""
        found: dict[str, list[Pod]] = defaultdict(list)
        for pod in sorted(self.snapshot.pods, key=lambda pod: pod.key):
            if pod.node_name and pod.phase not in {"Succeeded", "Failed"}:
                found[pod.node_name].append(pod)
        return found

    @cached_property
    def queues(self) -> Mapping[str, Queue]:
        return {queue.name: queue for queue in self.snapshot.queues}

    @cached_property
    def children(self) -> Mapping[str, list[Queue]]:
        found: dict[str, list[Queue]] = defaultdict(list)
        for queue in sorted(self.snapshot.queues, key=lambda queue: queue.name):
            found[queue.parent].append(queue)
        return found

    @cached_property
    def topologies(self) -> Mapping[str, Topology]:
        return {topology.name: topology for topology in self.snapshot.topologies}

    @cached_property
    def podgroups(self) -> Mapping[tuple[str, str], PodGroup]:
        return {(group.meta.namespace, group.meta.name): group for group in self.snapshot.podgroups}

    @cached_property
    def bind_requests(self) -> Mapping[tuple[str, str], BindRequest]:
        """By namespace and pod."""
        return {(request.meta.namespace, request.pod_name): request for request in self.snapshot.bind_requests}

    @cached_property
    def node_of(self) -> Mapping[str, str]:
        """The node that each pod is bound to, by the pod's key."""
        return {pod.key: pod.node_name for pod in self.snapshot.pods if pod.node_name}

    # Members

    @cached_property
    def _by_group(self) -> Mapping[str, list[Pod]]:
        found: dict[str, list[Pod]] = defaultdict(list)
        for pod in sorted(self.snapshot.pods, key=lambda pod: pod.key):
            group = pod.meta.annotations.get(GROUP_ANNOTATION)
            if group:
                found[group].append(pod)
        return found

    @cached_property
    def _group_names(self) -> Mapping[str, int]:
        count: dict[str, int] = defaultdict(int)
        for group in self.snapshot.podgroups:
            count[group.meta.name] += 1
        return count

    def members(self, podgroup: PodGroup) -> list[Pod]:
        """Return the pods that name the PodGroup, those that ended too.

        The scheduler joins by name alone; where two namespaces use one name, a reader expects each to have its own.
        """
        pods = self._by_group.get(podgroup.meta.name, [])
        if self._group_names[podgroup.meta.name] > 1:
            return [pod for pod in pods if pod.meta.namespace == podgroup.meta.namespace]
        return pods

    @cached_property
    def has_unknown_priorities(self) -> bool:
        """Whether some gang names a PriorityClass that is not at hand, and none of its pods says its own priority."""
        known = {item.meta.name for item in self.snapshot.priority_classes}
        return any(
            group.priority_class_name
            and group.priority_class_name not in known
            and all(pod.priority is None for pod in self.members(group))
            for group in self.snapshot.podgroups
        )

    @cached_property
    def owned_pods(self) -> Mapping[str, list[Pod]]:
        """Pods by the uid of their controller."""
        found: dict[str, list[Pod]] = defaultdict(list)
        for pod in sorted(self.snapshot.pods, key=lambda pod: pod.key):
            owner = controller(pod.meta)
            if owner is not None:
                found[owner.uid].append(pod)
        return found

    # Shards

    @cached_property
    def params(self) -> SchedulerParams:
        """Return the flags that hold for names and keys in the whole cluster: those of the first shard."""
        return self.snapshot.shards[0].config.params if self.snapshot.shards else SchedulerParams()

    def shard_of(self, meta: Meta) -> Shard | None:
        """Return the shard that sees a PodGroup, queue or node."""
        return next((shard for shard in self.snapshot.shards if in_pool(meta, shard.config.params)), None)

    def session(self, shard: Shard) -> Session:
        """Return the shard's session as it opens: the scheduler's own numbers before it acts. Callers undo changes."""
        found = self._sessions.get(shard.name)
        if found is None:
            found = self._sessions[shard.name] = open_session(self.snapshot, shard)
        return found

    def stock(self, shard: Shard) -> Stock:
        """Return what the gangs of a shard ask about its nodes."""
        found = self._stocks.get(shard.name)
        if found is None:
            found = self._stocks[shard.name] = Stock(self.session(shard))
        return found

    @cached_property
    def scheduler_names(self) -> frozenset[str]:
        return frozenset(shard.config.params.scheduler_name for shard in self.snapshot.shards)

    # Observed objects

    def object(self, kind: str, namespace: str, name: str) -> ObservedObject | None:
        return self.chain.object(kind, namespace, name)

    def objects(self, kind: str) -> Sequence[ObservedObject]:
        return self.chain.objects(kind)

    def owner(self, meta: Meta) -> ObservedObject | None:
        """Return the object that controls another one; one that merely has its name does not."""
        return self.chain.owner(meta)

    def owners(self, meta: Meta) -> list[ObservedObject]:
        """Return the chain of controllers, nearest first."""
        return self.chain.owners(meta)

    def events(self, kind: str, namespace: str, name: str) -> Sequence[Event]:
        """Return the events about an object, the latest last."""
        return self.chain.events(kind, namespace, name)
