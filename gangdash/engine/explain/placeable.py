"""The replay places the gang: has the live system had time to, and if it had, which component has not acted?

One snapshot rarely shows when a gang became placeable. Known history comes first, then the latest change that the
objects show; without a sign that the scheduler had time since then, the gang simply will start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gangdash.engine.explain import components
from gangdash.engine.explain.binding import bind_trouble
from gangdash.engine.explain.build import action_noun, first, named, spoken
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.overdue import had_time, is_silent, placeable_since
from gangdash.engine.explain.queues import RESOURCES, chain, used_by
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.cycle import GangOutcome, GangResult, PodOutcome
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.resources import GPU_NAMES
from gangdash.engine.verdict import (
    Amount,
    Certainty,
    Constraint,
    FactValue,
    Finding,
    Fix,
    FixKind,
    Holder,
    ReasonCode,
    Waiting,
    Who,
)


def placed_by_replay(gang: Gang) -> bool:
    """Whether this cycle gives the gang's waiting pods nodes, now or once releases are through."""
    result = gang.result
    if result is None:
        return False
    # A gang that is placed and moved on within the cycle is placed all the same.
    return result.outcome in {GangOutcome.BOUND, GangOutcome.PIPELINED} or bool(_moved_on(gang, result))


def _moved_on(gang: Gang, result: GangResult) -> list[tuple[str, str]]:
    """Return the pods that waited, were given a node and moved to another in one cycle, with the node they end on."""
    waited = {(pod.meta.namespace, pod.meta.name) for pod in gang.pending}
    return [
        (pod.name, pod.node)
        for pod in result.pods
        if pod.outcome is PodOutcome.MOVED and pod.node and (pod.namespace or result.namespace, pod.name) in waited
    ]


def placeable(gang: Gang) -> Iterator[Finding]:
    """Yield that the gang starts, or which component keeps it from starting."""
    result = gang.result
    if result is None or not placed_by_replay(gang):
        return
    will_start = _will_start(gang, result)
    trouble = next(bind_trouble(gang), None)
    if trouble is not None:
        yield replace(trouble, certainty=Certainty.PROVED)
        return
    if will_start.code is ReasonCode.WAITS_FOR_RELEASE or not had_time(gang):
        yield will_start
        return
    yield _stuck(gang, result, will_start)


def under_way(gang: Gang) -> Finding:
    """Return that the scheduler has assigned every waiting pod and the binder is at work."""
    nodes = {request.node for pod in gang.binding if (request := gang.bind_request(pod)) is not None}
    return Finding(
        ReasonCode.FITS_NOW,
        form="binding",
        facts={"pods": len(gang.binding), "where": tuple(sorted(nodes))},
        waiting=Waiting(helps="yes", on=first(f"BindRequest/{pod.key}" for pod in gang.binding)),
        fixes=(Fix(FixKind.WAIT_FOR, {"object": "binder"}, {"what": "the binder to bind its pods"}, who=Who.WAIT),),
    )


# It will start


def _will_start(gang: Gang, result: GangResult) -> Finding:
    if result.outcome in {GangOutcome.BOUND, GangOutcome.MOVED}:
        return _fits_now(gang, result)
    if result.action == "allocate":
        release = _release(gang, result)
        if release is not None:
            return release
    return _by_eviction(gang, result)


def _given(gang: Gang, result: GangResult) -> list[tuple[str, str]]:
    """Return the waiting pods that get a node, with the node."""
    given = [
        (pod.name, pod.node or "")
        for pod in result.pods
        if pod.outcome in {PodOutcome.BOUND, PodOutcome.PIPELINED} and pod.node
    ]
    return given + _moved_on(gang, result)


def _fits_now(gang: Gang, result: GangResult) -> Finding:
    given = _given(gang, result)
    facts: dict[str, FactValue] = {"pods": len(given), "each": _each(gang), "where": _where(gang, given)}
    differs = _status_differs(gang)
    return Finding(
        ReasonCode.FITS_NOW,
        form="status_differs" if differs else "",
        facts=facts | differs,
        slack=_limit_slack(gang),
        waiting=Waiting(helps="yes", on=("next scheduling cycle",)),
        fixes=(Fix(FixKind.WAIT_FOR, {"object": "scheduler"}, {"what": "the next scheduling cycle"}, who=Who.WAIT),),
        certainty=Certainty.PROVED,
    )


def _each(gang: Gang) -> Amount:
    """Return what one waiting pod asks, the largest if they differ."""
    gpus = max((gang.gpus(pod) for pod in gang.pending), default=0.0)
    job = gang.job
    tasks = [task for task in job.tasks.values() if task.pod in gang.pending] if job is not None else []
    cpu = max((task.request_amounts[0] for task in tasks), default=0.0)
    return Amount(gpus, Unit.GPU) if gpus else Amount(cpu, Unit.MILLICORES)


