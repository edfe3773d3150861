"""Pods that a scheduling gate keeps from the scheduler: whose gate, and what its owner waits for.

Grove's gate goes when the PodGang is complete and, for a scaled gang, when the base gang is placed (by pod labels
``grove.io/podgang`` and ``grove.io/base-podgang``, never by names). PodClique status is not believed here: it counts
gates that are long gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gangdash.engine.chain.gangs import GROVE_GATE, short_compute_domain
from gangdash.engine.chain.index import BASE_LABEL, PODGANG_LABEL
from gangdash.engine.explain.build import first, named, names
from gangdash.engine.explain.gang import Gang
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import PodGroup
from gangdash.engine.verdict import Constraint, FactValue, Finding, Fix, FixKind, ReasonCode, Waiting, Who

_CONTROLLERS = {
    "grove.io/": "Grove's operator",
    "kueue.x-k8s.io/": "Kueue",
    "jobset.x-k8s.io/": "JobSet's controller",
    "kubevirt.io/": "KubeVirt",
}


def gates(gang: Gang) -> Iterator[Finding]:
    """Yield why pods are gated, foreign gates first: Grove does not remove those."""
    foreign = [pod for pod in gang.gated if any(gate != GROVE_GATE for gate in pod.gates)]
    if foreign:
        yield _foreign(gang, foreign)
    own = [pod for pod in gang.gated if GROVE_GATE in pod.gates]
    if own:
        yield _grove(gang, own)


def _controller_of(gate: str) -> str:
    return next((name for prefix, name in _CONTROLLERS.items() if gate.startswith(prefix)), "the owner of that gate")


def _foreign(gang: Gang, pods: list[Pod]) -> Finding:
    gate = Counter(gate for pod in pods for gate in pod.gates if gate != GROVE_GATE).most_common(1)[0][0]
    return _gate_finding(gang, pods, gate, stage="S11")


def _gate_finding(gang: Gang, pods: list[Pod], gate: str, *, stage: str, form: str = "") -> Finding:
    controller = _controller_of(gate)
    since = max((pod.meta.created or 0.0 for pod in pods), default=0.0)
    return Finding(
        ReasonCode.SCHEDULING_GATE,
        form=form,
        facts={
            "gated": len(pods),
            "gate": gate,
            "examples": names(pods),
            "controller": controller,
            "since": max(gang.as_of - since, 0.0),
        },
        binding=(named(ConstraintId.STAGE_GATE, names(pods)[0], "no gate", gate, f"Pod/{pods[0].key}"),),
        waiting=Waiting(helps="unknown", on=(controller,)),
        fixes=(
            Fix(
                FixKind.WAIT_FOR,
                {"object": f"Pod/{pods[0].key}"},
                {"what": f"{controller} to remove {gate}"},
                who=Who.WAIT,
            ),
        ),
        stage=stage,
    )


# Grove


def _grove(gang: Gang, pods: list[Pod]) -> Finding:
    podgang_name = pods[0].meta.labels.get(PODGANG_LABEL, "")
    if not podgang_name or not gang.context.snapshot.was_read("PodGang"):
        return _gate_finding(gang, pods, GROVE_GATE, stage="S9")
    podgang = gang.context.object("PodGang", gang.meta.namespace, podgang_name)
    incomplete = _incomplete(gang, podgang, pods)
    if incomplete is not None:
        return incomplete
    for base_name in _bases(gang, podgang, pods):
        base = base_gang(gang, base_name)
        waits = _base_waits(gang, base_name, base, pods)
        if waits is not None:
            return waits
    return _gate_finding(gang, pods, GROVE_GATE, stage="S13", form="late")


def _bases(gang: Gang, podgang: ObservedObject | None, pods: list[Pod]) -> list[str]:
    """Return the gangs that this one waits for: its pods' label says it, or the PodGangMap where Grove has epochs."""
    named = pods[0].meta.labels.get(BASE_LABEL, "")
    if named or podgang is None:
        return [named] if named else []
    return gang.context.chain.base_names(podgang)


def base_gang(gang: Gang, name: str) -> Gang | None:
    """Return the gang that Grove calls the base of this one."""
    chain = gang.context.chain
    podgang = chain.object("PodGang", gang.meta.namespace, name)
    made = chain.podgroups_of(podgang) if podgang is not None else []
    for podgroup in made or gang.context.snapshot.podgroups:
        if podgroup in made or (podgroup.meta.namespace == gang.meta.namespace and _belongs(podgroup, name)):
            return Gang(gang.context, podgroup)
    return None


def _belongs(podgroup: PodGroup, podgang: str) -> bool:
    return any(owner.kind == "PodGang" and owner.name == podgang for owner in podgroup.meta.owners)


