"""Is a placed gang against a declared rule: a topology constraint, a queue's limit or quota, Kueue's admission?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from gangdash.engine.explain.amounts import amount
from gangdash.engine.explain.build import named
from gangdash.engine.explain.gang import Gang, gangs_of
from gangdash.engine.explain.queues import RESOURCES, Resource, chain, used_by
from gangdash.engine.explain.times import annotation_time
from gangdash.engine.explain.topology import constraints
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.session.build import START_ANNOTATION
from gangdash.engine.statement import QueueState
from gangdash.engine.verdict import Amount, Constraint, Finding, ReasonCode, Waiting

REPLICA_LABEL = "grove.io/podcliqueset-replica-index"
KUEUE_WORKLOAD = "kueue.x-k8s.io/workload"
_NO_END = Waiting(helps="no")


def violated(gang: Gang) -> Iterator[Finding]:
    """Yield every rule that the placed gang breaks."""
    if not gang.bound:
        return
    own = _own_topology(gang)
    if own is not None:
        yield own
    else:
        yield from _workload_topology(gang)
    yield from _over_limit(gang)
    yield from _kueue(gang)


# Topology


def domain_of(gang: Gang, node: str, levels: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return a node's values of the levels down to the last one given; None when it lacks a label."""
    found = gang.context.nodes.get(node)
    if found is None or any(level not in found.meta.labels for level in levels):
        return None
    return tuple(found.meta.labels[level] for level in levels)


def domains(gang: Gang, levels: tuple[str, ...]) -> Counter[tuple[str, ...]]:
    """Count the gang's bound pods by domain."""
    found = (domain_of(gang, pod.node_name, levels) for pod in gang.bound)
    return Counter(domain for domain in found if domain is not None)


def _own_topology(gang: Gang) -> Finding | None:
    for part, constraint in constraints(gang):
        topology = gang.context.topologies.get(constraint.topology)
        names = [level.alias or level.node_label for level in topology.levels] if topology is not None else []
        labels = [level.node_label for level in topology.levels] if topology is not None else []
        wanted = constraint.required_level
        place = labels.index(wanted) if wanted in labels else names.index(wanted) if wanted in names else -1
        if place < 0 or part:
            continue
        found = domains(gang, tuple(labels[: place + 1]))
        if len(found) > 1:
            return _not_kept(gang, labels[place], [domain[-1] for domain in sorted(found)])
    return None


def _not_kept(gang: Gang, level: str, found: list[str], owner: ObservedObject | None = None, gangs: int = 1) -> Finding:
    form = "self" if owner is None else ""
    return Finding(
        ReasonCode.TOPOLOGY_NOT_KEPT,
        form=form,
        facts={
            "level": level,
            "domains": tuple(found),
            "kind": owner.kind if owner is not None else "",
            "name": owner.meta.name if owner is not None else "",
            "gangs": gangs,
        },
        binding=(
            Constraint(
                ConstraintId.DOMAIN_PINNED,
                level,
                len(found),
                1,
                Unit.COUNT,
                owner.ref if owner is not None else f"PodGroup/{gang.podgroup.key}",
            ),
        ),
        waiting=_NO_END,
    )


def _workload_topology(gang: Gang) -> Iterator[Finding]:
    """Yield the replica-wide rule of a PodCliqueSet that this gang, placed away from its siblings, breaks."""
    owner = gang.owner_of_kind("PodCliqueSet")
    if owner is None:
        return
    level = _replica_level(gang, owner)
    if not level:
        return
    siblings = _siblings(gang, owner)
    found: Counter[tuple[str, ...]] = Counter()
    for sibling in siblings:
        found.update(domains(sibling, (level,)))
    own = domains(gang, (level,))
    if len(found) < 2 or not own or own.most_common(1)[0][0] == found.most_common(1)[0][0]:
        return
    yield _not_kept(gang, level, [domain[0] for domain in sorted(found)], owner, len(siblings))


def _replica_level(gang: Gang, owner: ObservedObject) -> str:
    """Return the node label of the level that a PodCliqueSet requires for each replica."""
    facts = owner.facts
    wanted = facts.get("spec.template.topologyConstraint.pack.required") or facts.get(
        "spec.template.topologyConstraint.packDomain"
    )
    if not wanted:
        return ""
    name = str(facts.get("spec.template.topologyConstraint.topologyName") or "")
    for kind in ("ClusterTopologyBinding", "ClusterTopology"):
        for binding in gang.context.objects(kind):
            for level in binding.facts.get("spec.levels") or ():
                if level.get("domain") == wanted and name in {"", binding.meta.name}:
                    return str(level.get("key", ""))
    return str(wanted) if "/" in str(wanted) else ""


def _siblings(gang: Gang, owner: ObservedObject) -> list[Gang]:
    """Return the gangs of one replica of a PodCliqueSet, this one included."""
    replica = _replica(gang)
    return [
        other
        for other in gangs_of(gang.context)
        if other.meta.namespace == gang.meta.namespace and owner in other.owners and _replica(other) == replica
    ]


