"""What the chain knows that a PodGroup does not show: top objects that never became one, extra replicas, the top owner.

The stage comes from ``gangdash.engine.chain``; here it becomes a verdict. A step that is merely not taken yet is GATED,
one that a controller owes for longer than it should is STUCK, a kind that is not installed is CONFIG.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from gangdash.engine.chain import Standing, gang_standing_of, remarks_of, standing_of
from gangdash.engine.chain.gangs import unplaced
from gangdash.engine.chain.index import PODGANG_LABEL, Key
from gangdash.engine.chain.stages import ONLY_EXTRA, UNSCHEDULED
from gangdash.engine.explain.admission import feature_off
from gangdash.engine.explain.build import named
from gangdash.engine.explain.context import Context
from gangdash.engine.explain.gang import Gang
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.verdict import (
    Certainty,
    Explanation,
    FactValue,
    Finding,
    Fix,
    FixKind,
    GangRef,
    Members,
    ReasonCode,
    Waiting,
    Who,
)

_BY_DESIGN, _NO_PODGROUP = "S4", "S15"
_NO_MAKER = frozenset({"S6", "S7"})
_OWN_CODES = {
    "S0": ReasonCode.KIND_NOT_SERVED,
    _BY_DESIGN: ReasonCode.SUSPENDED,
    "S10": ReasonCode.WAITS_FOR_BASE_GANG,
    "S11": ReasonCode.SCHEDULING_GATE,
    "S12": ReasonCode.WAITS_FOR_BASE_GANG,
    "S13": ReasonCode.SCHEDULING_GATE,
}


def tops_without_gangs(context: Context, ungrouped: Collection[Key]) -> Iterator[tuple[ObservedObject, Standing]]:
    """Yield every top object that no PodGroup was made for, with its stage.

    ``ungrouped`` are those whose pods wait for a PodGroup: what keeps one from being made is read from the pods.
    """
    for top in context.chain.tops():
        found = None if _has_podgroup(context, top) else standing_of(context.chain, top)
        if found is None:
            continue
        key = (top.kind, top.meta.namespace, top.meta.name)
        if found.stage != _NO_PODGROUP or key not in ungrouped:
            yield top, found


def gated(context: Context, pods: Iterable[Pod]) -> Iterator[Finding]:
    """Yield why pods of Grove that belong to no PodGroup are not even handed over."""
    chain = context.chain
    names = {(pod.meta.namespace, pod.meta.labels.get(PODGANG_LABEL, "")) for pod in pods}
    for namespace, name in sorted(names):
        podgang = chain.object("PodGang", namespace, name)
        found = gang_standing_of(chain, podgang) if podgang is not None else None
        if found is not None and found.stage != _NO_PODGROUP:
            yield finding_of(found)


def _has_podgroup(context: Context, top: ObservedObject) -> bool:
    chain = context.chain
    sets = chain.sets_of(top) if top.kind == "DynamoGraphDeployment" else [top]
    gangs = [gang for item in sets for gang in chain.of_set("PodGang", item)]
    if any(chain.podgroups_of(gang) for gang in gangs):
        return True
    pods = [pod for gang in gangs for pod in chain.members(gang)]
    groups = {(pod.meta.namespace, pod.meta.annotations.get("pod-group-name", "")) for pod in pods}
    return any(group in context.podgroups for group in groups)


def explain_top(context: Context, top: ObservedObject, found: Standing) -> Explanation:
    """Return the explanation of a top object under its own kind and name."""
    finding = finding_of(found)
    beside = (finding_of(remark) for remark in remarks_of(context.chain, top))
    return Explanation(
        gang=GangRef(top.meta.namespace, top.meta.name, top.meta.uid, top.kind, ""),
        finding=finding,
        certainty=Certainty.DERIVED,
        waiting_since=top.meta.created,
        members=Members(),
        fixes=finding.fixes,
        also=tuple(item for item in beside if item.code is not finding.code)[:1],
    )


def finding_of(found: Standing) -> Finding:
    """Put a stage into a finding: whose turn it is, the object that proves it, and for how long."""
    code, form = _code(found)
    kind, _, name = found.proof.partition("/")
    facts: dict[str, FactValue] = {
        "controller": found.controller,
        "object": f"{kind} {name.rpartition('/')[2]}",
        "problem": found.problem,
        "state": found.controller_state,
        "since": found.age,
        "kind": kind,
        "name": name.rpartition("/")[2],
        "field": found.field,
        "missing": 1,
    }
    return Finding(
        code,
        form=form,
        facts=facts,
        binding=(named(ConstraintId.STAGE_DONE, found.proof, found.wanted or "done", found.found or "not done",
                       f"{found.proof} {found.field}"),),
        waiting=_waiting(found),
        fixes=_fixes(found),
        who=_who(found),
        stage=found.stage,
    )  # fmt: skip


def _code(found: Standing) -> tuple[ReasonCode, str]:
    """Return code and wording; the stage of a base gang or of a foreign gate has codes of its own."""
    if found.stage in _OWN_CODES:
        return _OWN_CODES[found.stage], "stage"
    if feature_off(found.problem):
        return ReasonCode.FEATURE_OFF, "stage"
    if found.is_silent:
        return ReasonCode.CONTROLLER_SILENT, "down" if found.controller_state else ""
    return ReasonCode.UPSTREAM_STAGE, ""


def _waiting(found: Standing) -> Waiting:
    return Waiting(helps="no" if found.overdue or found.stage == _BY_DESIGN else "unknown", on=(found.proof,))


def _who(found: Standing) -> Who | None:
    return Who.OWNER if found.stage in {"S3", _BY_DESIGN} else None


def _fixes(found: Standing) -> tuple[Fix, ...]:
    if found.controller_state:
        change: dict[str, FactValue] = {"object": found.controller}
        return (Fix(FixKind.RESTART_COMPONENT, change, {"component": found.controller}, who=Who.PLATFORM),)
    what = f"{found.controller} to pass {found.stage}"
    return (Fix(FixKind.WAIT_FOR, {"object": found.proof}, {"what": what}, who=Who.WAIT),)


# Gangs that have a PodGroup


def before_members(gang: Gang) -> Iterator[Finding]:
    """Yield why the makers of a gang's missing pods are not there themselves, or why Grove took its pods away."""
    chain = gang.context.chain
    above = next((owner for owner in gang.owners if owner.kind == "PodCliqueSet"), None)
    standing = standing_of(chain, above) if above is not None else None
    if standing is not None and standing.stage in _NO_MAKER:
        yield finding_of(standing)
    youngest = max((pod.meta.created or 0.0 for pod in gang.alive), default=gang.meta.created or 0.0)
    for remark in remarks_of(chain, above) if above is not None else ():
        if remark.stage == "S24" and (remark.since or 0.0) >= youngest:
            yield finding_of(remark)


