"""Reads of nodes, queues and domains.

Nodes, queues and domains carry no namespace: whoever sees any namespace of a cluster sees them, names of others'
gangs are not among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, QuerySet, Sum

from apps.accounts.scope import Scope
from apps.clusters.models import Cluster
from apps.inventory.choices import NodeState
from apps.inventory.models import CapacitySample, Domain, Node, NodeFilter, Queue, StateChange, Topology

CLUSTER_KEY = ""
"""The key of the whole cluster among a sample's domains."""


@dataclass(frozen=True, slots=True)
class GpuTotals:
    """GPUs of the visible clusters; ``total = used + free + lost``."""

    total: float
    used: float
    free: float
    lost_cordoned: float
    lost_not_ready: float
    lost_other: float

    @property
    def lost(self) -> float:
        return self.lost_cordoned + self.lost_not_ready + self.lost_other


def node_list(*, scope: Scope, cluster: str = "") -> QuerySet[Node]:
    """Return nodes by name, of every visible cluster or of the named one that is read."""
    nodes = Node.objects.filter(scope.cluster_filter(cluster_field="cluster__name")).select_related("cluster")
    return nodes.filter(cluster__name=cluster) if cluster else nodes.filter(cluster__is_read=True)


def queue_list(*, scope: Scope, cluster: str = "") -> QuerySet[Queue]:
    """Return queues by name, of every visible cluster or of the named one that is read."""
    queues = Queue.objects.filter(scope.cluster_filter(cluster_field="cluster__name")).select_related("cluster")
    return queues.filter(cluster__name=cluster) if cluster else queues.filter(cluster__is_read=True)


def topology_list(*, scope: Scope, cluster: str) -> QuerySet[Topology]:
    """Return the topologies of one cluster by name."""
    return Topology.objects.filter(scope.cluster_filter(cluster_field="cluster__name"), cluster__name=cluster)


def domain_list(*, scope: Scope, cluster: str, topology: str = "", label: str = "") -> QuerySet[Domain]:
    """Return domains of one cluster from the broadest down; of one topology and one level where named."""
    domains = Domain.objects.filter(scope.cluster_filter(cluster_field="cluster__name"), cluster__name=cluster)
    if topology:
        domains = domains.filter(topology=topology)
    return domains.filter(label=label) if label else domains


def gpu_totals(*, scope: Scope, cluster: str = "") -> GpuTotals:
    """Return how many GPUs there are, used, free and lost; one query."""
    state = Q(state=NodeState.CORDONED), Q(state=NodeState.NOT_READY)
    sums = node_list(scope=scope, cluster=cluster).aggregate(
        total=Sum("gpus", default=0.0),
        used=Sum("gpus_used", default=0.0),
        free=Sum("gpus_free", default=0.0),
        lost_cordoned=Sum("gpus_lost", filter=state[0], default=0.0),
        lost_not_ready=Sum("gpus_lost", filter=state[1], default=0.0),
        lost_other=Sum("gpus_lost", filter=~(state[0] | state[1]), default=0.0),
    )
    return GpuTotals(**sums)


def node_state_counts(*, scope: Scope, cluster: str = "") -> dict[str, int]:
    """Return the number of nodes per state; a state without nodes is absent."""
    rows = node_list(scope=scope, cluster=cluster).order_by().values_list("state").annotate(nodes=Count("pk"))
    return dict(rows)


def state_change_list(*, scope: Scope, cluster: str, since: datetime) -> QuerySet[StateChange]:
    """Return what nodes and parts of the platform did since a moment, newest first."""
    rows = StateChange.objects.filter(scope.cluster_filter(cluster_field="cluster__name"), cluster__name=cluster)
    return rows.filter(at__gte=since).order_by("-at", "-pk")


def capacity_span(*, scope: Scope, cluster: str, since: datetime) -> list[CapacitySample]:
    """Return the samples of shares and free capacity since a moment, oldest first, with the one true at it before."""
    before = capacity_at(scope=scope, cluster=cluster, at=since)
    rows = CapacitySample.objects.filter(scope.cluster_filter(cluster_field="cluster__name"), cluster__name=cluster)
    return [*([before] if before else []), *rows.filter(at__gt=since).order_by("at")]


def capacity_at(*, scope: Scope, cluster: str, at: datetime) -> CapacitySample | None:
    """Return the sample that was true at a moment; None where that time is not kept."""
    rows = CapacitySample.objects.filter(scope.cluster_filter(cluster_field="cluster__name"), cluster__name=cluster)
    return rows.filter(at__lte=at).order_by("-at").first()


def domains_then(*, sample: CapacitySample, topology: str, level: int) -> list[Domain]:
    """Return the domains of one level as a sample has them: names and GPUs only, never to be saved."""
    found = []
    for key, (gpus, free, lost, *_nodes) in sorted(sample.domains.items()):
        owner, mark, path = key.partition("|")
        if not mark or owner != topology or path.count("/") != level:
            continue
        amounts = {"gpus": gpus, "gpus_free": free, "gpus_lost": lost, "gpus_used": gpus - free - lost}
        found.append(Domain(topology=topology, level=level, path=path, name=path.rpartition("/")[2], **amounts))
    return found


def barred_gpus(*, cluster: Cluster, key: str, labels: Sequence[str]) -> dict[str, float]:
    """Return free GPUs on the nodes that a filter bars, by domain path under these labels, broadest first."""
    if not key:
        return {}
    names = NodeFilter.objects.filter(cluster=cluster, key=key).values_list("barred", flat=True).first()
    found: dict[str, float] = {}
    for node in Node.objects.filter(cluster=cluster, name__in=names or (), gpus_free__gt=0):
        if all(label in node.labels for label in labels):
            path = "/".join(str(node.labels[label]) for label in labels)
            found[path] = found.get(path, 0.0) + node.gpus_free
    return found
