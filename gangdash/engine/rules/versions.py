"""Where does an older scheduler than the one replayed decide differently?

What an older release does not know is taken away from what it sees, which follows its rules; where following would
mean another engine, the gangs that it matters to are told so. Relies on the release as ``model.version`` knows it,
and on the scheduler's changelog (CHANGELOG.md at KAI d5bc503a); repairs of crashes and of other components are left
out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.config import GENERATOR_PLUGINS, Plugin, SchedulerConfig, Shard
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import PodGroup, SubGroupSpec
from gangdash.engine.model.topology import Topology
from gangdash.engine.model.version import Version, named, running
from gangdash.engine.session import JobState, RequestKind, Session, Status

_EVICTING = frozenset({"consolidation", "reclaim", "preempt"})
_LAST_WITHOUT_SUCCEEDED: Version = (0, 17, 0)
"""The release that does not see completed pods; later builds see them again."""


def seen_by(snapshot: ClusterSnapshot, shard: Shard) -> tuple[ClusterSnapshot, Shard]:
    """Return the snapshot and flags without what the running release does not know."""
    version = running(shard)
    if version is None or version > _LAST_WITHOUT_SUCCEEDED:
        return snapshot, shard
    if version == _LAST_WITHOUT_SUCCEEDED:
        return replace(snapshot, pods=tuple(_without_success(snapshot.pods))), shard
    groups = tuple(_known_fields(group, version) for group in snapshot.podgroups)
    snapshot = replace(snapshot, podgroups=groups, topologies=_without_aliases(snapshot))
    return snapshot, replace(shard, config=_known_settings(shard.config, version))


def _known_settings(config: SchedulerConfig, version: Version) -> SchedulerConfig:
    """Before there were generators, victims were searched for without any being named."""
    if version < (0, 16, 0):
        missing = [Plugin(name) for name in GENERATOR_PLUGINS if config.plugin(name) is None]
        config = replace(config, plugins=(*config.plugins, *missing))
    if version < (0, 15, 0):
        config = replace(config, params=replace(config.params, stuck_in_releasing=math.inf))
    return config


def _without_success(pods: Iterable[Pod]) -> Iterable[Pod]:
    """Completed pods are as unseen as failed ones, which no release sees."""
    return (replace(pod, phase="Failed") if pod.phase == "Succeeded" else pod for pod in pods)


def _known_fields(group: PodGroup, version: Version) -> PodGroup:
    if group.preemption_delay is not None or group.staleness_grace is not None:
        group = replace(group, preemption_delay=None, staleness_grace=None)
    if version >= (0, 13, 0):
        return group
    if group.min_sub_group is None and all(spec.min_sub_group is None for spec in group.sub_groups):
        return group
    return replace(group, min_sub_group=None, sub_groups=tuple(map(_needing_all, group.sub_groups)))


def _needing_all(spec: SubGroupSpec) -> SubGroupSpec:
    return replace(spec, min_sub_group=None)


def _without_aliases(snapshot: ClusterSnapshot) -> tuple[Topology, ...]:
    return tuple(
        replace(topology, levels=tuple(replace(level, alias="") for level in topology.levels))
        for topology in snapshot.topologies
    )


def follow(session: Session) -> None:
    """Let the session count as the running release does, where that is one number."""
    version = running(session.shard)
    if version is not None and version < (0, 17, 0):
        session.max_gpu_memory = session.min_gpu_memory


class _Gang(NamedTuple):
    session: Session
    job: JobState
    action: str | None
    """The action that changed it, if one did."""


class _Difference(NamedTuple):
    """``what`` went by another rule up to, but without, ``since`` for the gangs that ``touches`` names."""

    since: Version
    what: str
    touches: Callable[[_Gang], bool]


def differences(session: Session, job: JobState, action: str | None) -> list[str]:
    """Return the rules of the running release that matter to a gang and are not replayed."""
    version = running(session.shard)
    if version is None:
        return []
    gang = _Gang(session, job, action)
    found = [difference for difference in _DIFFERENCES if version < difference.since]
    return [f"{d.what} before {named(d.since)}" for d in found if d.touches(gang)]


def _is_searched_for(gang: _Gang) -> bool:
    """Whether a search for victims decided about the gang: one was made for it, or it was a victim."""
    return gang.action in _EVICTING or (gang.job.is_ready and gang.job.pending > 0)


def _is_by_reclaim(gang: _Gang) -> bool:
    return gang.action == "reclaim"


def _asks_memory(gang: _Gang) -> bool:
    return any(task.kind is RequestKind.GPU_MEMORY for task in gang.job.tasks.values())


def _asks_backed_resource(gang: _Gang) -> bool:
    slots = gang.session.backed_slots
    return any(task.request[slot] for task in gang.job.tasks.values() for slot in slots)


def _shares_claims(gang: _Gang) -> bool:
    """Whether several of its pods name one device claim."""
    names = [claim.claim for task in gang.job.tasks.values() for claim in task.pod.claims if claim.claim]
    return len(names) > len(set(names))


def _has_minimum_of_zero(gang: _Gang) -> bool:
    return gang.job.podgroup.min_member == 0


def _needs_some_sub_groups(gang: _Gang) -> bool:
    group = gang.job.podgroup
    return group.min_sub_group is not None or any(spec.min_sub_group is not None for spec in group.sub_groups)


def _has_sub_group_of_zero(gang: _Gang) -> bool:
    return any(spec.min_member == 0 for spec in gang.job.podgroup.sub_groups)


def _has_sidecars(gang: _Gang) -> bool:
    return any(c.role == "sidecar" and c.requests for task in gang.job.tasks.values() for c in task.pod.containers)


def _is_deep(gang: _Gang) -> bool:
    queue = gang.session.queues.get(gang.job.queue)
    return queue is not None and len(queue.ancestors) > 2


def _has_claims(gang: _Gang) -> bool:
    return any(task.pod.claims for task in gang.job.tasks.values())


def _is_constrained(gang: _Gang) -> bool:
    group = gang.job.podgroup
    return group.topology is not None or any(spec.topology is not None for spec in group.sub_groups)


def _has_tree(gang: _Gang) -> bool:
    return any(spec.parent for spec in gang.job.podgroup.sub_groups)


def _waited(gang: _Gang) -> bool:
    return any(task.start_status is Status.PENDING for task in gang.job.tasks.values())


_DIFFERENCES = (
    _Difference((0, 17, 1), "minimum of 0 pods", _has_minimum_of_zero),
    _Difference((0, 17, 1), "devices shared through one claim", _shares_claims),
    _Difference((0, 17, 0), "order of reclaim's victims", _is_by_reclaim),
    _Difference((0, 17, 0), "smallest GPU memory", _asks_memory),
    _Difference((0, 17, 0), "resources that device classes back", _asks_backed_resource),
    _Difference((0, 16, 0), "search for victims", _is_searched_for),
    _Difference((0, 15, 0), "minimums of subgroups", _needs_some_sub_groups),
    _Difference((0, 15, 0), "native sidecars", _has_sidecars),
    _Difference((0, 14, 0), "subgroups with a minimum of 0", _has_sub_group_of_zero),
    _Difference((0, 13, 0), "queues deeper than two levels", _is_deep),
    _Difference((0, 13, 0), "GPUs of device claims", _has_claims),
    _Difference((0, 12, 0), "topologies", _is_constrained),
    _Difference((0, 10, 0), "subgroups below subgroups", _has_tree),
    _Difference((0, 9, 0), "placement", _waited),
)
"""The latest first."""
