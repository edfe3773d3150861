"""Are the add-ons up, in order and of versions that go together? V1, V10, V12 to V14, C1 to C3, C10, C13, C20."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from apps.checks.rules.base import (
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
    version,
)
from gangdash.engine.chain.platform import (
    DYNAMO_OPERATOR,
    GROVE_OPERATOR,
    KAI_PARTS,
    KAI_SCHEDULER,
    NVCA,
    Running,
    version_of,
)
from gangdash.engine.chain.times import moment
from gangdash.engine.model.observed import ObservedObject

NAMESPACES = ("kai-scheduler", "grove-system", "grove-operator", "dynamo-system", "nvca-system", "nvca-operator")
KAI_GROUPS = frozenset({"scheduling.run.ai", "kai.scheduler"})
GROVE_GROUPS = frozenset({"grove.io", "scheduler.grove.io"})
KAI_CRDS = ("podgroups.scheduling.run.ai", "queues.scheduling.run.ai", "bindrequests.scheduling.run.ai",
            "topologies.kai.scheduler", "schedulingshards.kai.scheduler")  # fmt: skip
GROVE_CRDS = ("podcliquesets.grove.io", "podcliques.grove.io", "podcliquescalinggroups.grove.io",
              "podgangs.scheduler.grove.io")  # fmt: skip
LEASE_GRACE = 900.0
"""Leases are read with every tenth poll only, so one is old once it missed that and its own duration many times."""
INSTALLING = 900.0
WILDCARD_OWNERS = (0, 17, 0)
"""KAI's pod grouper knows DynamoGraphDeployments of any version from this one on."""
TESTED = ({"KAI": "0.16.7", "Grove": "0.1.0-alpha.11", "Dynamo": "1.2.1", "NVCA": "3.2.7"},)
"""Versions that one release of the NVCF stack pins together."""


def _addon_deployments(view: View) -> list[ObservedObject]:
    return [item for item in view.objects("Deployment") if item.meta.namespace in NAMESPACES]


def addons_up(view: View) -> Outcome:
    """V1: every Deployment of the add-ons has all its replicas."""
    found = _addon_deployments(view)
    if view.gap("Deployment"):
        return unknown(view.gap("Deployment"))
    if not found:
        return absent(f"No Deployment in {some(NAMESPACES)}")
    running = [Running(KAI_SCHEDULER, item) for item in found]
    problems = [f"{item.ref}: {item.ready} of {item.wanted} ready" for item in running if item.ready < item.wanted]
    problems += _restarting(view)
    namespaces = sorted({item.meta.namespace for item in found})
    return verdict(problems, f"{counted(len(found), 'Deployment')} in {', '.join(namespaces)} ready")


def _restarting(view: View) -> Iterator[str]:
    for pod in view.live_pods:
        if pod.meta.namespace in NAMESPACES:
            for state in pod.container_states:
                if not state.ready and state.restarts > 2:
                    yield f"Pod/{pod.key}: {state.name} restarted {state.restarts} times"


def kai_parts(view: View) -> Outcome:
    """V10: the seven parts of KAI run."""
    if view.gap("Deployment"):
        return unknown(view.gap("Deployment"))
    found = {part: view.platform.find(part) for part in KAI_PARTS}
    if not any(found.values()):
        return absent("KAI is not installed")
    problems = [f"{part.title} not found" for part, running in found.items() if running is None]
    problems += [f"{part.title} not ready" for part, running in found.items() if running and not running.is_ready]
    return verdict(problems, "All 7 parts of KAI are ready", [item.ref for item in found.values() if item])


def _crds(view: View) -> dict[str, ObservedObject]:
    return {item.meta.name: item for item in view.objects("CustomResourceDefinition")}


def _established(item: ObservedObject) -> bool:
    return any(c.type == "Established" and c.status == "True" for c in item.conditions)


def _crd_problems(view: View, wanted: Iterable[str]) -> list[str]:
    found = _crds(view)
    return [f"{name} {'is not established' if name in found else 'is missing'}" for name in wanted
            if name not in found or not _established(found[name])]  # fmt: skip


