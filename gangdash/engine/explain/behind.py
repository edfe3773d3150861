"""Another gang goes first: who, why, and whether it is given the room in vain each time."""

from __future__ import annotations

from gangdash.engine.explain.binding import bind_trouble
from gangdash.engine.explain.blocked import Blocked
from gangdash.engine.explain.build import first, named, spoken
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.lifts import Rule
from gangdash.engine.explain.room import NOTHING, Room
from gangdash.engine.explain.trial import Trials
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.cycle import GangOutcome, GangResult
from gangdash.engine.verdict import Amount, FactValue, Finding, Holder, ReasonCode, Waiting


def queued(case: Blocked) -> Finding:
    """Return that the gang would start alone and others take the room."""
    gang, room = case.gang, case.room
    ahead = _ahead(gang, case.trials)
    names = tuple(spoken(other.name) for other in ahead)
    keys = [f"{other.namespace}/{other.name}" for other in ahead]
    need = case.need
    refused = _bind_refused(gang, ahead)
    form = "bind_refused" if refused else _why_first(gang, ahead)
    facts: dict[str, FactValue] = {
        "need": need,
        "ahead": names,
        "count": len(ahead),
        "first": names[0] if names else "another gang",
        "free": _free(room),
        "queue": gang.podgroup.queue,
        "priority": gang.priority,
    }
    return Finding(
        ReasonCode.QUEUED_BEHIND,
        form=form,
        facts=facts,
        binding=(
            named(
                ConstraintId.QUEUE_ORDER,
                gang.podgroup.queue,
                "goes first",
                f"behind {', '.join(keys[:3]) or 'other gangs'}",
                "order of queues and gangs in this cycle",
            ),
        ),
        holders=tuple(
            Holder(key, _gpus_given(gang, other), "no: placed in this cycle")
            for key, other in zip(keys, ahead, strict=True)
        ),
        waiting=Waiting(helps="unknown", on=first(f"PodGroup/{key}" for key in keys)),
    )


def _ahead(gang: Gang, trials: Trials) -> list[GangResult]:
    """Return the gangs that take nodes in this cycle which the gang would take if it were alone."""
    wanted = trials.result({Rule.ORDER}).nodes
    placed = [
        other
        for other in gang.context.results.values()
        if other.outcome in {GangOutcome.BOUND, GangOutcome.PIPELINED}
        and (other.namespace, other.name) != (gang.meta.namespace, gang.meta.name)
    ]
    near = [other for other in placed if any(pod.node in wanted and pod.action for pod in other.pods)]
    return sorted(near or placed, key=lambda other: (other.namespace, other.name))


def _gpus_given(gang: Gang, other: GangResult) -> float:
    given = [gang.context.pods.get((pod.namespace or other.namespace, pod.name)) for pod in other.pods if pod.action]
    return sum(gang.gpus(pod) for pod in given if pod is not None)


def _free(room: Room) -> Amount:
    return Amount(sum(max(room.supply(node, NOTHING)[2], 0) for node in room.nodes), Unit.GPU)


def _bind_refused(gang: Gang, ahead: list[GangResult]) -> bool:
    """Whether the first gang ahead is given the room again and again and never bound."""
    for other in ahead[:1]:
        podgroup = gang.context.podgroups.get((other.namespace, other.name))
        if podgroup is not None and next(bind_trouble(Gang(gang.context, podgroup)), None) is not None:
            return True
    return False


def _why_first(gang: Gang, ahead: list[GangResult]) -> str:
    """Return why the first gang ahead comes before this one: its queue, its priority or its age."""
    podgroup = gang.context.podgroups.get((ahead[0].namespace, ahead[0].name)) if ahead else None
    if podgroup is None:
        return ""
    other = Gang(gang.context, podgroup)
    if other.podgroup.queue != gang.podgroup.queue:
        return "queue"
    if other.priority != gang.priority:
        return "priority"
    return "older"
