"""Changes to a gang that exists: where it may run, how much it asks, what it ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gangdash.engine.changes.change import (
    SUBGROUP_LABEL,
    Change,
    ChangeError,
    amounts,
    count,
    edit_gang,
    edit_waiting_pods,
    gang_key,
    is_member,
    is_waiting,
    number,
    replace_one,
    required,
    unbound,
)
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Container, Pod
from gangdash.engine.model.podgroup import PodGroup, TopologyConstraint
from gangdash.engine.model.queue import PriorityClass
from gangdash.engine.model.selectors import Affinity, Toleration
from gangdash.engine.session.requests import GPU_FRACTION, GPU_MEMORY

_REPLICA_RULE = "spec.template.topologyConstraint"


def evict_gang(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Take a gang off its nodes. Its pods wait again, as their controller makes them anew.

    With ``ends=true`` the gang is over: its waiting pods go too, and none comes back.
    """
    key = gang_key(change)
    over = change.values.get("ends") == "true"
    gone = {
        id(pod)
        for pod in snapshot.pods
        if is_member(pod, key) and pod.phase not in ("Succeeded", "Failed") and (pod.node_name or over)
    }
    if not gone:
        raise ChangeError(f"evict_gang: no pod of {key!r} {'is left' if over else 'holds a node'}")
    names = {pod.key for pod in snapshot.pods if id(pod) in gone}
    requests = tuple(r for r in snapshot.bind_requests if f"{r.meta.namespace}/{r.pod_name}" not in names)
    if over:
        pods = tuple(pod for pod in snapshot.pods if id(pod) not in gone)
    else:
        pods = tuple(unbound(pod) if id(pod) in gone else pod for pod in snapshot.pods)
    return replace(snapshot, pods=pods, bind_requests=requests)