def crds_established(view: View) -> Outcome:
    """V12: the CRDs of KAI, and of Grove and Dynamo where they are there at all, are established."""
    if view.gap("CustomResourceDefinition"):
        return unknown(view.gap("CustomResourceDefinition"))
    found = _crds(view)
    ours = [name for name in found if name.startswith("dynamo") and name.endswith(".nvidia.com")]
    if not ours and not any(item.facts.get("spec.group") in KAI_GROUPS | GROVE_GROUPS for item in found.values()):
        return absent("No CRD of KAI, Grove or Dynamo")
    wanted = list(KAI_CRDS)
    if any(item.facts.get("spec.group") in GROVE_GROUPS for item in found.values()):
        wanted += GROVE_CRDS
        if "clustertopologybindings.grove.io" not in found and "clustertopologies.grove.io" not in found:
            wanted.append("clustertopologybindings.grove.io")
    shown = sorted(f"{name} {_served(found[name])}" for name in ours)
    problems = _crd_problems(view, [*wanted, *ours])
    return verdict(problems, f"{len(wanted) + len(ours)} CRDs established" + (f"; {some(shown)}" if shown else ""))


def _served(item: ObservedObject) -> str:
    versions = item.facts.get("spec.versions") or ()
    return "/".join(
        str(v.get("name")) + ("*" if v.get("storage") else "") for v in versions if v.get("served")
    )  # fmt: skip


