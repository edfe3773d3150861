"""New pods that the API server refuses: a webhook that is down or says no, a namespace quota that is used up."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gangdash.engine.explain import owners
from gangdash.engine.explain.amounts import QuotaLine, amount, quota_lines
from gangdash.engine.explain.build import named
from gangdash.engine.explain.components import Component, component_behind, restart
from gangdash.engine.explain.context import Context
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.verdict import Constraint, FactValue, Finding, Fix, FixKind, ReasonCode, Waiting, Who

_FEATURE = re.compile(
    r"(?:while|because|as) (?P<feature>[A-Za-z][\w -]{2,40}?) is (?:disabled|not enabled|turned off)"
    r"|(?P<other>schedulerName|scheduler|backend|feature gate [\w-]+)[^.]{0,80}? is not enabled",
    re.IGNORECASE,
)


def feature_off(text: str) -> str:
    """Return the feature that a refusal says is off; empty where it gives another reason."""
    found = _FEATURE.search(text)
    return (found["feature"] or found["other"]).strip() if found else ""


def refused(context: Context, maker: ObservedObject, refusal: owners.Refusal, *, exist: int, needed: int) -> Finding:
    """Return the finding for pods of ``maker`` that cannot be created."""
    if refusal.kind == "quota":
        return _quota(context, maker, refusal, exist, needed)
    feature = feature_off(refusal.text) if refusal.kind == "webhook_denies" else ""
    if feature:
        return _feature_off(maker, refusal, feature, exist, needed)
    return _webhook(context, maker, refusal, exist, needed)


def _members(maker: ObservedObject, exist: int, needed: int) -> Constraint:
    return Constraint(ConstraintId.GANG_MIN_MEMBER, maker.meta.name, needed, exist, Unit.PODS, maker.ref)


def _feature_off(maker: ObservedObject, refusal: owners.Refusal, feature: str, exist: int, needed: int) -> Finding:
    source = f"Event {refusal.event.reason} of {maker.ref}"
    return Finding(
        ReasonCode.FEATURE_OFF,
        facts={"component": refusal.name, "feature": feature, "problem": refusal.text},
        binding=(
            named(ConstraintId.FEATURE_ENABLED, feature, "enabled", "disabled", source),
            _members(maker, exist, needed),
        ),
        waiting=Waiting(helps="no"),
        stage="S8",
    )


def _webhook(context: Context, maker: ObservedObject, refusal: owners.Refusal, exist: int, needed: int) -> Finding:
    behind = _component(context, refusal.name)
    is_down = refusal.kind == "webhook_down"
    form = "refuses" if not is_down else "component" if behind is not None and not behind.is_ready else ""
    facts: dict[str, FactValue] = {
        "kind": maker.kind,
        "name": maker.meta.name,
        "exist": exist,
        "needed": needed,
        "webhook": refusal.name,
        "problem": refusal.text,
    }
    fixes: tuple[Fix, ...] = ()
    if behind is not None:
        facts |= {"component": behind.name, "state": behind.state}
        fixes = (
            restart(behind, behind.name),
            Fix(FixKind.WAIT_FOR, {"object": behind.ref}, {"what": f"{behind.name} to be ready"}, who=Who.WAIT),
        )
    return Finding(
        ReasonCode.ADMISSION_DOWN,
        form=form,
        facts=facts,
        binding=(
            named(
                ConstraintId.STAGE_ADMISSION,
                refusal.name,
                "admits the pods",
                "does not answer" if is_down else "refuses them",
                f"Event {refusal.event.reason} of {maker.ref}",
            ),
            _members(maker, exist, needed),
        ),
        waiting=Waiting(helps="unknown", on=(behind.ref,) if behind is not None else ()),
        fixes=fixes,
        stage="S8",
    )


def _component(context: Context, webhook: str) -> Component | None:
    """Return the Deployment that answers for a webhook."""
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        for config in context.objects(kind):
            for hook in config.facts.get("webhooks") or ():
                service = (hook.get("clientConfig") or {}).get("service") or {}
                if hook.get("name") == webhook and service.get("name"):
                    return component_behind(context, str(service.get("namespace", "")), str(service["name"]))
    return None


def _quota(context: Context, maker: ObservedObject, refusal: owners.Refusal, exist: int, needed: int) -> Finding:
    namespace = maker.meta.namespace
    quota = context.object("ResourceQuota", namespace, refusal.name)
    line = _tightest(quota_lines(quota), refusal.asked) if quota is not None else None
    facts: dict[str, FactValue] = {"name": refusal.name, "exist": exist, "needed": needed, "namespace": namespace}
    source = f"ResourceQuota/{namespace}/{refusal.name}"
    binding = [_members(maker, exist, needed)]
    if line is not None:
        facts |= {"resource": line.resource, "hard": line.hard, "used": line.used}
        binding.insert(0, _quota_constraint(line, refusal.asked, source))
    return Finding(
        ReasonCode.NAMESPACE_QUOTA,
        form="" if line is not None else "unread",
        facts=facts,
        binding=tuple(binding),
        waiting=Waiting(helps="unknown", on=(source,)),
        stage="S8",
    )


def _quota_constraint(line: QuotaLine, asked: Mapping[str, str], source: str) -> Constraint:
    """Return what the quota would have to allow for one more pod, as a number where the refusal names the pod's."""
    need = line.used.value + _asked(line, asked)
    if need <= line.hard.value:
        return named(ConstraintId.NAMESPACE_QUOTA, line.resource, "room for one more pod", "refused", source)
    return Constraint(ConstraintId.NAMESPACE_QUOTA, line.resource, need, line.hard.value, line.hard.unit, source)


def _asked(line: QuotaLine, asked: Mapping[str, str]) -> float:
    found = amount(line.resource, asked[line.resource].strip()) if line.resource in asked else None
    return found.value if found is not None else 0.0


def _tightest(lines: list[QuotaLine], asked: Mapping[str, str]) -> QuotaLine | None:
    """Return the resource that one more pod would take furthest beyond its quota, as a share of it."""

    def share(line: QuotaLine) -> float:
        return (line.used.value + _asked(line, asked)) / line.hard.value if line.hard.value else float("inf")

    return max(lines, key=share, default=None)
