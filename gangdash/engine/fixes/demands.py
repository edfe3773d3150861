"""What the gang itself could ask less of: a wider domain, fewer or smaller pods, other nodes; or a higher rank."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping

from gangdash.engine.changes import Change
from gangdash.engine.explain.nofit.case import amount as told_amount
from gangdash.engine.explain.nofit.checks import selector_text
from gangdash.engine.explain.room import DOMAIN, Lift, reason_lift
from gangdash.engine.fixes.candidate import Candidate, Case
from gangdash.engine.fixes.spare import SpareRoom
from gangdash.engine.identifiers import ConstraintId, NodeReason
from gangdash.engine.model.podgroup import TopologyConstraint
from gangdash.engine.model.resources import is_counted_whole
from gangdash.engine.session import GPU, PODS, PodSet, SubGroupSet, TaskState
from gangdash.engine.statement import DEFAULT_POD_SET
from gangdash.engine.verdict import Amount, FactValue, FixKind

_ROOT = ""
_NO_DOMAIN = frozenset({DOMAIN})
_GIB = 1024**3
_FEW = 32
"""Up to here whole devices are tried one by one."""
_USUAL = frozenset({1, 2, 4})
"""GPUs of a pod that people ask for, when it may not be more than half of what it asks now."""


# Topology


def relaxed(case: Case) -> Iterator[Candidate]:
    """Yield the next wider levels for each constraint, nearest first, then the constraint as a mere preference."""
    for name, constraint in _constraints(case.job.root):
        yield from _relaxed(case, name, constraint)


def _constraints(root: SubGroupSet) -> Iterator[tuple[str, TopologyConstraint]]:
    """Yield groups of the tree that have a required level, the root first."""
    pending: list[SubGroupSet | PodSet] = [root]
    while pending:
        group = pending.pop(0)
        if group.constraint is not None and group.constraint.required_level:
            yield group.name, group.constraint
        if isinstance(group, SubGroupSet):
            pending.extend(group.members)


def _relaxed(case: Case, name: str, constraint: TopologyConstraint) -> Iterator[Candidate]:
    topology = case.gang.context.topologies.get(constraint.topology)
    labels = [level.node_label for level in topology.levels] if topology is not None else []
    required = constraint.required_level
    for level in reversed(labels[: labels.index(required)] if required in labels else []):
        yield _constrained(case, name, {"required": level}, {"level": _spoken(level), "required": _spoken(required)})
    if required in labels:
        yield _constrained(case, name, {"required": "none", "preferred": required}, {"level": _spoken(required)})
    else:
        values = {"topology": "none", "required": "none", "preferred": "none"}
        change = Change(FixKind.RELAX_TOPOLOGY, case.key, {**values, **_where(name)})
        yield Candidate(FixKind.RELAX_TOPOLOGY, (change,), form="none", lifts=_NO_DOMAIN)


def _constrained(case: Case, name: str, values: Mapping[str, str], facts: Mapping[str, FactValue]) -> Candidate:
    form = "" if values["required"] != "none" else "preferred"
    where = _where(name)
    if where:
        form = f"subgroup_{form}" if form else "subgroup"
    change = Change(FixKind.RELAX_TOPOLOGY, case.key, {**values, **where})
    return Candidate(FixKind.RELAX_TOPOLOGY, (change,), {**facts, **where}, form=form, lifts=_NO_DOMAIN)


def _where(name: str) -> dict[str, str]:
    """Return the key that names a subgroup; none for the gang as a whole."""
    return {"subgroup": name} if name not in {_ROOT, DEFAULT_POD_SET} else {}


def _spoken(level: str) -> str:
    return level.rsplit("/", 1)[-1] or level


def preferred(case: Case) -> Iterator[Candidate]:
    """Yield the required level as preferred too: the scheduler then starts its walk at that level, not below."""
    for name, constraint in _constraints(case.job.root):
        if not constraint.preferred_level:
            values = {"preferred": constraint.required_level, **_where(name)}
            change = Change(FixKind.RELAX_TOPOLOGY, case.key, values)
            facts: dict[str, FactValue] = {"level": _spoken(constraint.required_level)}
            yield Candidate(FixKind.RELAX_TOPOLOGY, (change,), facts, form="start")


# Size


def shrunk_gang(case: Case, room: SpareRoom | None) -> Iterator[Candidate]:
    """Yield a lower minimum: as many pods as fit, or as the caps leave room for; then half as many."""
    leaves = [leaf for leaf in case.job.pod_sets.values() if leaf.min_available > 1]
    if not leaves:
        return
    leaf = max(leaves, key=lambda leaf: (leaf.min_available, leaf.name))
    fit = leaf.min_available
    if room is not None:
        others = sum(task.sub_group != leaf.name for task in room.tasks)
        fit = max((room.fit_count(nodes) for nodes in room.node_sets()), default=0) - others
    most = min(leaf.min_available - 1, leaf.active_allocated + min(fit, _within_caps(case, leaf)))
    for to in dict.fromkeys((most, most // 2)):
        if to > leaf.active_allocated:
            yield _smaller(case, leaf, to)


def _smaller(case: Case, leaf: PodSet, to: int) -> Candidate:
    where = _where(leaf.name)
    facts: dict[str, FactValue] = {"now": leaf.min_available, "to": to, **where}
    change = Change(FixKind.SHRINK_GANG, case.key, {"pods": str(to), **where})
    own = [task for task in case.step if task.sub_group == leaf.name][: to - leaf.active_allocated]
    tasks = tuple(task for task in case.step if task.sub_group != leaf.name or task in own)
    return Candidate(FixKind.SHRINK_GANG, (change,), facts, form="subgroup" if where else "", tasks=tasks)


def _within_caps(case: Case, leaf: PodSet) -> int:
    """Return how many further pods of the subgroup the limits and quotas in the way leave room for."""
    asking = [task for task in case.step if task.sub_group == leaf.name]
    if not asking:
        return leaf.min_available
    each = asking[0].request_amounts
    rest = [total - len(asking) * amount for total, amount in zip(case.asked, each, strict=True)]
    most = leaf.min_available
    for item in case.broken:
        slot = item.resource.index
        if each[slot]:
            most = min(most, int((item.cap - item.used - rest[slot]) / each[slot] + 1e-9))
    return max(most, 0)


def shrunk_pods(case: Case, room: SpareRoom) -> Iterator[Candidate]:
    """Yield smaller requests: one resource down to what fits; to what a node has; every resource by the same part."""
    for slot in _by_importance(room):
        if room.fits(frozenset({Lift("size", room.slot_name(slot))})) is False:
            continue
        now = max(task.request[slot] for task in room.tasks)
        fitting = (to for to in _smaller_amounts(room, slot, now) if _with_at_most(room, slot, to).fits())
        to = next(fitting, None)
        if to is not None:
            yield _smaller_pods(case, room, slot, (now, to))
            return
    for slot in _by_importance(room):
        now = max(task.request[slot] for task in room.tasks)
        largest = max((node.allocatable[slot] for node in room.nodes), default=0)
        if 0 < largest < now:
            yield _smaller_pods(case, room, slot, (now, largest))
    yield from _scaled(case, room)


def _by_importance(room: SpareRoom) -> list[int]:
    """Return the resources that can be asked for in smaller amounts, GPUs first; pod slots cannot."""
    return sorted((slot for slot in room.slots if slot != PODS), key=lambda slot: (slot != GPU, slot))


def _smaller_amounts(room: SpareRoom, slot: int, now: float) -> Iterator[float]:
    name = room.slot_name(slot)
    if (slot == GPU or is_counted_whole(name)) and now <= _FEW:
        yield from (float(n) for n in range(math.ceil(now) - 1, 0, -1) if n in _USUAL or n > now / 2)
        return
    grain = _GIB if name == "memory" else 1 if is_counted_whole(name) else 1000
    for part in (0.75, 0.5, 0.25):
        amount = now * part // grain * grain
        if amount > 0:
            yield amount


def _with_at_most(room: SpareRoom, slot: int, amount: float) -> SpareRoom:
    tasks = [_asking(task, {slot: min(task.request[slot], amount)}) for task in room.tasks]
    return SpareRoom.of(room, tasks, room.assumed)


def _asking(task: TaskState, amounts: Mapping[int, float]) -> TaskState:
    """Return a pod like this one with other requests; the session does not know it."""
    other = copy.copy(task)
    other.request = [amounts.get(slot, amount) for slot, amount in enumerate(task.request)]
    return other


def _smaller_pods(case: Case, room: SpareRoom, slot: int, amounts: tuple[float, float]) -> Candidate:
    now, to = amounts
    name = room.slot_name(slot)
    facts: dict[str, FactValue] = {"now": told_amount(room, slot, now), "to": told_amount(room, slot, to)}
    change = Change(FixKind.SHRINK_POD, case.key, dict([_asked_value(name, to)]))
    tasks = tuple(_with_at_most(room, slot, to).tasks)
    return Candidate(FixKind.SHRINK_POD, (change,), facts, tasks=tasks)


def _asked_value(name: str, amount: float) -> tuple[str, str]:
    """Return key and value by which a change names an amount: cores, GiB, GPUs, or the resource's own count."""
    if name == "memory":
        return name, f"{math.floor(amount / _GIB * 1000) / 1000:g}"
    return name, f"{amount if name == 'gpu' or is_counted_whole(name) else amount / 1000:g}"


