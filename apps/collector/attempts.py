"""How far each gang of one reading has come, and which gangs are attempts at the same thing.

Pure. A lineage is what an attempt is an attempt at: the topmost owner by name and the gang's name within it, without
the parts that are new each time (uids, the namespace of an instance). Instances of one NVCF function or task share a
lineage across their namespaces, since a purge takes the namespace with it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.collector.rows import ENDED, moment, pods_by_gang
from gangdash.engine.chain.index import Index, controller
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import PodGroup

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_INSTANCE_LABELS = ("function-version-id", "FUNCTION_VERSION_ID", "task-id", "TASK_ID")


@dataclass(frozen=True, slots=True)
class Progress:
    """One gang's steps as one reading shows them; None where a step is not made, or does not show.

    ``is_gated`` and ``has_lost`` are states, not steps: some pod has a gate; too few pods hold a node, though nobody
    deletes the gang and no pod has ended by itself.
    """

    uid: str
    lineage: str
    requested_at: datetime | None
    created_at: datetime | None
    is_gated: bool
    decided_at: datetime | None
    bound_at: datetime | None
    ready_at: datetime | None
    has_lost: bool


def progress_of(snapshot: ClusterSnapshot) -> dict[str, Progress]:
    """Return by uid how far the gangs are. Only for readings that have pods and PodGroups."""
    index, members = Index(snapshot), pods_by_gang(snapshot)
    decided = _decisions(snapshot)
    instances = {meta.name: _instance(meta.labels) for meta in snapshot.namespaces}
    return {
        group.meta.uid: _progress(index, group, members.get((group.meta.namespace, group.meta.name), []), decided,
                                  instances.get(group.meta.namespace, ""))
        for group in snapshot.podgroups
    }  # fmt: skip


def _decisions(snapshot: ClusterSnapshot) -> dict[tuple[str, str], float]:
    """Return by namespace and pod name when the scheduler handed it to the binder."""
    return {
        (request.meta.namespace, request.pod_name): request.meta.created
        for request in snapshot.bind_requests
        if request.meta.created is not None
    }


def _progress(
    index: Index, group: PodGroup, pods: Sequence[Pod], decided: Mapping[tuple[str, str], float], instance: str
) -> Progress:
    owners = index.owners(group.meta)
    alive = [pod for pod in pods if pod.phase not in ENDED and pod.meta.deleted is None]
    least = max(group.min_member or 1, 1)
    asked = [decided[key] for pod in alive if (key := (pod.meta.namespace, pod.meta.name)) in decided]
    bound = _times(alive, "PodScheduled")
    return Progress(
        uid=group.meta.uid,
        lineage=lineage(group, owners[-1].kind if owners else "", owners[-1].meta if owners else None, pods, instance),
        requested_at=moment(owners[-1].meta.created if owners else None),
        created_at=moment(group.meta.created),
        is_gated=any(pod.gates for pod in alive),
        decided_at=moment(min([*asked, *bound], default=None)),
        bound_at=moment(_nth(bound, least)),
        ready_at=moment(_nth(_times(alive, "Ready"), least)),
        has_lost=_has_lost([group.meta, *(owner.meta for owner in owners)], pods, alive, least),
    )


def _has_lost(above: Iterable[Meta], pods: Iterable[Pod], alive: Iterable[Pod], least: int) -> bool:
    if any(meta.deleted is not None for meta in above) or any(pod.phase in ENDED for pod in pods):
        return False
    return sum(bool(pod.node_name) for pod in alive) < least


def _times(pods: Iterable[Pod], condition: str) -> list[float]:
    found = (pod.condition(condition) for pod in pods)
    return sorted(c.since for c in found if c is not None and c.status == "True" and c.since is not None)


def _nth(times: Sequence[float], count: int) -> float | None:
    return times[count - 1] if len(times) >= count else None


def lineage(group: PodGroup, owner_kind: str, owner: Meta | None, pods: Sequence[Pod], instance: str) -> str:
    """Return what this gang is an attempt at, as a hash of fixed length."""
    of = next((found for meta in [group.meta, *(pod.meta for pod in pods)] if (found := _instance(meta.labels))), "")
    of = of or instance
    namespace = group.meta.namespace
    ref = controller(group.meta)
    # A controller that makes a PodGroup for each pod names it after the pod, anew each time.
    name = "Pod" if ref is not None and ref.kind == "Pod" else group.meta.name
    words = [of or namespace, owner_kind, owner.name if owner else "", name]
    if of:
        words = [word.replace(namespace, "*") for word in words]
    return hashlib.blake2b("\n".join(_UID.sub("*", word) for word in words).encode(), digest_size=16).hexdigest()


def _instance(labels: Mapping[str, str]) -> str:
    """Return the function version or task that NVCF says an object belongs to; both spellings of its keys."""
    for key, value in sorted(labels.items()):
        if value and key.rpartition("/")[2] in _INSTANCE_LABELS:
            return value
    return ""
