"""What the cluster itself says about a gang: the scheduler's conditions first, then its events.

Keeps the traps in mind: conditions outlive their cause and the scheduler, their time moves with the text, events end
at 25, and a gang with any placed pod gets no condition at all.
"""

from __future__ import annotations

from gangdash.engine.chain.index import last_seen
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.times import annotation_time
from gangdash.engine.model.observed import Event
from gangdash.engine.model.podgroup import SchedulingCondition
from gangdash.engine.session.build import START_ANNOTATION
from gangdash.engine.verdict import SchedulerWords

_SAYS_WHY = frozenset(
    {"Unschedulable", "NotReady", "FailedScheduling", "Pipelined", "StaleJob", "Evict", "BindingError"}
)


def condition_of(gang: Gang) -> SchedulingCondition | None:
    """Return the latest scheduling condition of the gang for its own node pool."""
    pool = gang.meta.labels.get(gang.params.node_pool_label_key, "default")
    own = [condition for condition in gang.podgroup.scheduling_conditions if condition.node_pool in {pool, ""}]
    return own[-1] if own else None


def scheduler_words(gang: Gang) -> SchedulerWords | None:
    """Return the cluster's own words on the gang; None when it has said nothing."""
    condition = condition_of(gang)
    event = _latest_event(gang)
    if condition is not None and not (event is not None and _contradicts(condition, event)):
        return SchedulerWords(
            text=condition.message or condition.reason,
            source=f"PodGroup/{gang.podgroup.key} schedulingConditions",
            at=condition.since,
            reasons=tuple(f"{reason.reason}: {reason.message}" for reason in condition.reasons),
            outdated_by=_outdated_by(gang, condition.since),
        )
    told = _pod_words(gang)
    if told is not None and event is None:
        return told
    if event is None:
        return None
    return SchedulerWords(
        text=event.message or event.reason,
        source=f"Event {event.reason} of {event.kind}/{event.namespace}/{event.name}",
        at=last_seen(event),
        reasons=(told.text,) if told is not None else (),
        outdated_by=_outdated_by(gang, last_seen(event)),
    )


def _contradicts(condition: SchedulingCondition, event: Event) -> bool:
    """Whether an event of another kind came after the condition was written."""
    return event.reason not in {"Unschedulable", "FailedScheduling"} and last_seen(event) > (condition.since or 0.0)


def _latest_event(gang: Gang) -> Event | None:
    events = [e for e in gang.context.events("PodGroup", gang.meta.namespace, gang.meta.name) if e.reason in _SAYS_WHY]
    for pod in gang.pods:
        if not pod.node_name:
            own = gang.context.events("Pod", pod.meta.namespace, pod.meta.name)
            events.extend(event for event in own if event.reason in _SAYS_WHY)
    return max(events, key=lambda event: (last_seen(event), event.meta.name), default=None)


def _pod_words(gang: Gang) -> SchedulerWords | None:
    """Return the most specific text among the waiting pods' own conditions."""
    found = []
    for pod in gang.pods:
        for type_ in ("PodBound", "PodScheduled"):
            condition = pod.condition(type_)
            if not pod.node_name and condition is not None and condition.status == "False" and condition.message:
                found.append((len(condition.message), pod, condition))
    if not found:
        return None
    _, pod, condition = max(found, key=lambda item: (item[0], item[1].key))
    return SchedulerWords(
        text=condition.message,
        source=f"Pod/{pod.key} condition {condition.type}",
        at=condition.since,
        outdated_by=_outdated_by(gang, condition.since),
    )


def _outdated_by(gang: Gang, at: float | None) -> float | None:
    """Return the time of a change that made words of that time untrue: the gang was started after them."""
    started = annotation_time(gang.meta, START_ANNOTATION)
    if at is not None and started is not None and started > at and not gang.pending:
        return started
    return None