def relax_topology(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Set ``required``, ``preferred`` or ``topology`` (``none`` unsets) of the gang or of ``subgroup``.

    ``PodCliqueSet/NAMESPACE/NAME`` with ``required=none`` takes the constraint off its whole template.
    """
    if change.object.startswith("PodCliqueSet/"):
        return _without_replica_rule(snapshot, change)
    sub = change.values.get("subgroup", "")

    def edited(constraint: TopologyConstraint | None) -> TopologyConstraint:
        base = constraint or TopologyConstraint()
        names = {"required": "required_level", "preferred": "preferred_level", "topology": "topology"}
        values = {field_: change.values[key] for key, field_ in names.items() if key in change.values}
        return replace(base, **{f: "" if v == "none" else v for f, v in values.items()})

    def edit(group: PodGroup) -> PodGroup:
        if not sub:
            return replace(group, topology=edited(group.topology))
        subs = replace_one(
            group.sub_groups,
            lambda s: s.name == sub,
            lambda s: replace(s, topology=edited(s.topology)),
            f"relax_topology: PodGroup {group.key} has no subgroup {sub!r}",
        )
        return replace(group, sub_groups=subs)

    return edit_gang(snapshot, change, edit)


def _without_replica_rule(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    if change.values != {"required": "none"}:
        raise ChangeError(f"relax_topology {change.object}: only required=none can be shown there")
    missing = f"relax_topology: no {change.object} in the snapshot"

    def edit(item: ObservedObject) -> ObservedObject:
        facts = {key: value for key, value in item.facts.items() if not key.startswith(_REPLICA_RULE)}
        return replace(item, facts=facts)

    sets = replace_one(snapshot.objects.get("PodCliqueSet", ()), lambda item: item.ref == change.object, edit, missing)
    return replace(snapshot, objects={**snapshot.objects, "PodCliqueSet": sets})


def shrink_gang(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Lower the minimum to ``pods`` (of ``subgroup`` if named) and drop waiting pods beyond it."""
    wanted, sub = count(change, "pods"), change.values.get("subgroup", "")

    def edit(group: PodGroup) -> PodGroup:
        if not sub:
            return replace(group, min_member=wanted)
        missing = f"shrink_gang: PodGroup {group.key} has no subgroup {sub!r}"
        subs = replace_one(group.sub_groups, lambda s: s.name == sub, lambda s: replace(s, min_member=wanted), missing)
        return replace(group, sub_groups=subs)

    snapshot = edit_gang(snapshot, change, edit)
    return replace(snapshot, pods=_without_surplus(snapshot.pods, gang_key(change), sub, wanted))


def _without_surplus(pods: tuple[Pod, ...], key: str, sub: str, wanted: int) -> tuple[Pod, ...]:
    members = [
        p
        for p in pods
        if is_member(p, key)
        and (not sub or p.meta.labels.get(SUBGROUP_LABEL) == sub)
        and p.phase not in ("Succeeded", "Failed")
    ]
    waiting = sorted((p for p in members if is_waiting(p)), key=lambda p: (p.meta.created or 0.0, p.meta.uid))
    surplus = max(0, min(len(members) - wanted, len(waiting)))
    dropped = {id(p) for p in waiting[len(waiting) - surplus :]}
    return tuple(p for p in pods if id(p) not in dropped)


def shrink_pod(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Let each waiting pod of the gang ask for no more than this; a resource asked as 0 is no longer asked for.

    ``gpu_fraction`` and ``gpu_memory`` (MiB) are those of a pod that asks for part of a GPU.
    """
    shares = {
        name: required(change, key)
        for key, name in (("gpu_fraction", GPU_FRACTION), ("gpu_memory", GPU_MEMORY))
        if key in change.values
    }
    asked = amounts(change)
    if not asked and not shares:
        raise ChangeError(f"shrink_pod {change.object}: say gpu=, cpu= (cores), memory= (GiB) or RESOURCE=")

    def edit(pod: Pod) -> Pod:
        given = {**pod.meta.annotations, **{n: v for n, v in shares.items() if n in pod.meta.annotations}}
        return replace(pod, meta=replace(pod.meta, annotations=given), containers=_resized(pod.containers, asked))

    return edit_waiting_pods(snapshot, change, edit)


def _resized(containers: tuple[Container, ...], asked: Mapping[str, int]) -> tuple[Container, ...]:
    """Take containers down in proportion, so that the pod as a whole, and each init container, asks no more."""
    totals = {name: sum(c.requests.get(name, 0) for c in containers if c.role != "init") for name in asked}

    def smaller(container: Container) -> Container:
        held = dict(container.requests)
        for name in asked.keys() & held.keys():
            if container.role == "init":
                held[name] = min(held[name], asked[name])
            elif totals[name] > asked[name]:
                held[name] = held[name] * asked[name] // totals[name]
        return replace(container, requests={name: amount for name, amount in held.items() if amount > 0})

    return tuple(map(smaller, containers))


def add_toleration(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    value = change.values.get("value", "")
    toleration = Toleration(
        key=required(change, "key"),
        operator="Equal" if value else "Exists",
        value=value,
        effect=change.values.get("effect", ""),
    )
    return edit_waiting_pods(snapshot, change, lambda p: replace(p, tolerations=(*p.tolerations, toleration)))


def change_selector(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """``remove=KEY`` takes a key out, ``KEY=VALUE`` sets one, ``affinity=none`` drops required node affinity."""
    removed = set(filter(None, change.values.get("remove", "").split("+")))
    sets = {k: v for k, v in change.values.items() if k not in ("remove", "affinity")}

    def edit(pod: Pod) -> Pod:
        selector = {k: v for k, v in {**pod.node_selector, **sets}.items() if k not in removed}
        affinity = pod.affinity
        if affinity is not None and change.values.get("affinity") == "none":
            affinity = replace(affinity, node_required=None)
        if affinity is not None and change.values.get("affinity") == "no-pod-rules":
            affinity = Affinity(node_required=affinity.node_required, node_preferred=affinity.node_preferred)
        return replace(pod, node_selector=selector, affinity=affinity)

    return edit_waiting_pods(snapshot, change, edit)


def make_preemptible(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    return edit_gang(snapshot, change, lambda g: replace(g, preemptibility="preemptible"))


def raise_priority(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """``class=NAME`` uses an existing PriorityClass, ``value=N`` a new one of that value."""
    name = change.values.get("class", "")
    if not name:
        value = int(number(change, "value"))
        name = f"what-if-{value}"
        created = PriorityClass(Meta(name=name, uid=f"added-{name}"), value=value)
        snapshot = replace(snapshot, priority_classes=(*snapshot.priority_classes, created))
    elif all(c.meta.name != name for c in snapshot.priority_classes):
        raise ChangeError(f"raise_priority {change.object}: no PriorityClass {name!r} in the snapshot")
    return edit_gang(snapshot, change, lambda g: replace(g, priority_class_name=name))


def move_queue(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    queue = required(change, "queue")
    if all(q.name != queue for q in snapshot.queues):
        raise ChangeError(f"move_queue {change.object}: no queue {queue!r} in the snapshot")
    return edit_gang(snapshot, change, lambda g: replace(g, queue=queue))