def webhooks_and_leases(view: View) -> Outcome:
    """V13: webhooks that must answer have a Service behind them, leaders renew their leases."""
    gap = view.gap("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "Service", "Lease")
    if gap:
        return unknown(gap)
    webhooks = [(item, hook) for item in _webhooks(view) for hook in item.facts.get("webhooks") or () if _is_ours(hook)]
    problems = [text for item, hook in webhooks if (text := _unanswered(view, item, hook))]
    leases = [item for item in view.objects("Lease") if item.meta.namespace in NAMESPACES]
    problems += [text for item in leases if (text := _lapsed(view, item))]
    if not webhooks and not leases:
        return absent("No webhook or lease of an add-on")
    good = f"{counted(len(webhooks), 'webhook')} with a Service, {counted(len(leases), 'lease')} held"
    return verdict(problems, f"{good}; certificates are not looked at")


def _webhooks(view: View) -> list[ObservedObject]:
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    return [item for kind in kinds for item in view.objects(kind)]


def _is_ours(hook: dict[str, object]) -> bool:
    service = hook.get("clientConfig")
    named = service.get("service") if isinstance(service, dict) else None
    return isinstance(named, dict) and named.get("namespace") in NAMESPACES


def _unanswered(view: View, item: ObservedObject, hook: dict[str, object]) -> str:
    config = hook.get("clientConfig")
    service = (config.get("service") if isinstance(config, dict) else None) or {}
    namespace, name = str(service.get("namespace", "")), str(service.get("name", ""))
    found = view.chain.object("Service", namespace, name)
    if found is None:
        return f"{item.kind}/{item.meta.name}: Service {namespace}/{name} does not exist"
    selector = found.facts.get("spec.selector") or {}
    pods = [pod for pod in view.live_pods if pod.meta.namespace == namespace
            and selector and all(pod.meta.labels.get(k) == v for k, v in selector.items())]  # fmt: skip
    ready = any((c := pod.condition("Ready")) is not None and c.status == "True" for pod in pods)
    return "" if ready or not selector else f"{item.kind}/{item.meta.name}: no pod behind {namespace}/{name} is ready"


def _lapsed(view: View, lease: ObservedObject) -> str:
    if not lease.facts.get("spec.holderIdentity"):
        return f"Lease {lease.meta.key} has no holder"
    renewed = moment(lease.facts.get("spec.renewTime"))
    if renewed is not None and age(view, renewed) > LEASE_GRACE:
        return f"Lease {lease.meta.key} was renewed {age(view, renewed) / 60:.0f} min ago"
    return ""


def installing(view: View) -> Outcome:
    """V14: no MiniService stays in a phase that should pass."""
    if view.gap("MiniService"):
        return unknown(view.gap("MiniService"))
    found = view.objects("MiniService")
    if not found:
        return absent("No MiniService")
    slow = []
    for item in found:
        phase = item.facts.get("status.phase")
        since = moment(item.facts.get("status.lastPhaseTransitionTime")) or item.meta.created
        if phase in {"CachingInProgress", "Installing", "Installed", "Starting"} and age(view, since) > INSTALLING:
            slow.append(f"{item.meta.name} {phase} for {age(view, since) / 60:.0f} min")
    return verdict(slow, f"{counted(len(found), 'MiniService')}, none stays in a phase")


# Order and consistency


def topology_without_kai(view: View) -> Outcome:
    """C1: topologies and bindings are there, and KAI that reads them is not."""
    names = [item.ref for item in view.objects("ClusterTopologyBinding")]
    names += [f"Topology/{item.name}" for item in view.snapshot.topologies]
    if not names:
        gap = view.gap("Topology", "ClusterTopologyBinding")
        return unknown(gap) if gap else absent("No Topology and no binding")
    if view.is_unserved("PodGroup"):
        return failed(f"{some(names)} without KAI's CRDs", names)
    if view.gap("Deployment"):
        return unknown(view.gap("Deployment"))
    scheduler = view.platform.find(KAI_SCHEDULER)
    if scheduler is None:
        return failed(f"{some(names)} without a KAI scheduler", names)
    return passed(f"{counted(len(names), 'topology object')}, {scheduler.ref} is there", names)


def grove_needs_kai(view: View) -> Outcome:
    """C2: Grove's operator runs, and KAI is up and was there first."""
    if view.gap("Deployment"):
        return unknown(view.gap("Deployment"))
    grove, kai = view.platform.find(GROVE_OPERATOR), view.platform.find(KAI_SCHEDULER)
    if grove is None:
        return absent("Grove is not installed")
    if kai is None or not kai.is_ready:
        return failed(f"{grove.ref} runs, KAI's scheduler {'is not ready' if kai else 'is missing'}", [grove.ref])
    late = _came_later(kai, grove)
    if late:
        return failed(f"KAI came {late} after Grove: pods made before are left to the default scheduler", [kai.ref])
    return passed(f"{kai.ref} is ready and was there before {grove.ref}", [kai.ref, grove.ref])


def _came_later(first: Running, second: Running) -> str:
    """Say by how much the first came after the second, empty where it did not."""
    one, two = first.deployment.meta.created, second.deployment.meta.created
    if one is None or two is None or one <= two + 60:
        return ""
    return f"{(one - two) / 60:.0f} min"


def dynamo_needs_grove(view: View) -> Outcome:
    """C3: Dynamo's operator runs, and Grove is up and was there first."""
    gap = view.gap("Deployment", "CustomResourceDefinition")
    if gap:
        return unknown(gap)
    dynamo, grove = view.platform.find(DYNAMO_OPERATOR), view.platform.find(GROVE_OPERATOR)
    if dynamo is None:
        return absent("Dynamo is not installed")
    problems = _crd_problems(view, GROVE_CRDS)
    if grove is None or not grove.is_ready:
        problems.append("Grove's operator is not ready" if grove else "Grove's operator is missing")
    elif _came_later(grove, dynamo):
        problems.append(f"Grove came {_came_later(grove, dynamo)} after Dynamo, which looks for it at its start")
    return verdict(problems, "Grove is there and was there before Dynamo", [dynamo.ref])


def orchestrator(view: View) -> Outcome:
    """C10: Dynamo hands multi-node graphs to Grove. Its configuration is not read; what it made is."""
    gap = view.gap("DynamoGraphDeployment", "PodCliqueSet")
    if gap:
        return unknown(gap)
    graphs = view.objects("DynamoGraphDeployment")
    if not graphs:
        return absent("No DynamoGraphDeployment")
    refused = {"selected_workload_provider_unavailable", "no_multinode_orchestrator_available"}
    off = [item.ref for item in graphs if any(c.type == "Ready" and c.reason in refused for c in item.conditions)]
    if off:
        return failed(f"{some(off)}: Dynamo has no orchestrator for it", off)
    made = [item.ref for item in graphs if view.chain.sets_of(item)]
    if made:
        return passed(f"{counted(len(made), 'graph')} of {len(graphs)} handed to Grove")
    return unknown("No graph was handed to Grove, and Dynamo's configuration is not read")


def owner_versions(view: View) -> Outcome:
    """C13: KAI before 0.17.0 knows graphs of v1alpha1 only and groups the others pod by pod."""
    if view.gap("DynamoGraphDeployment", "PodCliqueSet"):
        return unknown(view.gap("DynamoGraphDeployment", "PodCliqueSet"))
    newer = [
        item.ref
        for item in view.objects("PodCliqueSet")
        for ref in item.meta.owners
        if ref.kind == "DynamoGraphDeployment" and ref.api_version.endswith(("/v1beta1", "/v1beta2"))
    ]
    if not newer:
        return absent("No PodCliqueSet is owned by a graph of v1beta1")
    kai = view.platform.find(KAI_SCHEDULER)
    found = version(version_of(kai.deployment)) if kai else None
    if kai is None or found is None:
        return unknown("KAI's version could not be read")
    text = f"KAI {kai.version}, {counted(len(newer), 'set')} owned by graphs of v1beta1"
    return passed(text) if found >= WILDCARD_OWNERS else failed(text, newer)


def tested_versions(view: View) -> Outcome:
    """C20: the versions that run were released to run together."""
    if view.gap("Deployment"):
        return unknown(view.gap("Deployment"))
    parts = {"KAI": KAI_SCHEDULER, "Grove": GROVE_OPERATOR, "Dynamo": DYNAMO_OPERATOR, "NVCA": NVCA}
    shown = {name: running.version for name, part in parts.items() if (running := view.platform.find(part))}
    found = {name: text.removeprefix("v") for name, text in shown.items() if version(text)}
    if len(shown) < 2:
        return absent("Fewer than two add-ons run")
    text = ", ".join(f"{name} {tag or 'without a version'}" for name, tag in shown.items())
    if len(found) < len(shown):
        return unknown(f"Not every version could be read: {text}")
    known = any(all(found[name] == row[name] for name in found) for row in TESTED)
    return passed(f"{text} were released together") if known else failed(f"{text} are not a set known here")


CHECKS = (
    Check("V1", "Add-ons are up", Severity.CRITICAL,
          "Look at the events and logs of the Deployments named.", addons_up),
    Check("V10", "The seven parts of KAI run", Severity.CRITICAL,
          "Look at kai-operator and at Config/kai-config.", kai_parts),
    Check("V12", "CRDs are established", Severity.CRITICAL,
          "Install or upgrade the CRDs of the add-on named.", crds_established),
    Check("V13", "Webhooks answer, leases are held", Severity.CRITICAL,
          "Bring the operator behind the webhook back; until then pods and sets are refused.", webhooks_and_leases),
    Check("V14", "MiniServices go on", Severity.WARNING,
          "Read the logs of NVCA's, Grove's and Dynamo's operators; open the gangs of its namespace.", installing),
    Check("C1", "Topologies have KAI to read them", Severity.CRITICAL,
          "Install KAI before the topology add-on.", topology_without_kai),
    Check("C2", "Grove has KAI", Severity.CRITICAL,
          "Bring KAI up; recreate workloads that were made before it.", grove_needs_kai),
    Check("C3", "Dynamo has Grove", Severity.CRITICAL,
          "Install Grove, then restart Dynamo's operator.", dynamo_needs_grove),
    Check("C10", "Dynamo hands graphs to Grove", Severity.CRITICAL,
          "Set orchestrators.grove.enabled in Dynamo's operator and restart it.", orchestrator),
    Check("C13", "KAI knows the graphs' version", Severity.CRITICAL,
          "Upgrade KAI to 0.17.0 or later; until then such pods are gangs of one.", owner_versions),
    Check("C20", "Versions were released together", Severity.INFO,
          "Compare with the release notes of the stack.", tested_versions),
)  # fmt: skip
