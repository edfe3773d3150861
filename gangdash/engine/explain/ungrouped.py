"""Why a workload without a PodGroup waits: nobody handles it, its pods are refused, or nothing holds them together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gangdash.engine.chain.index import last_seen
from gangdash.engine.chain.stages import stage_of
from gangdash.engine.explain import admission, owners, unread, upstream
from gangdash.engine.explain.build import first, named, names
from gangdash.engine.explain.components import component
from gangdash.engine.explain.context import Context
from gangdash.engine.explain.workloads import COUPLED, Workload, near_miss, workloads
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.resources import GPU_NAMES
from gangdash.engine.session.build import GROUP_ANNOTATION
from gangdash.engine.verdict import (
    Amount,
    Certainty,
    Constraint,
    Explanation,
    FactValue,
    Finding,
    Fix,
    FixKind,
    GangRef,
    Members,
    ReasonCode,
    SchedulerWords,
    Verdict,
    Waiting,
)

_NO_WAIT = Waiting(helps="no")


def explain_workload(workload: Workload) -> Explanation:
    """Return the explanation of one workload under its own kind and name."""
    findings = list(_findings(workload))
    total = len(workload.pods)
    created = [pod.meta.created for pod in workload.waiting if pod.meta.created is not None]
    owner_created = workload.owner.meta.created if workload.owner is not None else None
    main = findings[0]
    return Explanation(
        gang=GangRef(workload.namespace, workload.name, workload.uid, workload.kind, ""),
        finding=main if main.stage else _staged(main),
        certainty=Certainty.NO_VERDICT if main.verdict is Verdict.NO_VERDICT else Certainty.DERIVED,
        waiting_since=min(created, default=owner_created),
        members=main.members or Members(total, len(workload.placed), total - len(workload.placed), 0),
        fixes=main.fixes,
        also=tuple(findings[1:]),
        scheduler=_words(workload),
    )


def _staged(finding: Finding) -> Finding:
    return replace(finding, stage=stage_of(finding.code, finding.verdict))


def _findings(workload: Workload) -> Iterator[Finding]:
    refusal = owners.refusal(workload.context, workload.makers)
    if refusal is not None and workload.makers:
        wanted = owners.replicas(workload.makers[0]) or len(workload.pods) + 1
        yield admission.refused(workload.context, workload.makers[0], refusal, exist=len(workload.pods), needed=wanted)
    for maker in workload.makers:
        field = owners.is_suspended(maker)
        if field and not workload.pods:
            yield _suspended(workload, field)
    if not workload.pods:
        return
    yield from _handled_by_nobody(workload)
    yield from _not_enforced(workload)


def _suspended(workload: Workload, field: str) -> Finding:
    wanted = owners.replicas(workload.owner) if workload.owner is not None else None
    return Finding(
        ReasonCode.SUSPENDED,
        facts={"kind": workload.kind, "name": workload.name, "field": field, "missing": wanted or 1},
        binding=(named(ConstraintId.STAGE_DONE, workload.ref, f"{field}=false", f"{field}=true", workload.ref),),
        waiting=_NO_WAIT,
    )


# Nobody handles it


def _handled_by_nobody(workload: Workload) -> Iterator[Finding]:
    context = workload.context
    missed = [pod for pod in workload.waiting if near_miss(context, pod.scheduler_name)]
    if missed:
        yield _wrong_scheduler(workload, missed)
    yield from unread.podgroups(context)
    lost = [pod for pod in workload.waiting if GROUP_ANNOTATION in pod.meta.annotations]
    if lost:
        yield _lost(workload, lost)
    yield from upstream.gated(context, [pod for pod in workload.waiting if pod.gates])
    ungrouped = [pod for pod in workload.waiting if pod.scheduler_name in context.scheduler_names and pod not in lost]
    if ungrouped:
        yield _no_podgroup(workload, ungrouped)
    key = context.params.queue_label_key
    elsewhere = [
        pod
        for pod in workload.waiting
        if key in pod.meta.labels and pod.scheduler_name not in context.scheduler_names and pod not in missed
    ]
    if elsewhere:
        yield _labelled_elsewhere(workload, elsewhere, key)


def _scheduler(context: Context) -> str:
    return min(context.scheduler_names, default="kai-scheduler")


def _name_fix(pods: list[Pod], found: str, wanted: str) -> tuple[Fix, ...]:
    return (
        Fix(
            FixKind.FIX_REFERENCE,
            {"object": f"Pod/{pods[0].key}", "field": "spec.schedulerName"},
            {"found": found, "wanted": wanted},
        ),
    )


def _wrong_scheduler(workload: Workload, pods: list[Pod]) -> Finding:
    wanted, found = _scheduler(workload.context), pods[0].scheduler_name
    return Finding(
        ReasonCode.WRONG_SCHEDULER,
        facts={"pods": len(pods), "found": found, "scheduler": wanted, "examples": names(pods)},
        binding=(
            named(ConstraintId.OBJECT_REFERENCE, pods[0].key, wanted, found, f"Pod/{pods[0].key} spec.schedulerName"),
        ),
        waiting=_NO_WAIT,
        fixes=_name_fix(pods, found, wanted),
    )


def _labelled_elsewhere(workload: Workload, pods: list[Pod], key: str) -> Finding:
    wanted, found = _scheduler(workload.context), pods[0].scheduler_name
    return Finding(
        ReasonCode.WRONG_SCHEDULER,
        form="queue_label",
        facts={"pods": len(pods), "found": found, "scheduler": wanted, "examples": names(pods), "key": key},
        binding=(
            named(ConstraintId.OBJECT_REFERENCE, pods[0].key, wanted, found, f"Pod/{pods[0].key} spec.schedulerName"),
        ),
        waiting=_NO_WAIT,
        fixes=_name_fix(pods, found, wanted),
    )


def _lost(workload: Workload, pods: list[Pod]) -> Finding:
    name = pods[0].meta.annotations[GROUP_ANNOTATION]
    return Finding(
        ReasonCode.NO_PODGROUP,
        form="lost",
        facts={
            "pods": len(pods),
            "podgroup": name,
            "namespace": workload.namespace,
            "scheduler": _scheduler(workload.context),
        },
        binding=(
            named(
                ConstraintId.OBJECT_EXISTS,
                f"PodGroup/{workload.namespace}/{name}",
                name,
                "missing",
                f"Pod/{pods[0].key}",
            ),
        ),
        waiting=_NO_WAIT,
        fixes=(
            Fix(
                FixKind.CREATE_OBJECT,
                {"object": f"PodGroup/{workload.namespace}/{name}"},
                {"kind": "PodGroup", "name": f"{workload.namespace}/{name}"},
            ),
        ),
    )


def _no_podgroup(workload: Workload, pods: list[Pod]) -> Finding:
    down = _grouper_down(workload.context)
    warning = _grouper_warning(workload, pods)
    form = "skipped" if workload.skip_key else "grouper_down" if down else "warning" if warning else ""
    facts: dict[str, FactValue] = {
        "kind": workload.kind,
        "name": workload.name,
        "pods": len(pods),
        "scheduler": _scheduler(workload.context),
        "key": workload.skip_key,
        "component": down,
        "warning": warning,
    }
    return Finding(
        ReasonCode.NO_PODGROUP,
        form=form,
        facts=facts,
        binding=(
            named(ConstraintId.GANG_MEMBERSHIP, workload.ref, "a PodGroup", "none", f"Pod/{pods[0].key} annotations"),
        ),
        waiting=_NO_WAIT if workload.skip_key else Waiting(),
        fixes=(
            Fix(
                FixKind.CREATE_OBJECT,
                {"object": f"PodGroup/{workload.namespace}/{workload.name}"},
                {"kind": "PodGroup", "name": f"{workload.namespace}/{workload.name}"},
            ),
        ),
    )


def _grouper_down(context: Context) -> str:
    for deployment in context.objects("Deployment"):
        part = component(context, deployment)
        if part.name in {"podgrouper", "pod-grouper"} and not part.is_ready:
            return part.name
    return ""


def _grouper_warning(workload: Workload, pods: list[Pod]) -> str:
    found = [
        event
        for pod in pods
        for event in workload.context.events("Pod", pod.meta.namespace, pod.meta.name)
        if event.reason == "PodGrouperWarning"
    ]
    return max(found, key=last_seen).message if found else ""


# Nothing holds its pods together


def _not_enforced(workload: Workload) -> Iterator[Finding]:
    if not workload.placed or workload.kind not in COUPLED:
        return
    rivals = _rivals(workload)
    if len(rivals) > 1:
        yield _mutual(workload, rivals)
    yield _alone(workload)


def _rivals(workload: Workload) -> list[Workload]:
    """Return the half-placed workloads of the same kind and namespace, this one included."""
    return [
        other
        for other in workloads(workload.context)
        if other.kind == workload.kind and other.namespace == workload.namespace and other.placed and other.waiting
    ]


def _held(workload: Workload) -> Amount:
    gpus = workload.gpus()
    return Amount(gpus, Unit.GPU) if gpus else Amount(workload.cpu(), Unit.MILLICORES)


def _total(context: Context, unit: Unit) -> float:
    name = "cpu" if unit is Unit.MILLICORES else ""
    return float(
        sum(
            node.allocatable.get(name, 0) if name else sum(node.allocatable.get(gpu, 0) for gpu in GPU_NAMES)
            for node in context.snapshot.nodes
        )
    )


def _mutual(workload: Workload, rivals: list[Workload]) -> Finding:
    held = [_held(rival) for rival in rivals]
    total = Amount(_total(workload.context, held[0].unit), held[0].unit)
    together = Amount(sum(amount.value for amount in held), held[0].unit)
    nodes = {pod.node_name for rival in rivals for pod in rival.placed}
    return Finding(
        ReasonCode.MUTUAL_WAIT,
        facts={
            "kind": workload.kind,
            "count": len(rivals),
            "held": together,
            "total": total,
            "placed": len(workload.placed),
            "pods": len(workload.pods),
            "nodes": len(nodes),
            "all_nodes": len(workload.context.snapshot.nodes),
        },
        binding=_unbound_parts(workload),
        slack=(
            Constraint(
                ConstraintId.CLUSTER_NODES,
                f"{len(rivals)} {workload.kind}s",
                len(nodes),
                len(workload.context.snapshot.nodes),
                Unit.NODES,
                "nodes of their pods",
            ),
        ),
        waiting=_NO_WAIT,
        fixes=tuple(
            Fix(
                FixKind.EVICT_GANG,
                {"object": rival.ref},
                {"gang": f"{rival.kind} {rival.name}", "gpus": rival.gpus()},
                form="" if rival.gpus() else "plain",
            )
            for rival in rivals
            if rival.name != workload.name
        )[:1],
    )


def _unbound_parts(workload: Workload) -> tuple[Constraint, ...]:
    """Return what nothing enforces for the workload: that it is one gang, and that all its pods run."""
    total, placed = len(workload.pods), len(workload.placed)
    return (
        named(ConstraintId.GANG_ENFORCED, workload.ref, "one gang", "no PodGroup", "annotations of its pods"),
        Constraint(ConstraintId.GANG_MIN_MEMBER, workload.name, total, placed, Unit.PODS, workload.ref),
    )


def _alone(workload: Workload) -> Finding:
    schedulers = sorted({pod.scheduler_name for pod in workload.pods})
    return Finding(
        ReasonCode.GANG_NOT_ENFORCED,
        form="none",
        facts={
            "placed": len(workload.placed),
            "total": len(workload.pods),
            "waiting": len(workload.waiting),
            "held": _held(workload),
            "scheduler": schedulers[0] if schedulers else "the scheduler",
            "size": _group_size(workload),
        },
        binding=_unbound_parts(workload),
        waiting=Waiting(helps="unknown", on=first(f"Pod/{pod.key}" for pod in workload.waiting)),
    )


def _group_size(workload: Workload) -> int:
    """Return how many pods of it need each other: a LeaderWorkerSet's group, else all of them."""
    owner = workload.owner
    size = owner.facts.get("spec.leaderWorkerTemplate.size") if owner is not None else None
    return size if isinstance(size, int) else len(workload.pods)


def _words(workload: Workload) -> SchedulerWords | None:
    for pod in workload.waiting:
        condition = pod.condition("PodScheduled")
        if condition is not None and condition.status == "False" and condition.message:
            return SchedulerWords(condition.message, f"Pod/{pod.key} condition PodScheduled", condition.since)
    return None
