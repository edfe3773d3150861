"""Objects by uid, by kind and name, and by owner: the lookups that all joins are made of.

A reference is followed by uid. An object that carries the name and not the uid is another one (re-created under the
same name, or of the same name elsewhere) and is never joined; a name alone counts only where one side has no uid.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.meta import Meta, OwnerRef
from gangdash.engine.model.observed import Event, ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import PodGroup

Key = tuple[str, str, str]
"""Kind, namespace, name."""

PODGANG_LABEL = "grove.io/podgang"
BASE_LABEL = "grove.io/base-podgang"
CLIQUE_LABEL = "grove.io/podclique"
SCALING_GROUP_LABEL = "grove.io/podcliquescalinggroup"
SET_LABEL = "app.kubernetes.io/part-of"
GRAPH_LABEL = "nvidia.com/dynamo-graph-deployment-name"
COMPONENT_LABEL = "nvidia.com/dynamo-component"
JOIN_LABELS = frozenset({PODGANG_LABEL, BASE_LABEL, CLIQUE_LABEL, SCALING_GROUP_LABEL, SET_LABEL, GRAPH_LABEL})


def controller(meta: Meta) -> OwnerRef | None:
    """Return the controlling owner, or the only owner where none says that it controls."""
    found = next((ref for ref in meta.owners if ref.controller), None)
    return found or (meta.owners[0] if len(meta.owners) == 1 else None)


def last_seen(event: Event) -> float:
    return event.last or event.first or event.meta.created or 0.0


class Index:
    """One snapshot's objects, indexed once."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self.snapshot = snapshot

    # Objects

    @cached_property
    def _by_key(self) -> Mapping[Key, ObservedObject]:
        return {
            (kind, item.meta.namespace, item.meta.name): item
            for kind, items in self.snapshot.objects.items()
            for item in items
        }

    @cached_property
    def _by_uid(self) -> Mapping[str, ObservedObject]:
        return {item.meta.uid: item for items in self.snapshot.objects.values() for item in items if item.meta.uid}

    def object(self, kind: str, namespace: str, name: str) -> ObservedObject | None:
        return self._by_key.get((kind, namespace, name))

    def objects(self, kind: str) -> Sequence[ObservedObject]:
        """Return the objects of a kind in the order of namespace and name."""
        return sorted(self.snapshot.objects.get(kind, ()), key=lambda item: item.meta.key)

    # Owners

    def referred(self, ref: OwnerRef, namespace: str) -> ObservedObject | None:
        """Return the object that an owner reference means: by uid, else by name where a uid is missing."""
        found = self._by_uid.get(ref.uid) if ref.uid else None
        if found is not None:
            return found if found.meta.namespace in {namespace, ""} else None
        named = self.object(ref.kind, namespace, ref.name) or self.object(ref.kind, "", ref.name)
        return named if named is not None and not (ref.uid and named.meta.uid) else None

    def owner(self, meta: Meta) -> ObservedObject | None:
        """Return the object that controls another one."""
        ref = controller(meta)
        return self.referred(ref, meta.namespace) if ref is not None else None

    def owners(self, meta: Meta) -> list[ObservedObject]:
        """Return the chain of controllers, nearest first; a circle of references ends it."""
        chain: list[ObservedObject] = []
        current = self.owner(meta)
        while current is not None and current not in chain:
            chain.append(current)
            current = self.owner(current.meta)
        return chain

    @cached_property
    def _children(self) -> Mapping[str, list[ObservedObject]]:
        found: dict[str, list[ObservedObject]] = defaultdict(list)
        for items in self.snapshot.objects.values():
            for item in items:
                owner = self.owner(item.meta)
                if owner is not None:
                    found[owner.ref].append(item)
        for children in found.values():
            children.sort(key=lambda item: (item.kind, item.meta.key))
        return found

    def children(self, owner: ObservedObject, kind: str = "") -> list[ObservedObject]:
        """Return what an object controls, of one kind or of all."""
        return [item for item in self._children.get(owner.ref, ()) if kind in {"", item.kind}]

    # Pods and PodGroups

    @cached_property
    def pods(self) -> Sequence[Pod]:
        return sorted(self.snapshot.pods, key=lambda pod: pod.key)

    @cached_property
    def _pods_by_owner(self) -> Mapping[str, list[Pod]]:
        found: dict[str, list[Pod]] = defaultdict(list)
        for pod in self.pods:
            owner = self.owner(pod.meta)
            if owner is not None:
                found[owner.ref].append(pod)
        return found

    def pods_of(self, owner: ObservedObject) -> list[Pod]:
        return self._pods_by_owner.get(owner.ref, [])

    @cached_property
    def _pods_by_label(self) -> Mapping[Key, list[Pod]]:
        found: dict[Key, list[Pod]] = defaultdict(list)
        for pod in self.pods:
            for key in JOIN_LABELS & pod.meta.labels.keys():
                found[key, pod.meta.namespace, pod.meta.labels[key]].append(pod)
        return found

    def labelled(self, key: str, namespace: str, value: str) -> list[Pod]:
        """Return the pods of a namespace with one of the labels that join, in the order of their names."""
        return self._pods_by_label.get((key, namespace, value), []) if value else []

    @cached_property
    def pods_by_key(self) -> Mapping[str, Pod]:
        return {pod.key: pod for pod in self.pods}

    @cached_property
    def podgroups(self) -> Mapping[str, PodGroup]:
        """By ``namespace/name``, in that order."""
        return {group.key: group for group in sorted(self.snapshot.podgroups, key=lambda group: group.key)}

    # Events

    @cached_property
    def _events(self) -> Mapping[Key, list[Event]]:
        found: dict[Key, list[Event]] = defaultdict(list)
        for event in self.snapshot.events:
            found[(event.kind, event.namespace, event.name)].append(event)
        for events in found.values():
            events.sort(key=lambda event: (last_seen(event), event.meta.name))
        return found

    def events(self, kind: str, namespace: str, name: str, uid: str = "") -> Sequence[Event]:
        """Return the events about an object, the latest last; those about an earlier one of its name are left out."""
        found = self._events.get((kind, namespace, name), ())
        return [event for event in found if not (uid and event.uid) or event.uid == uid] if uid else found


def alive(pods: Iterable[Pod]) -> list[Pod]:
    """Return the pods that controllers count: neither ended nor being deleted."""
    return [pod for pod in pods if pod.meta.deleted is None and pod.phase not in {"Succeeded", "Failed"}]