def _incomplete(gang: Gang, podgang: ObservedObject | None, pods: list[Pod]) -> Finding | None:
    """Return a finding when the PodGang does not exist, is not initialised or does not list the gated pods."""
    name = pods[0].meta.labels.get(PODGANG_LABEL, "")
    if podgang is None:
        return _stage(pods, f"PodGang/{gang.meta.namespace}/{name}", "podgang_missing", {"podgang": name})
    initialized = next((c for c in podgang.conditions if c.type == "Initialized"), None)
    listed = {
        ref.get("name")
        for group in podgang.facts.get("spec.podgroups") or ()
        for ref in group.get("podReferences") or ()
    }
    unlisted = [pod for pod in pods if pod.meta.name not in listed]
    if initialized is not None and initialized.status == "True" and not unlisted:
        return None
    form = "podgang_short" if unlisted else "podgang_not_initialized"
    facts: dict[str, FactValue] = {"podgang": name, "unlisted": len(unlisted), "examples": names(unlisted or pods)}
    return _stage(pods, podgang.ref, form, facts)


def _stage(pods: list[Pod], ref: str, form: str, facts: dict[str, FactValue]) -> Finding:
    return Finding(
        ReasonCode.UPSTREAM_STAGE,
        form=form,
        facts={"gated": len(pods), "controller": "Grove's operator", **facts},
        binding=(
            named(ConstraintId.STAGE_DONE, ref, "lists every pod, Initialized", form.replace("_", " "), ref),
            named(ConstraintId.STAGE_GATE, names(pods)[0], "no gate", GROVE_GATE, f"Pod/{pods[0].key}"),
        ),
        waiting=Waiting(helps="unknown", on=(ref,)),
        stage="S9",
    )


def _base_waits(gang: Gang, name: str, base: Gang | None, pods: list[Pod]) -> Finding | None:
    """Return a finding while the base gang is missing, not placed, or placed and not ready."""
    if base is None:
        return _base_finding(name, pods, "missing", {}, ())
    if not base.is_satisfied:
        facts: dict[str, FactValue] = {"have": len(base.placed), "need": base.needed}
        return _base_finding(name, pods, "", facts, (_base_constraint(base, len(base.placed)),))
    ready = [pod for pod in base.bound if is_ready(pod)]
    if len(ready) >= base.needed:
        return None
    domain = short_compute_domain(base.context.chain, base.meta.namespace, base.pods)
    if domain is None:
        facts = {"have": len(ready), "need": base.needed, "placed": len(base.placed)}
        return _base_finding(name, pods, "not_ready", facts, (_base_constraint(base, len(ready)),))
    claim, wanted, have = domain
    constraint = Constraint(
        ConstraintId.DOMAIN_NODES, claim, wanted, have, Unit.NODES, f"ComputeDomain/{gang.meta.namespace}/{claim}"
    )
    facts = {"claim": claim, "need": wanted, "have": have}
    return _base_finding(name, pods, "compute_domain", facts, (constraint, _base_constraint(base, len(ready))))


def _base_constraint(base: Gang, have: int) -> Constraint:
    return Constraint(
        ConstraintId.STAGE_BASE_GANG, base.meta.name, base.needed, have, Unit.PODS, f"PodGroup/{base.podgroup.key}"
    )


def _base_finding(
    name: str, pods: list[Pod], form: str, facts: dict[str, FactValue], binding: tuple[Constraint, ...]
) -> Finding:
    deadlock = form == "compute_domain"
    return Finding(
        ReasonCode.WAITS_FOR_BASE_GANG,
        form=form,
        facts={"base": name, "gated": len(pods), "examples": first(names(pods)), **facts},
        binding=(
            *binding,
            named(ConstraintId.STAGE_GATE, names(pods)[0], "no gate", GROVE_GATE, f"Pod/{pods[0].key}"),
        ),
        waiting=Waiting(helps="no" if deadlock else "unknown", on=(f"PodGang/{pods[0].meta.namespace}/{name}",)),
        fixes=(_base_fix(name, pods[0].meta.namespace, form, facts),),
        who=Who.PLATFORM if deadlock or form == "missing" else None,
        stage="S14" if deadlock else "S12" if form == "missing" else "S10",
    )


def _base_fix(name: str, namespace: str, form: str, facts: dict[str, FactValue]) -> Fix:
    """Return what ends the wait for the base gang; its own explanation says what starts that one."""
    if form == "compute_domain":
        claim = facts["claim"]
        return Fix(
            FixKind.FIX_REFERENCE,
            {"object": f"ComputeDomain/{namespace}/{claim}", "field": "spec.numNodes"},
            {"found": facts["need"], "wanted": facts["have"]},
            who=Who.PLATFORM,
        )
    what = {"": "to be placed", "not_ready": "to be ready", "missing": "to be made by Grove's operator"}[form]
    return Fix(
        FixKind.WAIT_FOR, {"object": f"PodGang/{namespace}/{name}"}, {"what": f"base gang {name} {what}"}, who=Who.WAIT
    )


def is_ready(pod: Pod) -> bool:
    condition = pod.condition("Ready")
    return pod.phase == "Running" and condition is not None and condition.status == "True"
