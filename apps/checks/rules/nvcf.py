"""Is NVCF's agent set up for what is installed? V15 to V21, C4 to C7, C19.

Contents of ConfigMaps are never read, so what only they say is "cannot tell", with what the NVCFBackend says beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apps.checks.rules.base import (
    Check,
    Outcome,
    Severity,
    View,
    absent,
    age,
    counted,
    failed,
    gpus_of,
    passed,
    some,
    unknown,
    verdict,
)
from apps.checks.rules.queues import default_amounts, default_queues
from gangdash.engine.chain.components import whole
from gangdash.engine.chain.platform import DYNAMO_OPERATOR, GROVE_OPERATOR, KAI_SCHEDULER, NVCA
from gangdash.engine.chain.times import moment

EXTRA_ROLE = "nvca-operator-allowed-extra-types"
STATUS_AGE = 900.0
TYPES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "KAI": ("scheduling.run.ai", ("podgroups",)),
    "Grove": ("grove.io", ("podcliquesets", "podcliques", "podcliquescalinggroups")),
    "Dynamo": ("nvidia.com", ("dynamographdeployments", "dynamocomponentdeployments", "dynamomodels")),
}
PARTS = {"KAI": KAI_SCHEDULER, "Grove": GROVE_OPERATOR, "Dynamo": DYNAMO_OPERATOR}
MAINTENANCE = ("CordonMaintenance", "CordonAndDrainMaintenance")


def backend(view: View) -> Outcome:
    """V15: the NVCFBackend is healthy and its status is fresh."""
    if view.backend is None:
        return failed("No NVCFBackend exists") if view.is_nvcf and not view.gap("NVCFBackend") else view.no_nvcf
    facts, ref = view.backend.facts, view.backend.ref
    health, told = facts.get("status.agentStatus"), facts.get("status.lastUpdatedAgentStatus")
    problems = [] if str(health).lower() == "healthy" else [f"agentStatus is {health or 'not set'}"]
    said = moment(told)
    if said is not None and age(view, said) > STATUS_AGE:
        problems.append(f"its status is {age(view, said) / 60:.0f} min old")
    wanted, runs = facts.get("spec.version"), facts.get("status.version")
    if wanted and runs and wanted != runs:
        problems.append(f"version {runs} runs, {wanted} is wanted")
    return verdict(problems, f"{ref} is {health}, version {runs or 'unknown'}", [ref])


def flags(view: View) -> Outcome:
    """V16: the sources of feature gates agree. Two of the four are fields, two are contents of ConfigMaps."""
    if view.backend is None or view.gates is None:
        return view.no_nvcf
    own = _names(view.backend.facts.get("spec.featureGate.values"))
    over = view.backend.facts.get("spec.overrides.featureGate.values")
    lost = sorted(own - _names(over)) if over is not None else []
    if lost:
        return failed(f"the overrides replace the list and drop {some(lost)}", [view.backend.ref])
    on = sorted(name for name, is_on in view.gates.items() if is_on)
    return unknown(f"NVCFBackend has {some(on) or 'no gate'}; agent-config is a ConfigMap, whose contents are not read")


def _names(values: object) -> set[str]:
    listed = values if isinstance(values, list) else []
    return {str(value).lstrip("+-") for value in listed if not str(value).startswith("-")}


def identity(view: View) -> Outcome:
    """V17: the cluster knows its own id and its group's."""
    if view.backend is None:
        return view.no_nvcf
    facts = view.backend.facts
    cluster = facts.get("spec.clusterConfig.clusterID")
    group = facts.get("spec.clusterConfig.clusterGroupID") or facts.get("spec.clusterConfig.clusterGroupName")
    problems = [f"{name} is empty" for name, value in (("clusterID", cluster), ("cluster group", group)) if not value]
    return verdict(problems, f"cluster {facts.get('spec.clusterConfig.clusterName') or cluster}, group {group}")


