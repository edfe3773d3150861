"""No topology domain holds the step: never, or not with what is in use now."""

from __future__ import annotations

from gangdash.engine.explain.domains import Domain
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.holders import holders_on
from gangdash.engine.explain.nofit.case import NO_WAIT, Case, Facts, empty_lifts, largest, need_per_pod
from gangdash.engine.explain.room import NOTHING, Lifts, Room
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.session import GPU
from gangdash.engine.verdict import Amount, Constraint, Finding, ReasonCode, Waiting

_LEVEL_WORDS = {"kubernetes.io/hostname": "node", "nvidia.com/gpu.clique": "NVLink domain"}


def no_domain(case: Case) -> Finding:
    """Return that no domain holds the step, with the numbers of the best one."""
    gang, room, never = case.gang, case.room, case.never
    domains, classes = _concerned(room)
    lifts = empty_lifts(room) if never else NOTHING
    counts = {domain: room.fit_count(domain.nodes, lifts) for domain in domains}
    best = max(domains, key=lambda d: (counts[d], _gpus(room, d, lifts), d.path), default=None)
    uses_gpu = any(item.task.request[GPU] for item in room.classes)
    wanted = [task for index in classes for task in room.classes[index].tasks]
    need = sum(task.request[GPU] for task in wanted)
    have = _gpus(room, best, lifts) if best is not None else 0.0
    by_gpu = uses_gpu and have < need
    could = sum(1 for domain in domains if room.fits_on(domain.nodes, empty_lifts(room)))
    facts: Facts = {
        "need": Amount(need, Unit.GPU),
        "have": Amount(have, Unit.GPU),
        "pods": len(wanted),
        "fit": min(counts[best], len(wanted)) if best is not None else 0,
        "each": need_per_pod(wanted[0]),
        "level": level_word(room),
        "domain": best.name if best is not None else "none",
        "domains": len(domains),
        "could": could,
    }
    binding = [_domain_constraint(room, best, need, have)] if by_gpu else []
    binding.append(_domain_pods(room, best, len(wanted), counts[best] if best is not None else 0))
    claim = _compute_domain(gang, room)
    form = "none" if best is None else "pinned" if room.is_pinned and not never else "" if by_gpu else "pods"
    if never and claim:
        form, facts["claim"] = "claim", claim
    return Finding(
        ReasonCode.DOMAIN_TOO_SMALL if never else ReasonCode.DOMAIN_BUSY,
        form=form,
        facts=facts,
        binding=tuple(binding),
        waiting=NO_WAIT if never else Waiting(),
        holders=() if never or best is None else holders_on(gang, room),
    )


def _concerned(room: Room) -> tuple[list[Domain], list[int]]:
    """Return the domains to choose from and the classes that must share one."""
    if room.domains is not None:
        return room.domains, list(range(len(room.classes)))
    for classes, domains, _ in room.part_domains():
        if not any(_part_fits(room, classes, domain) for domain in domains):
            return domains, classes
    classes, domains, _ = room.part_domains()[0]
    return domains, classes


def _part_fits(room: Room, classes: list[int], domain: Domain) -> bool:
    wanted = sum(len(room.classes[index].tasks) for index in classes)
    return room.fit_count(domain.nodes) >= wanted


def level_word(room: Room) -> str:
    """Return the level as people say it: the last part of the node label."""
    return _LEVEL_WORDS.get(room.level) or room.level.rsplit("/", 1)[-1] or room.level


def _gpus(room: Room, domain: Domain, lifts: Lifts) -> float:
    index = room.classes.index(largest(room))
    return sum(
        max(room.supply(room.nodes[n], lifts)[GPU], 0) for n in domain.nodes if room.allows(index, room.nodes[n], lifts)
    )


def _domain_constraint(room: Room, domain: Domain | None, need: float, have: float) -> Constraint:
    scope = domain.name if domain is not None else "no domain"
    return Constraint(ConstraintId.DOMAIN_GPU, scope, need, have, Unit.GPU, _topology_source(room))


def _domain_pods(room: Room, domain: Domain | None, need: int, have: int) -> Constraint:
    scope = domain.name if domain is not None else "no domain"
    return Constraint(ConstraintId.DOMAIN_PODS, scope, need, have, Unit.PODS, _topology_source(room))


def _topology_source(room: Room) -> str:
    constraint = room.job.root.constraint
    name = constraint.topology if constraint is not None else ""
    return f"Topology/{name} level {room.level}" if name else f"level {room.level}"


def _compute_domain(gang: Gang, room: Room) -> str:
    """Return the ComputeDomain that the step's pods join, if there is one."""
    templates = {claim.template for task in room.tasks for claim in task.pod.claims if claim.template}
    for domain in gang.context.objects("ComputeDomain"):
        if domain.facts.get("spec.channel.resourceClaimTemplate.name") in templates:
            return domain.meta.name
    return ""
