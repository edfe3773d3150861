"""No topology domain holds the step: never, or not with what is in use now."""

from __future__ import annotations

from typing import NamedTuple

from gangdash.engine.explain.build import named
from gangdash.engine.explain.domains import Domain
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.holders import holders_on
from gangdash.engine.explain.nofit.case import NO_WAIT, Case, Facts, empty_lifts, largest, need_per_pod
from gangdash.engine.explain.room import NOTHING, Lifts, Room
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.session import GPU
from gangdash.engine.verdict import Amount, Constraint, Finding, ReasonCode, Waiting

_LEVEL_WORDS = {"kubernetes.io/hostname": "node", "nvidia.com/gpu.clique": "NVLink domain"}


class Concern(NamedTuple):
    """Who looks for a domain in vain: the whole step, or one subgroup with a constraint of its own."""

    domains: list[Domain]
    classes: list[int]
    level: str
    part: str = ""


def no_domain(case: Case) -> Finding:
    """Return that no domain holds the step, with the numbers of the best one."""
    gang, room, never = case.gang, case.room, case.never
    lifts = empty_lifts(room) if never else NOTHING
    concern = _concern(room, lifts)
    domains = concern.domains
    wanted = [task for index in concern.classes for task in room.classes[index].tasks]
    counts = {domain: room.fit_count_of(concern.classes, domain.nodes, lifts) for domain in domains}
    best = max(domains, key=lambda d: (counts[d], _gpus(room, d, lifts), d.path), default=None)
    need = sum(task.request[GPU] for task in wanted)
    have = _gpus(room, best, lifts) if best is not None else 0.0
    fit = counts[best] if best is not None else 0
    facts: Facts = {
        "need": Amount(need, Unit.GPU),
        "have": Amount(have, Unit.GPU),
        "pods": len(wanted),
        "fit": fit,
        "each": need_per_pod(max(wanted, key=lambda task: (task.request[GPU], task.request[0]))),
        "level": level_word(concern.level),
        "domain": best.name if best is not None else "none",
        "domains": len(domains),
        "could": sum(1 for domain in domains if _could_hold(room, concern, domain)),
        "part": concern.part,
        "parts": tuple(sorted({room.classes[index].task.sub_group for index in concern.classes})),
        "claim": _compute_domain(gang, room) if never else "",
    }
    scope, source = best.name if best is not None else "no domain", _topology_source(room, concern.level)
    in_gpus = Constraint(ConstraintId.DOMAIN_GPU, scope, need, have, Unit.GPU, source)
    in_pods = Constraint(ConstraintId.DOMAIN_PODS, scope, len(wanted), fit, Unit.PODS, source)
    # What fits by numbers can still find no domains for all its subgroups at once.
    in_sum = have < need and not facts["claim"]
    binding = in_gpus if in_sum else in_pods if fit < len(wanted) else _together(scope, facts, source)
    return Finding(
        ReasonCode.DOMAIN_TOO_SMALL if never else ReasonCode.DOMAIN_BUSY,
        form=_form(case, concern, facts, binding),
        facts=facts,
        binding=(binding,),
        slack=tuple(entry for entry in (in_gpus, in_pods) if need and entry is not binding and _holds(entry)),
        waiting=NO_WAIT if never else Waiting(),
        holders=() if never or best is None else holders_on(gang, room),
    )


def _form(case: Case, concern: Concern, facts: Facts, binding: Constraint) -> str:
    if not concern.domains:
        return "none" if facts["need"] != Amount(0.0, Unit.GPU) else "none_cpu"
    if binding.id is ConstraintId.DOMAIN_NODES:
        return "together"
    if facts["claim"]:
        return "claim"
    if case.room.is_pinned and not concern.part:
        return "pinned"
    form = "" if binding.id is ConstraintId.DOMAIN_GPU else "pods"
    return ("part_pods" if form else "part") if concern.part else form


def _holds(entry: Constraint) -> bool:
    return not isinstance(entry.need, str) and not isinstance(entry.have, str | None) and entry.need <= entry.have


def _together(scope: str, facts: Facts, source: str) -> Constraint:
    parts = facts["parts"]
    told = ", ".join(parts[:3]) if isinstance(parts, tuple) and any(parts) else "its pods"
    return named(ConstraintId.DOMAIN_NODES, scope, f"a domain for each of {told}", "not for all at once", source)


def _concern(room: Room, lifts: Lifts) -> Concern:
    """Return who finds no domain: the whole step first, then the first subgroup that finds none, alone or not."""
    everyone = list(range(len(room.classes)))
    if room.domains is not None and not any(room.holds(domain.nodes, lifts, everyone) for domain in room.domains):
        return Concern(room.domains, everyone, room.level)
    parts = room.part_domains()
    for part in parts:
        if not any(room.holds(domain.nodes, lifts, part.classes) for domain in part.domains):
            return Concern(part.domains, part.classes, part.level, part.name)
    if room.domains is not None:
        return Concern(room.domains, everyone, room.level)
    classes = sorted({index for part in parts for index in part.classes})
    return Concern(parts[0].domains, classes, parts[0].level)


def _could_hold(room: Room, concern: Concern, domain: Domain) -> bool:
    """Whether the domain would hold them if it were empty and repaired."""
    empty = empty_lifts(room)
    if concern.part or room.domains is None:
        return bool(room.holds(domain.nodes, empty, concern.classes))
    return bool(room.fits_on(domain.nodes, empty))


def level_word(level: str) -> str:
    """Return the level as people say it: the last part of the node label."""
    return _LEVEL_WORDS.get(level) or level.rsplit("/", 1)[-1] or level


def _gpus(room: Room, domain: Domain, lifts: Lifts) -> float:
    index = room.classes.index(largest(room))
    return sum(
        max(room.supply(room.nodes[n], lifts)[GPU], 0) for n in domain.nodes if room.allows(index, room.nodes[n], lifts)
    )


def _topology_source(room: Room, level: str) -> str:
    constraint = room.job.root.constraint
    name = constraint.topology if constraint is not None else ""
    return f"Topology/{name} level {level}" if name else f"level {level}"


def _compute_domain(gang: Gang, room: Room) -> str:
    """Return the ComputeDomain that the step's pods join, if there is one."""
    templates = {claim.template for task in room.tasks for claim in task.pod.claims if claim.template}
    for domain in gang.context.objects("ComputeDomain"):
        if domain.facts.get("spec.channel.resourceClaimTemplate.name") in templates:
            return domain.meta.name
    return ""
