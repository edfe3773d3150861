"""What belongs to what, from a DynamoGraphDeployment down to its pods and back up.

Each join goes by uid, then by owner, then by label; a level that could not be read is stepped over and named by the
labels below it. Names are never taken apart: a scaled gang's name does not match its cliques, and names may be cut.
Several PodGroups for one PodGang, or none, are results here and findings elsewhere.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gangdash.engine.chain.index import (
    BASE_LABEL,
    CLIQUE_LABEL,
    GRAPH_LABEL,
    PODGANG_LABEL,
    SCALING_GROUP_LABEL,
    SET_LABEL,
    Index,
    controller,
)
from gangdash.engine.chain.platform import Platform
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import PodGroup

GROUP_ANNOTATION = "pod-group-name"
TOP_OWNER_ANNOTATION = "kai.scheduler/top-owner-metadata"
EPOCH_LABEL = "grove.io/epoch"
REPLICA_LABEL = "grove.io/podcliqueset-replica-index"
MANAGED_LABEL = "app.kubernetes.io/managed-by"
GROVE = "grove-operator"
TOP_KINDS = ("DynamoGraphDeployment", "PodCliqueSet")
_TOP_OWNER_UID = re.compile(r"^uid:\s*[\"']?([^\s\"']+)", re.MULTILINE)
_TOP_OWNER_KIND = re.compile(r"^kind:\s*[\"']?PodGang[\"']?\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Link:
    """One object of an ancestry. ``item`` is None where only a reference or a label tells of it; ``by`` says which."""

    kind: str
    namespace: str
    name: str
    by: str
    item: ObservedObject | None = None

    @property
    def ref(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}" if self.namespace else f"{self.kind}/{self.name}"


class Chain(Index):
    """The joins of one snapshot."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        super().__init__(snapshot)
        self.as_of = snapshot.as_of

    @cached_property
    def namespaces(self) -> Mapping[str, Meta]:
        return {meta.name: meta for meta in self.snapshot.namespaces}

    @cached_property
    def platform(self) -> Platform:
        return Platform(self)

    # Gangs of Grove

    @cached_property
    def _podgang_uids(self) -> Mapping[str, ObservedObject]:
        return {gang.meta.uid: gang for gang in self.objects("PodGang") if gang.meta.uid}

    def podgang_of(self, podgroup: PodGroup) -> ObservedObject | None:
        """Return the PodGang that a PodGroup was made from: owner, then KAI's note of the top owner, then the name."""
        for ref in podgroup.meta.owners:
            if ref.kind == "PodGang":
                return self.referred(ref, podgroup.meta.namespace)
        note = podgroup.meta.annotations.get(TOP_OWNER_ANNOTATION, "")
        uid = _TOP_OWNER_UID.search(note)
        if uid is not None and _TOP_OWNER_KIND.search(note):
            return self._podgang_uids.get(uid[1])
        if podgroup.meta.owners:
            return None
        return self.object("PodGang", podgroup.meta.namespace, podgroup.meta.name)

    @cached_property
    def _podgroups_by_gang(self) -> Mapping[str, list[PodGroup]]:
        found: dict[str, list[PodGroup]] = defaultdict(list)
        for podgroup in self.podgroups.values():
            gang = self.podgang_of(podgroup)
            if gang is not None:
                found[gang.ref].append(podgroup)
        return found

    def podgroups_of(self, podgang: ObservedObject) -> list[PodGroup]:
        """Return the PodGroups made from a PodGang: one is right, none and two are not."""
        return self._podgroups_by_gang.get(podgang.ref, [])

    def members(self, podgang: ObservedObject) -> list[Pod]:
        """Return the pods of a PodGang: those that carry its label, and those that it lists."""
        found = {pod.key: pod for pod in self.labelled(PODGANG_LABEL, podgang.meta.namespace, podgang.meta.name)}
        for namespace, name in references(podgang):
            pod = self.pods_by_key.get(f"{namespace or podgang.meta.namespace}/{name}")
            if pod is not None and pod.meta.labels.get(PODGANG_LABEL, podgang.meta.name) == podgang.meta.name:
                found.setdefault(pod.key, pod)
        return [found[key] for key in sorted(found)]

    def cliques_of(self, podgang: ObservedObject) -> list[tuple[str, int | None, ObservedObject | None]]:
        """Return name, minimum and object of each PodClique that a PodGang holds."""
        return [
            (str(group.get("name", "")), minimum(group), self.object("PodClique", podgang.meta.namespace, str(name)))
            for group in podgang.facts.get("spec.podgroups") or ()
            if (name := group.get("name"))
        ]

    def base_names(self, podgang: ObservedObject) -> list[str]:
        """Return the names of the gangs that this one waits for, existing or not."""
        metas = [podgang.meta, *(pod.meta for pod in self.members(podgang))]
        metas += [clique.meta for _, _, clique in self.cliques_of(podgang) if clique is not None]
        named = {meta.labels[BASE_LABEL] for meta in metas if BASE_LABEL in meta.labels}
        return sorted(named) or self._epoch_bases(podgang)

    def _epoch_bases(self, podgang: ObservedObject) -> list[str]:
        """Return what the PodGangMap makes a gang depend on; an epoch without a PodGang is named as such."""
        epoch = podgang.meta.labels.get(EPOCH_LABEL, "")
        found: list[str] = []
        for entry in self._map_entries(podgang):
            if str(entry.get("epoch", "")) == epoch:
                found += [self._epoch_gang(podgang, str(wanted)) for wanted in entry.get("dependsOn") or ()]
        return sorted(found)

    def _map_entries(self, podgang: ObservedObject) -> list[Mapping[str, Any]]:
        top = controller(podgang.meta)
        replica = podgang.meta.labels.get(REPLICA_LABEL, "0")
        if top is None or not podgang.meta.labels.get(EPOCH_LABEL):
            return []
        found = self.object("PodGangMap", podgang.meta.namespace, f"{top.name}-{replica}")
        return list(found.facts.get("spec.entries") or ()) if found is not None else []

    def _epoch_gang(self, podgang: ObservedObject, epoch: str) -> str:
        replica = podgang.meta.labels.get(REPLICA_LABEL, "0")
        for other in self.objects("PodGang"):
            labels = other.meta.labels
            same = other.meta.namespace == podgang.meta.namespace and labels.get(REPLICA_LABEL, "0") == replica
            if same and labels.get(EPOCH_LABEL) == epoch and controller(other.meta) == controller(podgang.meta):
                return other.meta.name
        return f"epoch {epoch}"

    # Cliques, sets, graphs

    def clique_of(self, pod: Pod) -> ObservedObject | None:
        """Return the PodClique that made a pod."""
        owner = self.owner(pod.meta)
        if owner is not None:
            return owner if owner.kind == "PodClique" else None
        ref = controller(pod.meta)
        if ref is not None and ref.kind != "PodClique":
            return None
        name = pod.meta.labels.get(CLIQUE_LABEL, "")
        found = self.object("PodClique", pod.meta.namespace, name)
        return found if found is not None and (ref is None or ref.uid in {"", found.meta.uid}) else None

    def set_of(self, meta: Meta) -> ObservedObject | None:
        """Return the PodCliqueSet above an object of Grove: by its owners, else by its label."""
        above = next((item for item in self.owners(meta) if item.kind == "PodCliqueSet"), None)
        if above is not None or meta.labels.get(MANAGED_LABEL) != GROVE:
            return above
        return self._not_orphaned(meta, self.object("PodCliqueSet", meta.namespace, meta.labels.get(SET_LABEL, "")))

    def _not_orphaned(self, meta: Meta, found: ObservedObject | None) -> ObservedObject | None:
        """Return the set found by label unless the object names an earlier set of that name as its owner."""
        ref = controller(meta)
        if found is None or ref is None or ref.kind != found.kind:
            return found
        return found if ref.uid in {"", found.meta.uid} or not found.meta.uid else None

    def sets_of(self, graph: ObservedObject) -> list[ObservedObject]:
        """Return the PodCliqueSets made for a graph: owned by it, or labelled with its name and owned by nobody."""
        owned = self.children(graph, "PodCliqueSet")
        if owned:
            return owned
        return [
            item
            for item in self.objects("PodCliqueSet")
            if item.meta.namespace == graph.meta.namespace
            and item.meta.labels.get(GRAPH_LABEL) == graph.meta.name
            and controller(item.meta) is None
        ]

    def of_set(self, kind: str, clique_set: ObservedObject) -> list[ObservedObject]:
        """Return what belongs to a PodCliqueSet, over any number of owners."""
        return list(self._by_set(kind).get(clique_set.ref, ()))

    def _by_set(self, kind: str) -> Mapping[str, list[ObservedObject]]:
        found = self._set_members.get(kind)
        if found is None:
            found = self._set_members[kind] = defaultdict(list)
            for item in self.objects(kind):
                above = self.set_of(item.meta)
                if above is not None:
                    found[above.ref].append(item)
        return found

    @cached_property
    def _set_members(self) -> dict[str, dict[str, list[ObservedObject]]]:
        return {}

    def tops(self) -> list[ObservedObject]:
        """Return the objects that people submit and Grove or Dynamo carry out."""
        graphs = self.objects("DynamoGraphDeployment")
        made = {item.ref for graph in graphs for item in self.sets_of(graph)}
        return [*graphs, *(item for item in self.objects("PodCliqueSet") if item.ref not in made)]

    # Ancestry

    def ancestry(self, meta: Meta, pods: tuple[Pod, ...] = ()) -> list[Link]:
        """Return what is above an object, nearest first; its pods' labels tell of levels that could not be read."""
        links = self._owner_links(meta)
        for pod in pods:
            if links and links[-1].kind in TOP_KINDS and links[-1].item is not None:
                break
            more = self._owner_links(pod.meta)
            links = more if len(more) > len(links) else links
        return self._labelled_top(links, [meta, *(pod.meta for pod in pods)])

    def _owner_links(self, meta: Meta) -> list[Link]:
        links = [Link(item.kind, item.meta.namespace, item.meta.name, "owner", item) for item in self.owners(meta)]
        last = links[-1].item.meta if links and links[-1].item is not None else meta
        ref = controller(last)
        if ref is not None and ref.kind != "Node" and self.referred(ref, last.namespace) is None:
            links.append(Link(ref.kind, meta.namespace, ref.name, "reference"))
        return links

    def _labelled_top(self, links: list[Link], metas: list[Meta]) -> list[Link]:
        known = {link.kind for link in links}
        items = [link.item.meta for link in links if link.item is not None]
        for kind, key in (("PodCliqueSet", SET_LABEL), ("DynamoGraphDeployment", GRAPH_LABEL)):
            if kind in known or "DynamoGraphDeployment" in known:
                continue
            for meta in (*items, *metas):
                name = meta.labels.get(key, "")
                if name and (key != SET_LABEL or meta.labels.get(MANAGED_LABEL) == GROVE):
                    links = [*links, Link(kind, meta.namespace, name, "label", self.object(kind, meta.namespace, name))]
                    break
        return links

    def scaling_group_of(self, clique: ObservedObject) -> str:
        """Return the name of the scaling group that a PodClique is part of, empty for a clique of its own."""
        owner = self.owner(clique.meta)
        if owner is not None and owner.kind == "PodCliqueScalingGroup":
            return owner.meta.name
        return clique.meta.labels.get(SCALING_GROUP_LABEL, "")


def references(podgang: ObservedObject) -> list[tuple[str, str]]:
    """Return namespace and name of each pod that a PodGang lists."""
    return [
        (str(ref.get("namespace", "")), str(ref.get("name", "")))
        for group in podgang.facts.get("spec.podgroups") or ()
        for ref in group.get("podReferences") or ()
    ]


def minimum(group: Mapping[str, object]) -> int | None:
    found = group.get("minReplicas")
    return found if isinstance(found, int) and not isinstance(found, bool) else None