def extra_types(view: View) -> Outcome:
    """V18: the role for extra types is there."""
    if not view.is_nvcf:
        return view.no_nvcf
    if view.gap("ClusterRole"):
        return unknown(view.gap("ClusterRole"))
    role = view.chain.object("ClusterRole", "", EXTRA_ROLE)
    return passed(f"ClusterRole {EXTRA_ROLE} exists") if role else failed(f"ClusterRole {EXTRA_ROLE} does not exist")


def allowed_types(view: View) -> Outcome:
    """C7: NVCA may handle the types of every add-on that is installed."""
    if not view.is_nvcf:
        return view.no_nvcf
    gap = view.gap("ClusterRole", "Deployment")
    if gap:
        return unknown(gap)
    role = view.chain.object("ClusterRole", "", EXTRA_ROLE)
    rules = (role.facts.get("rules") or ()) if role is not None else ()
    problems = []
    for addon, (group, wanted) in TYPES.items():
        if view.platform.find(PARTS[addon]) is None:
            continue
        lost = [name for name in wanted if not _allowed(rules, group, name)]
        if lost:
            problems.append(f"{addon} is installed, {some(lost)} of {group} not allowed")
    return verdict(problems, "every installed add-on's types are allowed", [f"ClusterRole/{EXTRA_ROLE}"])


def _allowed(rules: object, group: str, resource: str) -> bool:
    listed = rules if isinstance(rules, list | tuple) else ()
    return any(
        {group, "*"} & set(rule.get("apiGroups") or ()) and {resource, "*"} & set(rule.get("resources") or ())
        for rule in listed
    )


def gpu_count(view: View) -> Outcome:
    """V19: NVCA counts the GPUs that the nodes offer."""
    if view.backend is None:
        return view.no_nvcf
    usage = view.backend.facts.get("status.gpuUsage")
    counts = [whole(entry.get("capacity")) for entry in usage.values()] if isinstance(usage, Mapping) else []
    if not counts or None in counts:
        return unknown("NVCFBackend does not say how many GPUs it counts")
    told, offered = sum(count or 0 for count in counts), sum(gpus_of(node) for node in view.snapshot.nodes)
    text = f"NVCA counts {told}, nodes offer {offered}"
    return passed(text) if told == offered else failed(text, [view.backend.ref])


def healthz(view: View) -> Outcome:
    """V20: the agent answers. Its address is not called from here; its readiness and the backend's word are taken."""
    if not view.is_nvcf:
        return view.no_nvcf
    if view.gap("Deployment"):
        return unknown(view.gap("Deployment"))
    agent = view.platform.find(NVCA)
    if agent is None:
        return failed("Deployment nvca does not exist")
    if not agent.is_ready:
        return failed(f"{agent.ref}: {agent.ready} of {agent.wanted} ready", [agent.ref])
    return passed(f"{agent.ref} is ready; its /healthz is what readiness asks", [agent.ref])


def validator(view: View) -> Outcome:
    """V21: the cluster validator's summary is there. It is a ConfigMap, so only its name is known here."""
    if not view.is_nvcf:
        return view.no_nvcf
    if view.gap("ConfigMap"):
        return unknown(view.gap("ConfigMap"))
    if "nvca-operator/cluster-validator-summary" in view.snapshot.config_maps:
        return unknown("nvca-operator/cluster-validator-summary exists; contents of ConfigMaps are not read")
    return unknown("The validator has left no summary: it has not run")


# Gates


def kai_gate(view: View) -> Outcome:
    """C4: KAI is up, so its gate is on: without it pods stay with the default scheduler."""
    kai = view.platform.find(KAI_SCHEDULER)
    if view.gates is None:
        return view.no_nvcf
    if kai is None or not kai.is_ready:
        return unknown(view.gap("Deployment")) if view.gap("Deployment") else absent("KAI does not run")
    return passed("KAIScheduler is on") if view.gates.get("KAIScheduler") else failed("KAI runs, KAIScheduler is off")


