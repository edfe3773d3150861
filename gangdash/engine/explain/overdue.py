"""Since when could the gang have been placed, has the scheduler had time since then, and has it shown any sign?"""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.chain.index import last_seen
from gangdash.engine.explain.binding import patience
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.words import condition_of
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.observed import Event
from gangdash.engine.session.build import in_pool

_ENDINGS = frozenset({"Killing", "Evict", "NodeReady", "NodeSchedulable", "SuccessfulDelete", "Completed", "Preempted"})
_SCHEDULERS = ("kai-scheduler", "scheduler")


def placeable_since(gang: Gang) -> float:
    """Return the moment from which the gang could have been placed, as far as history and objects tell."""
    history = gang.context.snapshot.history.get(gang.meta.uid)
    if history is not None and history.placeable_since is not None:
        return history.placeable_since
    moments = [pod.meta.created or 0.0 for pod in gang.pods]
    moments.append(gang.meta.created or 0.0)
    moments.extend(
        condition.since or 0.0
        for node in gang.context.snapshot.nodes
        for condition in node.conditions
        if condition.type == "Ready" and condition.status == "True" and _is_ours(gang, node.meta)
    )
    moments.extend(
        last_seen(event)
        for event in gang.context.snapshot.events
        if event.reason in _ENDINGS and _concerns_us(gang, event)
    )
    return max(moments)


def _is_ours(gang: Gang, meta: Meta) -> bool:
    """Whether an object belongs to the gang's shard."""
    return in_pool(meta, gang.params)


def _concerns_us(gang: Gang, event: Event) -> bool:
    """Whether an event is about the gang's shard; one about an object that is gone may be."""
    context = gang.context
    if event.kind == "Node":
        node = context.nodes.get(event.name)
        return node is None or _is_ours(gang, node.meta)
    if event.kind == "PodGroup":
        podgroup = context.podgroups.get((event.namespace, event.name))
        return podgroup is None or _is_ours(gang, podgroup.meta)
    pod = context.pods.get((event.namespace, event.name))
    node = context.nodes.get(pod.node_name) if pod is not None else None
    return node is None or _is_ours(gang, node.meta)


def had_time(gang: Gang) -> bool:
    """Whether the scheduler had longer than its patience, by history or by a sign of this gang that old."""
    limit = gang.as_of - patience(gang)
    history = gang.context.snapshot.history.get(gang.meta.uid)
    if history is not None and history.placeable_since is not None:
        return history.placeable_since <= limit
    if placeable_since(gang) > limit:
        return False
    return any(moment <= limit for moment in _signs(gang)) or is_silent(gang)


def _signs(gang: Gang) -> Iterator[float]:
    """Yield times at which the scheduler is known to have looked at the gang."""
    condition = condition_of(gang)
    if condition is not None and condition.since is not None:
        yield condition.since
    for pod in gang.pending:
        scheduled = pod.condition("PodScheduled")
        if scheduled is not None and scheduled.since is not None and scheduled.reason != "SchedulingGated":
            yield scheduled.since
        request = gang.bind_request(pod)
        if request is not None and request.meta.created is not None:
            yield request.meta.created
    for event in gang.context.events("PodGroup", gang.meta.namespace, gang.meta.name):
        if event.first is not None and event.reason in {"Unschedulable", "Pipelined", "NotReady"}:
            yield event.first


def is_silent(gang: Gang) -> bool:
    """Whether the scheduler, whose events and objects were read, has left no sign on any gang that waits."""
    context = gang.context
    if not (context.snapshot.was_read("Event") and context.snapshot.was_read("Deployment")):
        return False
    since = placeable_since(gang)
    groups = [group for group in context.snapshot.podgroups if _is_ours(gang, group.meta)]
    if any((c.since or 0.0) > since for group in groups for c in group.scheduling_conditions):
        return False
    members = {pod.key for group in groups for pod in context.members(group)}
    if any(
        (request.meta.created or 0.0) > since and f"{request.meta.namespace}/{request.pod_name}" in members
        for request in context.snapshot.bind_requests
    ):
        return False
    named_ = members | {group.key for group in groups}
    return not any(
        event.source in _SCHEDULERS and last_seen(event) > since and f"{event.namespace}/{event.name}" in named_
        for event in context.snapshot.events
    )