def _where(gang: Gang, given: list[tuple[str, str]]) -> tuple[str, ...]:
    """Return the domain that the promised nodes share where the gang asks for one, else the nodes."""
    nodes = sorted({node for _, node in given})
    constraint = gang.root.constraint
    if constraint is not None and constraint.required_level:
        values = {gang.context.nodes[node].meta.labels.get(constraint.required_level, "") for node in nodes}
        if len(values) == 1 and len(nodes) > 1:
            return tuple(values)
    return tuple(nodes)


def need_of(gang: Gang) -> Amount:
    """Return what the waiting pods ask, in GPUs, or in CPU for a gang without GPUs."""
    gpus = sum(gang.gpus(pod) for pod in gang.pending)
    if gpus:
        return Amount(gpus, Unit.GPU)
    job = gang.job
    tasks = [task for task in job.tasks.values() if task.pod in gang.pending] if job is not None else []
    return Amount(sum(task.request_amounts[0] for task in tasks), Unit.MILLICORES)


def _limit_slack(gang: Gang) -> tuple[Constraint, ...]:
    """Return the limits of the gang's queues that were checked and are kept."""
    need = need_of(gang)
    found = []
    for queue in chain(gang):
        for resource in RESOURCES:
            limit = queue.limit[resource.index]
            if resource.unit is need.unit and limit >= 0:
                total = used_by(queue, resource) + need.value
                found.append(Constraint(resource.limit_id, queue.name, total, limit, need.unit, f"Queue/{queue.name}"))
    return tuple(found)


def _status_differs(gang: Gang) -> dict[str, FactValue]:
    """Return the numbers of a queue whose status counts more GPUs than its bound pods hold, where that would matter."""
    need = need_of(gang)
    if need.unit is not Unit.GPU:
        return {}
    for queue in chain(gang):
        status = queue.queue.reported or {}
        reported = sum(status.get(name, 0) for name in GPU_NAMES)
        limit, used = queue.limit[2], used_by(queue, RESOURCES[2])
        if limit >= 0 and reported > used and reported + need.value > limit:
            return {
                "queue": queue.name,
                "used": Amount(used, Unit.GPU),
                "need": need,
                "allowed": Amount(limit, Unit.GPU),
                "reported": Amount(reported, Unit.GPU),
            }
    return {}


def _release(gang: Gang, result: GangResult) -> Finding | None:
    nodes = {node for _, node in _given(gang, result)}
    leaving = [
        pod for node in sorted(nodes) for pod in gang.context.pods_on.get(node, ()) if pod.meta.deleted is not None
    ]
    if not leaving:
        return None
    holders = _holders_of(gang, leaving)
    facts: dict[str, FactValue] = {
        "terminating": len(leaving),
        "holders": tuple(spoken(holder.gang.rsplit("/", 1)[-1]) for holder in holders),
        "nodes": tuple(sorted({pod.node_name for pod in leaving})),
        "held": Amount(sum(holder.gpus for holder in holders), Unit.GPU),
    }
    return Finding(
        ReasonCode.WAITS_FOR_RELEASE,
        facts=facts,
        holders=holders,
        waiting=Waiting(helps="yes", on=first(f"Pod/{pod.key}" for pod in leaving)),
        fixes=(
            Fix(
                FixKind.WAIT_FOR,
                {"object": f"Pod/{leaving[0].key}"},
                {"what": "the terminating pods to end"},
                who=Who.WAIT,
            ),
        ),
        certainty=Certainty.PROVED,
    )


def _holders_of(gang: Gang, pods: Iterable[Pod]) -> tuple[Holder, ...]:
    """Return the gangs of terminating pods with the GPUs that these pods still hold."""
    held: dict[str, float] = {}
    for pod in pods:
        group = pod.meta.annotations.get("pod-group-name", pod.meta.name)
        key = f"{pod.meta.namespace}/{group}"
        held[key] = held.get(key, 0.0) + gang.gpus(pod)
    return tuple(Holder(key, gpus, "yes: already terminating") for key, gpus in sorted(held.items()))


def _by_eviction(gang: Gang, result: GangResult) -> Finding:
    victims = _victims(gang, result)
    moved = sum(count for _, outcome, count in victims if outcome is PodOutcome.MOVED)
    evicted = sum(count for _, outcome, count in victims if outcome is PodOutcome.EVICTED)
    keys = sorted({key for key, _, _ in victims})
    facts: dict[str, FactValue] = {
        "action": action_noun(result.action),
        "evicted": evicted,
        "moved": moved,
        "victims": tuple(spoken(key.rsplit("/", 1)[-1]) for key in keys),
        "need": need_of(gang),
        "queue": gang.podgroup.queue,
    }
    return Finding(
        ReasonCode.WAITS_FOR_EVICTION,
        form="both" if evicted and moved else "" if evicted else "moves",
        facts=facts,
        holders=tuple(Holder(key, _gpus_lost(gang, key), f"yes: by {action_noun(result.action)}") for key in keys),
        waiting=Waiting(helps="yes", on=first(f"PodGroup/{key}" for key in keys)),
        fixes=(
            Fix(
                FixKind.WAIT_FOR,
                {"object": f"PodGroup/{keys[0]}" if keys else "scheduler"},
                {"what": f"{action_noun(result.action)} to make room"},
                who=Who.WAIT,
            ),
        ),
        certainty=Certainty.PROVED,
    )


