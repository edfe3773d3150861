"""Was the gang placed and removed, by whom, and has it not run since?

Evidence, strongest first: Evict events of the PodGroup (with KAI's annotations on who evicted), StaleJob events, the
annotation with the time of the last eviction, pods that a node removed. Events run out after 25 in all, so a missing
event proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gangdash.engine.chain.index import last_seen
from gangdash.engine.explain.build import action_noun, named, names, spoken
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.times import annotation_time
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.observed import Event
from gangdash.engine.session.build import EVICTION_ANNOTATION, START_ANNOTATION
from gangdash.engine.verdict import Constraint, FactValue, Finding, ReasonCode, Waiting

SAME_EVICTION = 30.0
"""Seconds: events of one eviction come pod by pod, a new decision comes a cycle later and frees other pods."""
LOOP_TIMES = 3
_BY_TEXT = (
    (re.compile(r"was preempted by higher priority workload (\S+)"), "preempt"),
    (re.compile(r"was preempted by workload ([^\s]+?)\.?(?:\s|$)"), "reclaim"),
    (re.compile(r"bin packing \(resource consolidation\)()"), "consolidation"),
    (re.compile(r"doesn't meet the minimum required number of pods()"), "stalegangeviction"),
)
_POD = re.compile(r"(?:^Pod |evicting remaining pod: )[^/\s]*/(\S+)")
_NODE_REASONS = frozenset({"Evicted", "TaintManagerEviction", "NodeLost", "NodeShutdown", "Terminated"})


@dataclass(frozen=True, slots=True)
class Eviction:
    """The last time pods of a gang were removed. ``action`` is empty where only the time is known."""

    at: float
    action: str
    by: str
    pods: int
    times: int
    first: float
    examples: tuple[str, ...] = ()


def evicted(gang: Gang) -> Iterator[Finding]:
    """Yield the eviction that the gang has not recovered from; nothing when it ran again."""
    eviction = last_eviction(gang)
    if eviction is not None and not _ran_since(gang, eviction.at):
        yield _finding(gang, eviction)
        return
    node = _removed_by_node(gang)
    if node is not None:
        yield node


def last_eviction(gang: Gang) -> Eviction | None:
    """Return the latest eviction by the scheduler that any evidence tells of."""
    events = gang.context.events("PodGroup", gang.meta.namespace, gang.meta.name)
    evictions = [event for event in events if event.reason == "Evict"]
    told, known = _from_events(evictions), _known_before(gang)
    stamped = annotation_time(gang.meta, EVICTION_ANNOTATION)
    if told is not None and (stamped is None or told.at >= stamped - SAME_EVICTION):
        return _with_history(told, known)
    if stamped is not None:
        return _with_history(Eviction(stamped, "", "", 0, 1, stamped), known)
    stale = [event for event in events if event.reason == "StaleJob"]
    if stale and not gang.placed:
        return Eviction(last_seen(stale[-1]), "stalegangeviction", "", 0, 1, last_seen(stale[-1]))
    return _of_earlier_attempts(gang, known)


def _known_before(gang: Gang) -> tuple[float, ...]:
    history = gang.context.snapshot.history.get(gang.meta.uid)
    return history.evictions if history is not None else ()


def _with_history(eviction: Eviction, known: Sequence[float]) -> Eviction:
    """Count what earlier readings saw too: events run out, and a gang made anew has none of those before it."""
    if len(known) <= eviction.times:
        return eviction
    return replace(eviction, times=len(known), first=min(known[0], eviction.first))


def _of_earlier_attempts(gang: Gang, known: Sequence[float]) -> Eviction | None:
    """Return the loop of a gang that is made anew, with another uid or name, each time it has lost its nodes."""
    made = gang.meta.created
    if len(known) < LOOP_TIMES or gang.placed or made is None or known[-1] >= made:
        return None
    return Eviction(known[-1], "", "", 0, len(known), known[0])


def _from_events(evictions: Sequence[Event]) -> Eviction | None:
    if not evictions:
        return None
    latest = evictions[-1]
    batch = [event for event in evictions if last_seen(event) >= last_seen(latest) - SAME_EVICTION]
    action, by = _who(latest)
    return Eviction(
        at=last_seen(latest),
        action=action,
        by=by,
        pods=len({event.message for event in batch}),
        times=max(_distinct_times(evictions), *(event.count for event in batch)),
        first=min(event.first or last_seen(event) for event in evictions),
        examples=tuple(sorted({name for event in batch if (name := _pod_in(event.message))})),
    )


def _pod_in(text: str) -> str:
    """Return the pod that an Evict event names, without its namespace."""
    found = _POD.search(text)
    return found[1] if found else ""


def _distinct_times(evictions: Sequence[Event]) -> int:
    """Count evictions that are further apart than the events of one."""
    count, before = 0, float("-inf")
    for event in evictions:
        if last_seen(event) > before + SAME_EVICTION:
            count += 1
        before = last_seen(event)
    return count


def _who(event: Event) -> tuple[str, str]:
    """Return the action and the evicting gang's name; the text says it where the annotations do not."""
    notes = event.meta.annotations
    action, by = notes.get("evictor-action-type", ""), notes.get("evictor-pod-group-name", "")
    for pattern, known in _BY_TEXT:
        found = pattern.search(event.message)
        if found:
            return action or known, by or found[1].rsplit("/", 1)[-1]
    return action, by


