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
from gangdash.engine.model.pod import Container, Pod
from gangdash.engine.model.podgroup import PodGroup, TopologyConstraint
from gangdash.engine.model.queue import PriorityClass
from gangdash.engine.model.selectors import Affinity, Toleration


def evict_gang(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Take a gang off its nodes. Its pods wait again, as their controller makes them anew, unless ``ends=true``."""
    key = gang_key(change)
    held = [p for p in snapshot.pods if is_member(p, key) and p.node_name and p.phase not in ("Succeeded", "Failed")]
    if not held:
        raise ChangeError(f"evict_gang: no pod of {key!r} holds a node")
    ids = {id(p) for p in held}
    if change.values.get("ends") == "true":
        return replace(snapshot, pods=tuple(p for p in snapshot.pods if id(p) not in ids))
    pods = tuple(unbound(p) if id(p) in ids else p for p in snapshot.pods)
    names = {p.key for p in held}
    requests = tuple(r for r in snapshot.bind_requests if f"{r.meta.namespace}/{r.pod_name}" not in names)
    return replace(snapshot, pods=pods, bind_requests=requests)


def relax_topology(snapshot: ClusterSnapshot, change: Change) -> ClusterSnapshot:
    """Set ``required``, ``preferred`` or ``topology`` (``none`` unsets) of the gang or of ``subgroup``."""
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
    """Give each waiting pod of the gang smaller requests; a resource asked as 0 is no longer asked for."""
    asked = amounts(change)
    if not asked:
        raise ChangeError(f"shrink_pod {change.object}: say gpu=, cpu= (cores), memory= (GiB) or RESOURCE=")

    def edit(pod: Pod) -> Pod:
        return replace(pod, containers=tuple(_resized(c, asked) for c in pod.containers))

    return edit_waiting_pods(snapshot, change, edit)


def _resized(container: Container, amounts: Mapping[str, int]) -> Container:
    held = {n: min(a, amounts[n]) if n in amounts else a for n, a in container.requests.items()}
    return replace(container, requests={n: a for n, a in held.items() if a > 0})


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