def _scaled(case: Case, room: SpareRoom) -> Iterator[Candidate]:
    """Yield all requests of equal pods divided by the smallest number that lets the step fit."""
    asked = {slot: room.tasks[0].request[slot] for slot in _by_importance(room)}
    if any(task.request[slot] != amount for task in room.tasks for slot, amount in asked.items()):
        return
    for divisor, part in ((2, "half"), (4, "a quarter"), (8, "an eighth")):
        smaller = {slot: _divided(room, slot, amount, divisor) for slot, amount in asked.items()}
        tasks = [_asking(task, smaller) for task in room.tasks]
        if all(smaller.values()) and SpareRoom.of(room, tasks, room.assumed).fits():
            lead = next(iter(asked))
            facts: dict[str, FactValue] = {
                "part": part,
                "now": told_amount(room, lead, asked[lead]),
                "to": told_amount(room, lead, smaller[lead]),
            }
            values = dict(_asked_value(room.slot_name(slot), amount) for slot, amount in smaller.items())
            change = Change(FixKind.SHRINK_POD, case.key, values)
            yield Candidate(FixKind.SHRINK_POD, (change,), facts, form="part", tasks=tuple(tasks))
            return


def _divided(room: SpareRoom, slot: int, amount: float, divisor: int) -> float:
    if slot == GPU or is_counted_whole(room.slot_name(slot)):
        return float(amount // divisor)
    return amount / divisor


def shrunk_share(case: Case) -> Iterator[Candidate]:
    """Yield a share of a GPU, or an amount of its memory, that some device has: what the finding saw, then half."""
    for finding in case.findings:
        for constraint in finding.binding:
            key = _SHARES.get(constraint.id)
            if key is None or not isinstance(constraint.have, int | float):
                continue
            now = float(constraint.need)
            for to in (constraint.have, now / 2, now / 4):
                value = math.floor(to) if key == "gpu_memory" else math.floor(to * 100 + 1e-9) / 100
                if 0 < value < now:
                    unit = constraint.unit
                    told: dict[str, FactValue] = {"now": Amount(now, unit), "to": Amount(value, unit)}
                    change = Change(FixKind.SHRINK_POD, case.key, {key: f"{value:g}"})
                    yield Candidate(FixKind.SHRINK_POD, (change,), told)


_SHARES = {ConstraintId.NODE_GPU_FRACTION: "gpu_fraction", ConstraintId.NODE_GPU_MEMORY: "gpu_memory"}


# Nodes


def reselected(case: Case, room: SpareRoom) -> Iterator[Candidate]:
    """Yield the selector with the value that nodes with room have; then without the keys and affinity in the way."""
    nodes = [room.session.nodes[name].node.meta.labels for name in room.without_reason(NodeReason.SELECTOR)]
    if not nodes:
        return
    pod = room.tasks[0].pod
    lifts = frozenset({reason_lift(NodeReason.SELECTOR)})
    keys = [key for key, value in sorted(pod.node_selector.items()) if any(n.get(key) != value for n in nodes)]
    values = {labels.get(keys[0]) for labels in nodes} if len(keys) == 1 else set()
    value = values.pop() if len(values) == 1 else None
    if value:
        told: dict[str, FactValue] = {
            "selector": f"{keys[0]}={pod.node_selector[keys[0]]}",
            "label": f"{keys[0]}={value}",
        }
        change = Change(FixKind.CHANGE_SELECTOR, case.key, {keys[0]: value})
        yield Candidate(FixKind.CHANGE_SELECTOR, (change,), told, form="to", lifts=lifts)
    dropped = {"remove": "+".join(keys)} if keys else {}
    if pod.affinity is not None and pod.affinity.node_required:
        dropped["affinity"] = "none"
    if dropped:
        change = Change(FixKind.CHANGE_SELECTOR, case.key, dropped)
        facts: dict[str, FactValue] = {"selector": selector_text(pod)}
        yield Candidate(FixKind.CHANGE_SELECTOR, (change,), facts, lifts=lifts)


# Rank


def promoted(case: Case) -> Iterator[Candidate]:
    """Yield the PriorityClasses above the gang's own that pass the most gangs of its queue for the least rise."""
    peers = {
        job.priority
        for job in case.session.jobs.values()
        if job is not case.job and job.queue == case.job.queue and (job.pending or job.active_allocated)
    }
    own = case.job.priority
    classes = sorted({cls.value: cls.meta.name for cls in case.session.snapshot.priority_classes}.items())
    useful = [(value, name) for value, name in classes if value > own and any(own <= peer < value for peer in peers)]
    for value, name in dict.fromkeys((*useful[:1], *useful[-1:])):
        change = Change(FixKind.RAISE_PRIORITY, case.key, {"class": name})
        facts: dict[str, FactValue] = {"now": own, "to": value, "class": name}
        yield Candidate(FixKind.RAISE_PRIORITY, (change,), facts)