def in_chain(gang: Gang, explanation: Explanation) -> Explanation:
    """Return the explanation with what the chain knows better: which replicas wait, and who is on top."""
    owner = top_owner(gang)
    found = replace(explanation, gang=replace(explanation.gang, owner=owner)) if owner else explanation
    if found.finding.stage == UNSCHEDULED and gang.waits and _is_extra(gang):
        found = replace(found, finding=replace(found.finding, stage=ONLY_EXTRA))
    return found


def top_owner(gang: Gang) -> str:
    """Return ``Kind/namespace/name`` of what a person submitted, empty for a bare PodGroup."""
    links = gang.context.chain.ancestry(gang.meta, tuple(gang.pods))
    return links[-1].ref if links else ""


def _is_extra(gang: Gang) -> bool:
    """Whether what runs does without these pods: the gang's minimum is placed, or it is scaled and its base is."""
    if gang.bound and all(part.placed >= part.minimum for part in gang.parts.values()):
        return True
    chain = gang.context.chain
    podgang = chain.podgang_of(gang.podgroup)
    if podgang is None:
        return False
    names = chain.base_names(podgang)
    bases = [chain.object("PodGang", podgang.meta.namespace, name) for name in names]
    return bool(names) and all(base is not None and not any(unplaced(chain, base)) for base in bases)