def _victims(gang: Gang, result: GangResult) -> list[tuple[str, PodOutcome, int]]:
    """Return the gangs that this action evicts or moves, those on the promised nodes if there are any."""
    nodes = {node for _, node in _given(gang, result)}
    near: list[tuple[str, PodOutcome, int]] = []
    far: list[tuple[str, PodOutcome, int]] = []
    for other in gang.context.results.values():
        for outcome in (PodOutcome.EVICTED, PodOutcome.MOVED):
            pods = [pod for pod in other.pods if pod.outcome is outcome and pod.action == result.action]
            if not pods:
                continue
            here = [pod for pod in pods if gang.context.node_of.get(f"{pod.namespace}/{pod.name}") in nodes]
            far.append((f"{other.namespace}/{other.name}", outcome, len(pods)))
            if here:
                near.append((f"{other.namespace}/{other.name}", outcome, len(here)))
    return near or far


def _gpus_lost(gang: Gang, key: str) -> float:
    namespace, _, name = key.partition("/")
    other = gang.context.results[(namespace, name)]
    lost = (pod for pod in other.pods if pod.outcome in {PodOutcome.EVICTED, PodOutcome.MOVED})
    pods = (gang.context.pods.get((pod.namespace or namespace, pod.name)) for pod in lost)
    return sum(gang.gpus(pod) for pod in pods if pod is not None)


# It should have started


def _stuck(gang: Gang, result: GangResult, will_start: Finding) -> Finding:
    part = _scheduler(gang)
    if part is not None and not part.is_ready:
        return _scheduler_down(part)
    since = gang.as_of - placeable_since(gang)
    facts: dict[str, FactValue] = {
        **will_start.facts,
        "pods": len(_given(gang, result)),
        "each": _each(gang),
        "where": _where(gang, _given(gang, result)),
        "scheduler": gang.params.scheduler_name,
        "since": since,
        "gangs": _waiting_gangs(gang),
    }
    silent = is_silent(gang)
    code = ReasonCode.SCHEDULER_SILENT if silent else ReasonCode.PLACEABLE_NOT_PLACED
    form = ""
    if not silent and will_start.code is ReasonCode.WAITS_FOR_EVICTION:
        form = "by_eviction" if will_start.facts.get("evicted") else "by_move"
    return Finding(
        code,
        form=form,
        facts=facts,
        binding=(
            named(
                ConstraintId.SCHEDULER_ACTS,
                gang.params.scheduler_name,
                "places the gang",
                "has not acted",
                f"replay by {action_noun(result.action)}",
            ),
        ),
        slack=_limit_slack(gang),
        holders=will_start.holders,
        waiting=Waiting(helps="unknown", on=(gang.params.scheduler_name,)),
        fixes=_stuck_fixes(gang),
        certainty=Certainty.PROVED,
    )


def _waiting_gangs(gang: Gang) -> int:
    return sum(
        1 for result in gang.context.results.values() if any(pod.outcome is not PodOutcome.KEPT for pod in result.pods)
    )


def _scheduler(gang: Gang) -> components.Component | None:
    return components.scheduler_of(gang.context, gang.shard) if gang.shard is not None else None


def _stuck_fixes(gang: Gang) -> tuple[Fix, ...]:
    part = _scheduler(gang)
    fixes = [components.restart(part, gang.params.scheduler_name)]
    if part is not None and part.version:
        upgrade = {"component": f"Deployment {part.name}", "version": part.version}
        fixes.append(Fix(FixKind.UPGRADE, {"object": part.ref}, upgrade, who=Who.PLATFORM, cost=2))
    return tuple(fixes)


def _scheduler_down(part: components.Component) -> Finding:
    return Finding(
        ReasonCode.SCHEDULER_DOWN,
        facts={"deployment": part.name, "ready": part.ready, "wanted": part.wanted, "state": part.state},
        binding=(Constraint(ConstraintId.SCHEDULER_ACTS, part.name, part.wanted, part.ready, Unit.PODS, part.ref),),
        waiting=Waiting(helps="no"),
        fixes=(components.restart(part, part.name),),
        certainty=Certainty.PROVED,
    )
