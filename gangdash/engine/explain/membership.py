"""Are enough pods there for the scheduler to try the gang, and if not, who has not made them?

Relies on pods, their owners and the owners' events. Leaves gates to ``gates``: a gated pod exists.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.chain.index import controller
from gangdash.engine.explain import admission, owners, upstream
from gangdash.engine.explain.build import named, names
from gangdash.engine.explain.gang import Gang, Part
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.session.build import GROUP_ANNOTATION
from gangdash.engine.statement import DEFAULT_POD_SET
from gangdash.engine.verdict import Constraint, Finding, Fix, FixKind, ReasonCode, Waiting, Who

_FOR_PODS = Waiting(helps="unknown", on=("missing pods",))


def is_short(gang: Gang) -> bool:
    """Whether fewer pods exist, gated ones included, than some minimum asks."""
    return not gang.is_ready and any(part.alive < part.minimum for part in gang.parts.values())


def causes(gang: Gang) -> Iterator[Finding]:
    """Yield named causes for missing members; nothing when the objects do not say."""
    refused = owners.refusal(gang.context, gang.makers)
    if refused is not None and _lacks_pods(gang):
        yield _refused(gang, refused)
    if not is_short(gang):
        return
    for maker in gang.makers:
        field = owners.is_suspended(maker)
        if field:
            yield _suspended(gang, maker, field)
    yield from _other_scheduler(gang)
    yield from _unreachable(gang)
    for maker in gang.makers:
        if owners.failures(maker) and not (owners.number(maker.facts, "status.active") or 0):
            yield _failing(gang, maker)
    yield from _upstream(gang)
    yield from upstream.before_members(gang)


def missing(gang: Gang) -> Finding:
    """Return the plain finding that members are missing."""
    if not gang.pods and not gang.makers and not controller(gang.meta):
        return _empty(gang)
    part = next((part for part in gang.short_parts if part.name != DEFAULT_POD_SET), None)
    if part is not None:
        return _short_part(gang, part)
    exist = len(gang.alive)
    form = "owner" if gang.makers else ""
    if gang.needed == 1:
        form = "one_owner" if gang.makers else "one"
    if gang.finished and exist + len(gang.finished) >= gang.needed:
        form = "finished"
    return Finding(
        ReasonCode.MEMBERS_MISSING,
        form=form,
        facts={
            "exist": exist,
            "needed": gang.needed,
            "finished": len(gang.finished),
            "owner": _owner_words(gang),
        },
        binding=(member_constraint(gang, gang.needed, exist),),
        waiting=_FOR_PODS,
        fixes=(_wait_fix(gang),),
    )


def member_constraint(gang: Gang, need: int, have: int) -> Constraint:
    return Constraint(
        ConstraintId.GANG_MIN_MEMBER, gang.meta.name, need, have, Unit.PODS, f"PodGroup/{gang.podgroup.key}"
    )


def _owner_words(gang: Gang) -> str:
    """Return who must make the missing pods, as the sentence names it."""
    return f"{gang.makers[0].kind} {gang.makers[0].meta.name}" if gang.makers else ""


def _wait_fix(gang: Gang) -> Fix:
    what = f"the missing pods of {_owner_words(gang)}" if gang.makers else "the missing pods"
    return Fix(FixKind.WAIT_FOR, {"object": f"PodGroup/{gang.podgroup.key}"}, {"what": what}, who=Who.WAIT)


def _short_part(gang: Gang, part: Part) -> Finding:
    return Finding(
        ReasonCode.MEMBERS_MISSING,
        form="subgroup",
        facts={"subgroup": part.name, "exist": part.alive, "needed": part.minimum},
        binding=(
            Constraint(
                ConstraintId.GANG_SUB_GROUP,
                part.name,
                part.minimum,
                part.alive,
                Unit.PODS,
                f"PodGroup/{gang.podgroup.key}",
            ),
        ),
        waiting=_FOR_PODS,
        fixes=(_wait_fix(gang),),
    )


def _empty(gang: Gang) -> Finding:
    name = gang.meta.name
    meant = _meant_for(gang)
    groups = {pod.meta.annotations.get(GROUP_ANNOTATION, "") for pod in meant}
    return Finding(
        ReasonCode.EMPTY_PODGROUP,
        form="elsewhere" if meant else "",
        facts={
            "name": name,
            "needed": gang.needed,
            "pods": len(meant),
            "examples": names(meant),
            "groups": len(groups),
        },
        binding=(
            named(
                ConstraintId.GANG_MEMBERSHIP,
                name,
                f"{GROUP_ANNOTATION}={name}",
                "no pod",
                f"PodGroup/{gang.podgroup.key}",
            ),
            member_constraint(gang, gang.needed, 0),
        ),
        waiting=Waiting(helps="no"),
        fixes=tuple(
            Fix(
                FixKind.FIX_REFERENCE,
                {"object": f"Pod/{pod.key}", "field": f"annotation {GROUP_ANNOTATION}"},
                {"found": pod.meta.annotations.get(GROUP_ANNOTATION, "nothing"), "wanted": name},
            )
            for pod in meant[:1]
        ),
    )


def _meant_for(gang: Gang) -> list[Pod]:
    """Return pods of the namespace whose name begins with the PodGroup's and that joined another group, or none."""
    name = gang.meta.name
    return [
        pod
        for pod in sorted(gang.context.snapshot.pods, key=lambda pod: pod.key)
        if pod.meta.namespace == gang.meta.namespace and pod.meta.name.startswith(f"{name}-") and not pod.meta.owners
    ]


