"""A gang that does not exist yet, as if it were submitted now."""

from __future__ import annotations

from dataclasses import replace

from gangdash.engine.changes.change import (
    GROUP_ANNOTATION,
    Change,
    ChangeError,
    amounts,
    count,
    gang_key,
    required,
)
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.pod import Container, Pod
from gangdash.engine.model.podgroup import PodGroup, TopologyConstraint


def submit(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Add a gang of ``pods`` equal pods that arrives now: queue=, gpu=, cpu=, memory=, required=, topology=, ..."""
    namespace, _, name = gang_key(change).partition("/")
    if not name:
        raise ChangeError(f"submit: {change.object!r} is not NAMESPACE/NAME")
    if any(g.key == f"{namespace}/{name}" for g in snapshot.podgroups):
        raise ChangeError(f"submit: PodGroup {namespace}/{name} exists already")
    pods_asked = count(change, "pods", 1)
    group = _new_group(snapshot, change, namespace, name, pods_asked)
    scheduler = snapshot.shards[0].config.params.scheduler_name if snapshot.shards else "kai-scheduler"
    pods = tuple(new_pod(snapshot, change, group, scheduler, i) for i in range(pods_asked))
    return replace(snapshot, podgroups=(*snapshot.podgroups, group), pods=(*snapshot.pods, *pods))


def _new_group(snapshot: ClusterSnapshot, change: Change, namespace: str, name: str, pods_asked: int) -> PodGroup:
    values = change.values
    pool = {k.removeprefix("label."): v for k, v in values.items() if k.startswith("label.")}
    constraint = TopologyConstraint(
        topology=values.get("topology", ""),
        required_level=values.get("required", ""),
        preferred_level=values.get("preferred", ""),
    )
    return PodGroup(
        meta=Meta(name=name, namespace=namespace, uid=f"added-{name}", created=snapshot.as_of, labels=pool),
        queue=required(change, "queue"),
        min_member=count(change, "min", pods_asked),
        priority_class_name=values.get("priority_class", ""),
        preemptibility=values.get("preemptibility", ""),
        topology=constraint if constraint != TopologyConstraint() else None,
    )


def new_pod(snapshot: ClusterSnapshot, change: Change, group: PodGroup, scheduler: str, index: int) -> Pod:
    name = f"{group.meta.name}-{index}"
    meta = Meta(
        name=name,
        namespace=group.meta.namespace,
        uid=f"added-{name}",
        created=snapshot.as_of,
        annotations={GROUP_ANNOTATION: group.meta.name},
    )
    selector = {k.removeprefix("selector."): v for k, v in change.values.items() if k.startswith("selector.")}
    container = Container(name="main", requests=amounts(change))
    return Pod(meta=meta, scheduler_name=scheduler, containers=(container,), node_selector=selector)
