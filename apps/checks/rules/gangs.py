"""Is every gang whole and held together? V2, V3, C14 to C16."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from apps.checks.rules.base import (
    FUNCTION_NAMESPACE,
    Check,
    Outcome,
    Severity,
    View,
    absent,
    age,
    counted,
    failed,
    passed,
    some,
    unknown,
    verdict,
)
from gangdash.engine.chain.components import whole
from gangdash.engine.chain.index import controller
from gangdash.engine.model.pod import Pod

GROUPED_WITHIN = 60.0
SKIP = "kai.scheduler/skip-podgrouper"


def orphans(view: View) -> Outcome:
    """V2: PodGangs have a PodGroup, PodGroups have pods."""
    gap = view.gap("PodGroup", "Pod", "PodGang")
    if gap:
        return unknown(gap)
    gangs, groups = view.objects("PodGang"), view.chain.podgroups
    if not gangs and not groups:
        return absent("No PodGang and no PodGroup")
    problems = []
    for gang in gangs:
        members = view.chain.members(gang)
        made = view.chain.podgroups_of(gang)
        joined = any(f"{p.meta.namespace}/{p.meta.annotations.get('pod-group-name', '')}" in groups for p in members)
        if len(made) > 1:
            problems.append(f"{gang.ref} has {len(made)} PodGroups")
        elif members and not made and not joined and any(not pod.gates for pod in members):
            problems.append(f"{gang.ref} has {counted(len(members), 'pod')} and no PodGroup")
    empty = [
        key for key in groups if not view.members.get(key) and age(view, groups[key].meta.created) > GROUPED_WITHIN
    ]
    problems += [f"PodGroup {key} has no pod" for key in empty if key not in view.joined]
    return verdict(problems, f"{counted(len(gangs), 'PodGang')}, {counted(len(groups), 'PodGroup')}, all with pods")


def waiting(view: View) -> Outcome:
    """V3: what pods without a node say of themselves."""
    gap = view.gap("Pod")
    if gap:
        return unknown(gap)
    pods = [pod for pod in view.live_pods if not pod.node_name and _is_for_kai(view, pod)]
    if not pods:
        return passed("No pod for KAI waits for a node")
    said = Counter(_says(pod) for pod in pods)
    words = ", ".join(f"{count} {reason}" for reason, count in said.most_common(4))
    reasons = Counter(r.reason for g, _ in view.waiting_gangs() for c in g.scheduling_conditions for r in c.reasons)
    told = f"; PodGroups say {', '.join(reason for reason, _ in reasons.most_common(3))}" if reasons else ""
    return failed(f"{counted(len(pods), 'pod')} without a node: {words}{told}", [f"Pod/{p.key}" for p in pods[:20]])


def _is_for_kai(view: View, pod: Pod) -> bool:
    return pod.scheduler_name in view.scheduler_names


def _says(pod: Pod) -> str:
    if pod.gates:
        return "gated"
    scheduled = pod.condition("PodScheduled")
    return (scheduled.reason if scheduled is not None else "") or "without a word from a scheduler"


def effective_minimum(view: View) -> Outcome:
    """C14: a StatefulSet of several pods is held together as one gang, whatever was promised."""
    gap = view.gap("StatefulSet", "PodGroup")
    if gap:
        return unknown(gap)
    loose, seen = [], 0
    for group in view.chain.podgroups.values():
        owner = view.chain.owner(group.meta)
        replicas = (
            whole(owner.facts.get("spec.replicas")) if owner is not None and owner.kind == "StatefulSet" else None
        )
        if owner is None or replicas is None or replicas < 2:
            continue
        seen += 1
        least = group.min_member or 1
        if least < replicas:
            loose.append(f"{owner.ref}: {replicas} replicas, effective minimum {least}")
    if not seen:
        return absent("No PodGroup of a StatefulSet with several replicas")
    return verdict(loose, f"{counted(seen, 'StatefulSet')} held together as a gang")


def one_scheduler(view: View) -> Outcome:
    """C15: the pods of a gang name one scheduler, and pods of NVCF name KAI where its gate is on."""
    gap = view.gap("Pod")
    if gap:
        return unknown(gap)
    problems = [
        f"PodGroup {key}: pods for {', '.join(sorted(names))}"
        for key, pods in view.members.items()
        if len(names := {pod.scheduler_name for pod in pods}) > 1
    ]
    problems += _left_behind(view)
    return verdict(problems, f"{counted(len(view.members), 'gang')}, one scheduler each")


def _left_behind(view: View) -> Iterator[str]:
    if not (view.gates or {}).get("KAIScheduler"):
        return
    for pod in view.live_pods:
        if pod.meta.namespace.startswith(FUNCTION_NAMESPACE) and pod.scheduler_name not in view.scheduler_names:
            yield f"Pod {pod.key} is for {pod.scheduler_name}, made before the gate KAIScheduler was on"


def grouped(view: View) -> Outcome:
    """C16: pods for KAI are joined to a PodGroup within a minute."""
    gap = view.gap("Pod", "PodGroup")
    if gap:
        return unknown(gap)
    pods = [pod for pod in view.live_pods if _is_for_kai(view, pod)]
    if not pods:
        return absent("No pod for KAI")
    lost = [
        pod
        for pod in pods
        if "pod-group-name" not in pod.meta.annotations
        and age(view, pod.meta.created) > GROUPED_WITHIN
        and not pod.gates
        and not pod.node_name
        and not _opts_out(view, pod)
    ]
    if lost:
        text = f"{counted(len(lost), 'pod')} without pod-group-name: {some(pod.key for pod in lost)}"
        return failed(text, [f"Pod/{pod.key}" for pod in lost[:20]])
    return passed(f"{counted(len(pods), 'pod')} for KAI, all joined to a PodGroup")


def _opts_out(view: View, pod: Pod) -> bool:
    owner = view.chain.owner(pod.meta)
    metas = [pod.meta, *([owner.meta] if owner is not None else [])]
    ref = controller(pod.meta)
    return any(meta.annotations.get(SKIP) == "true" for meta in metas) and (ref is None or ref.kind != "PodClique")


CHECKS = (
    Check("V2", "Gangs are whole", Severity.WARNING,
          "Open the workload: its page says which layer is missing and whose turn it is.", orphans),
    Check("V3", "No pod waits for a node", Severity.INFO,
          "Open the triage page: each gang has its reason there.", waiting),
    Check("C14", "StatefulSets are gangs as promised", Severity.WARNING,
          "Create the PodGroup yourself with the right minMember, or use a kind that KAI groups.", effective_minimum),
    Check("C15", "One scheduler a gang", Severity.WARNING,
          "Deploy the workload again: the scheduler's name is set when pods are made.", one_scheduler),
    Check("C16", "Pods for KAI are grouped", Severity.CRITICAL,
          "Look at the pod grouper and at PodGrouperWarning events of the pods.", grouped),
)  # fmt: skip