# Named causes


def _lacks_pods(gang: Gang) -> bool:
    """Whether an owner wants more pods than it has."""
    wanted = [owners.replicas(maker) for maker in gang.makers]
    known = [count for count in wanted if count is not None]
    return is_short(gang) or len(gang.alive) + len(gang.finished) < sum(known)


def _wanted(gang: Gang) -> int:
    known = [count for maker in gang.makers if (count := owners.replicas(maker)) is not None]
    return max(gang.needed, sum(known))


def _refused(gang: Gang, refused: owners.Refusal) -> Finding:
    return admission.refused(gang.context, gang.makers[0], refused, exist=len(gang.alive), needed=_wanted(gang))


def _suspended(gang: Gang, maker: ObservedObject, field: str) -> Finding:
    missing_pods = max(gang.needed - len(gang.alive), 1)
    return Finding(
        ReasonCode.SUSPENDED,
        facts={"kind": maker.kind, "name": maker.meta.name, "field": field, "missing": missing_pods},
        binding=(named(ConstraintId.STAGE_DONE, maker.ref, f"{field}=false", f"{field}=true", maker.ref),),
        waiting=Waiting(helps="no"),
    )


def _other_scheduler(gang: Gang) -> Iterator[Finding]:
    """Yield members of the same owner that name another scheduler and so joined no PodGroup."""
    uids = {owner.uid for pod in gang.pods if (owner := controller(pod.meta)) is not None}
    siblings = [
        pod
        for uid in sorted(uids)
        for pod in gang.context.owned_pods.get(uid, ())
        if GROUP_ANNOTATION not in pod.meta.annotations
        and pod.scheduler_name not in gang.context.scheduler_names
        and pod.phase in {"Pending", "Running"}
    ]
    if not siblings or len(gang.alive) + len(siblings) < gang.needed:
        return
    found = siblings[0].scheduler_name
    yield Finding(
        ReasonCode.WRONG_SCHEDULER,
        form="member",
        facts={
            "examples": names(siblings),
            "pods": len(siblings),
            "found": found,
            "scheduler": gang.params.scheduler_name,
            "exist": len(gang.alive),
            "needed": gang.needed,
        },
        binding=(
            named(
                ConstraintId.GANG_MEMBERSHIP,
                siblings[0].key,
                gang.params.scheduler_name,
                found,
                f"Pod/{siblings[0].key} spec.schedulerName",
            ),
            member_constraint(gang, gang.needed, len(gang.alive)),
        ),
        waiting=Waiting(helps="no"),
        fixes=(
            Fix(
                FixKind.FIX_REFERENCE,
                {"object": f"Pod/{siblings[0].key}", "field": "spec.schedulerName"},
                {"found": found, "wanted": gang.params.scheduler_name},
            ),
        ),
    )


def _unreachable(gang: Gang) -> Iterator[Finding]:
    direct = gang.context.owner(gang.meta)
    makes = owners.replicas(direct) if direct is not None and len(gang.makers) == 1 else None
    if direct is None or makes is None or makes >= gang.needed or len(gang.alive) < makes:
        return
    yield Finding(
        ReasonCode.MINIMUM_UNREACHABLE,
        facts={"needed": gang.needed, "makes": makes, "owner": f"{direct.kind} {direct.meta.name}"},
        binding=(member_constraint(gang, gang.needed, makes),),
        waiting=Waiting(helps="no"),
        fixes=(
            Fix(
                FixKind.SHRINK_GANG,
                {"object": f"PodGroup/{gang.podgroup.key}", "to": makes},
                {"now": gang.needed, "to": makes},
            ),
        ),
    )


def _failing(gang: Gang, maker: ObservedObject) -> Finding:
    exist = len(gang.alive)
    return Finding(
        ReasonCode.MEMBERS_MISSING,
        form="failing",
        facts={
            "exist": exist,
            "needed": gang.needed,
            "kind": maker.kind,
            "name": maker.meta.name,
            "failed": owners.failures(maker),
        },
        binding=(member_constraint(gang, gang.needed, exist),),
        waiting=Waiting(helps="unknown", on=(maker.ref,)),
        fixes=(
            Fix(
                FixKind.WAIT_FOR,
                {"object": maker.ref},
                {"what": f"{maker.kind} {maker.meta.name} to try again"},
                who=Who.WAIT,
            ),
        ),
        who=Who.OWNER,
    )


def _upstream(gang: Gang) -> Iterator[Finding]:
    """Yield what a Grove or Dynamo object says it cannot do."""
    chain = {item.ref: item for maker in gang.makers for item in (maker, *gang.context.owners(maker.meta))}
    for item in chain.values():
        errors = item.facts.get("status.lastErrors") or ()
        if errors:
            last = max(errors, key=lambda error: str(error.get("observedAt", "")))
            yield _stage_error(gang, item, str(last.get("code", "")), str(last.get("description", "")))


def _stage_error(gang: Gang, item: ObservedObject, code: str, text: str) -> Finding:
    return Finding(
        ReasonCode.UPSTREAM_STAGE,
        facts={
            "controller": "Grove's operator",
            "object": f"{item.kind} {item.meta.name}",
            "problem": f"{code} {text}",
        },
        binding=(
            named(ConstraintId.STAGE_DONE, item.ref, "no error", code or "an error", f"{item.ref} status.lastErrors"),
            member_constraint(gang, gang.needed, len(gang.alive)),
        ),
        stage="S8" if item.kind == "PodClique" else "S6",
    )