def _replica(gang: Gang) -> str:
    return next((pod.meta.labels[REPLICA_LABEL] for pod in gang.pods if REPLICA_LABEL in pod.meta.labels), "")


# Queues


def _over_limit(gang: Gang) -> Iterator[Finding]:
    """Yield limits and quotas that were passed when this gang was started; earlier gangs are within them."""
    for queue in chain(gang):
        for resource in RESOURCES:
            if not gang.held[resource.index]:
                continue
            limit = queue.limit[resource.index]
            used = used_by(queue, resource)
            if limit >= 0 and used > limit and _passed_it(gang, queue, resource, limit):
                yield _exceeded(queue, resource, resource.limit_id, used, limit)
                return
            quota = queue.deserved[resource.index]
            if gang.is_preemptible or quota < 0:
                continue
            used = used_by(queue, resource, non_preemptible=True)
            if used > quota and _passed_it(gang, queue, resource, quota, non_preemptible=True):
                yield _exceeded(queue, resource, resource.quota_id, used, quota)
                return


def _started(gang: Gang) -> tuple[float, str]:
    return (annotation_time(gang.meta, START_ANNOTATION) or gang.meta.created or 0.0, gang.podgroup.key)


def _passed_it(
    gang: Gang, queue: QueueState, resource: Resource, bound: float, *, non_preemptible: bool = False
) -> bool:
    """Whether use was above the bound once this gang had started, counting gangs in the order of their starts."""
    total = 0.0
    for other in sorted(gangs_of(gang.context), key=_started):
        if queue in chain(other) and not (non_preemptible and other.is_preemptible):
            total += other.held[resource.index]
        if other.podgroup is gang.podgroup:
            return total > bound
    return False


def _exceeded(queue: QueueState, resource: Resource, id_: ConstraintId, used: float, bound: float) -> Finding:
    return Finding(
        ReasonCode.LIMIT_EXCEEDED,
        form="" if id_ is resource.limit_id else "quota",
        facts={
            "queue": queue.name,
            "used": Amount(used, resource.unit),
            "limit": Amount(bound, resource.unit),
        },
        binding=(Constraint(id_, queue.name, used, bound, resource.unit, f"Queue/{queue.name}"),),
        waiting=_NO_END,
    )


# Kueue


def _kueue(gang: Gang) -> Iterator[Finding]:
    """Yield a Kueue Workload of the gang's pods that Kueue has not admitted."""
    names = {pod.meta.annotations[KUEUE_WORKLOAD] for pod in gang.bound if KUEUE_WORKLOAD in pod.meta.annotations}
    for name in sorted(names):
        workload = gang.context.object("Workload", gang.meta.namespace, name)
        if workload is None:
            continue
        admitted = next((c.status for c in workload.conditions if c.type == "Admitted"), "False")
        if admitted != "True":
            yield _not_admitted(gang, workload)


def _not_admitted(gang: Gang, workload: ObservedObject) -> Finding:
    quota, used = _kueue_gpus(gang, workload)
    gpus = gang.held[2]
    binding = [named(ConstraintId.STAGE_ADMISSION, workload.meta.name, "Admitted", "not admitted", workload.ref)]
    if quota is not None:
        binding.append(
            Constraint(ConstraintId.QUEUE_QUOTA_GPU, workload.meta.name, used + gpus, quota, Unit.GPU, workload.ref)
        )
    return Finding(
        ReasonCode.LIMIT_EXCEEDED,
        form="kueue" if quota is not None else "kueue_unknown",
        facts={
            "name": workload.meta.name,
            "used": Amount(used + gpus, Unit.GPU),
            "limit": Amount(quota or 0.0, Unit.GPU),
        },
        binding=tuple(binding),
        waiting=_NO_END,
    )


def _kueue_gpus(gang: Gang, workload: ObservedObject) -> tuple[float | None, float]:
    """Return the GPU quota of the workload's ClusterQueue and what Kueue counts as used in it."""
    local = gang.context.object("LocalQueue", gang.meta.namespace, str(workload.facts.get("spec.queueName", "")))
    name = str(local.facts.get("spec.clusterQueue", "")) if local is not None else ""
    queue = gang.context.object("ClusterQueue", "", name)
    if queue is None:
        return None, 0.0
    quota = used = 0.0
    for group in queue.facts.get("spec.resourceGroups") or ():
        for flavor in group.get("flavors") or ():
            quota += _gpus(flavor.get("resources") or (), "nominalQuota")
    for flavor in queue.facts.get("status.flavorsUsage") or ():
        used += _gpus(flavor.get("resources") or (), "total")
    return quota, used


def _gpus(resources: Iterable[Mapping[str, object]], field: str) -> float:
    found = (amount(str(item.get("name", "")), item.get(field, "0")) for item in resources)
    return sum(item.value for item in found if item is not None and item.unit is Unit.GPU)