def _ran_since(gang: Gang, moment: float) -> bool:
    """Whether the gang, or every part of it that waits now, was started again after an eviction."""
    started = annotation_time(gang.meta, START_ANNOTATION)
    if started is not None and started > moment:
        return True
    history = gang.context.snapshot.history.get(gang.meta.uid)
    return bool(history and history.last_ran and history.last_ran > moment)


def _finding(gang: Gang, eviction: Eviction) -> Finding:
    code = _code(eviction)
    facts: dict[str, FactValue] = {
        "evicted": eviction.pods,
        "by": spoken(eviction.by),
        "examples": eviction.examples,
        "ago": max(gang.as_of - eviction.at, 0.0),
        "needed": gang.needed,
        "times": eviction.times,
        "window": max(eviction.at - eviction.first, 0.0),
        "version": gang.shard.version if gang.shard is not None else "",
        "owner": f"{gang.owners[-1].kind} {gang.owners[-1].meta.name}" if gang.owners else "its owner",
    }
    return Finding(
        code,
        form=_form(gang, code, eviction),
        facts=facts,
        binding=(
            named(
                ConstraintId.POD_EVICTED,
                gang.meta.name,
                "keeps its nodes",
                f"evicted by {action_noun(eviction.action or 'the scheduler')}"
                + (f" for {eviction.by}" if eviction.by else ""),
                f"Event Evict of PodGroup/{gang.podgroup.key}"
                if eviction.action
                else f"annotation {EVICTION_ANNOTATION}",
            ),
        ),
        waiting=Waiting(helps="unknown"),
    )


def _code(eviction: Eviction) -> ReasonCode:
    if eviction.times >= LOOP_TIMES and eviction.action != "stalegangeviction":
        return ReasonCode.EVICTION_LOOP
    return {
        "preempt": ReasonCode.PREEMPTED,
        "consolidation": ReasonCode.CONSOLIDATED,
        "stalegangeviction": ReasonCode.STALE_GANG,
    }.get(eviction.action, ReasonCode.RECLAIMED)


def _form(gang: Gang, code: ReasonCode, eviction: Eviction) -> str:
    if code is ReasonCode.STALE_GANG:
        return "finished" if gang.finished and eviction.pods else "" if eviction.pods else "unknown"
    if code is ReasonCode.RECLAIMED and not eviction.action:
        return "unknown" if gang.context.snapshot.was_read("Event") else "unread"
    if code is ReasonCode.EVICTION_LOOP and not eviction.by:
        return "unknown"
    if code is ReasonCode.PREEMPTED and not gang.alive:
        return "gone"
    return ""


# Nodes


def _removed_by_node(gang: Gang) -> Finding | None:
    """Return a finding when a node removed pods whose replacements wait now."""
    lost = [pod for pod in gang.failed if pod.reason in _NODE_REASONS]
    if not lost or not (gang.pending or gang.gated or not gang.is_ready):
        return None
    latest = lost[-1]
    return Finding(
        ReasonCode.EVICTED_BY_NODE,
        facts={"evicted": len(lost), "node": latest.node_name, "reason": latest.reason, "examples": names(lost)},
        binding=(
            Constraint(
                ConstraintId.POD_EVICTED, latest.node_name, 0, len(lost), Unit.PODS, f"Pod/{latest.key} status.reason"
            ),
        ),
        waiting=Waiting(helps="unknown"),
    )