def gate_without_queues(view: View) -> Outcome:
    """C5: the gate is on, so CRD and default queues are right: else the agent never becomes healthy."""
    if view.gates is None:
        return view.no_nvcf
    if not view.gates.get("KAIScheduler"):
        return absent("KAIScheduler is off")
    if view.is_unserved("Queue"):
        return failed("KAIScheduler is on, and Queue is not served")
    bad = [found.evidence for found in (default_queues(view), default_amounts(view)) if found.state == "fail"]
    return verdict(bad, "KAIScheduler is on, the default queues are as NVCA wants them")


def dynamo_gate(view: View) -> Outcome:
    """C6: Dynamo is there, so its gate is on."""
    if view.gates is None:
        return view.no_nvcf
    if view.platform.find(DYNAMO_OPERATOR) is None:
        return unknown(view.gap("Deployment")) if view.gap("Deployment") else absent("Dynamo is not installed")
    on = view.gates.get("DynamoOperatorSupport")
    return passed("DynamoOperatorSupport is on") if on else failed("Dynamo runs, DynamoOperatorSupport is off")


def maintenance(view: View) -> Outcome:
    """C19: no maintenance is on while gangs wait."""
    if view.gates is None:
        return view.no_nvcf
    on = [name for name in MAINTENANCE if view.gates.get(name)]
    waits = len(view.waiting_gangs())
    cordoned = list(_cordoned(view))
    if on and waits:
        words = f", {counted(len(cordoned), 'GPU node')} cordoned" if cordoned else ""
        return failed(f"{some(on)} is on and {counted(waits, 'gang')} wait{words}: this is expected", cordoned[:20])
    return passed(f"{some(on)} is on, nothing waits" if on else "No maintenance is on")


def _cordoned(view: View) -> Iterator[str]:
    return (f"Node/{node.name}" for node in view.gpu_nodes if node.unschedulable)


CHECKS = (
    Check("V15", "NVCFBackend is healthy", Severity.CRITICAL,
          "Read the logs of NVCA and of its operator.", backend),
    Check("V16", "Feature gates agree", Severity.WARNING,
          "Compare cluster-dto, NVCFBackend, its overrides and agent-config: an override replaces the whole list.",
          flags),
    Check("V17", "The cluster knows who it is", Severity.CRITICAL,
          "Register the cluster again: clusterId and clusterGroupId must not be empty.", identity),
    Check("V18", "The role for extra types exists", Severity.WARNING,
          "Install NVCA's operator with the extra types of the add-ons.", extra_types),
    Check("V19", "NVCA counts every GPU", Severity.WARNING,
          "Look for GPU nodes that NVCA could not classify.", gpu_count),
    Check("V20", "NVCA's agent answers", Severity.CRITICAL,
          "Ask http://nvca.nvca-system:8000/healthz inside the cluster: it names the part that is ill.", healthz),
    Check("V21", "The cluster validator is content", Severity.INFO,
          "Read ConfigMap cluster-validator-summary in nvca-operator.", validator),
    Check("C4", "KAI's gate is on", Severity.CRITICAL,
          "Set the feature gate KAIScheduler; deploy workloads again.", kai_gate),
    Check("C5", "KAI's gate has its queues", Severity.CRITICAL,
          "Create or correct the default queues: NVCA restarts until they are right.", gate_without_queues),
    Check("C6", "Dynamo's gate is on", Severity.WARNING,
          "Set the feature gate DynamoOperatorSupport.", dynamo_gate),
    Check("C7", "Add-on types are allowed", Severity.CRITICAL,
          "Add the types named to cluster.validationPolicy.allowedExtraKubernetesTypes.", allowed_types),
    Check("C19", "No maintenance while gangs wait", Severity.INFO,
          "Wait for the maintenance to end.", maintenance),
)  # fmt: skip
