"""Do topologies, bindings and node labels agree, and has one domain room? V4 to V7, V22, C8, C9, C11, C12, C18."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from apps.checks.rules.base import (
    CLIQUE_LABEL,
    HOSTNAME,
    Check,
    Outcome,
    Severity,
    View,
    absent,
    counted,
    failed,
    gpus_of,
    passed,
    pod_gpus,
    some,
    unknown,
    verdict,
)
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import PodGroup, TopologyConstraint

INSTANCE_TYPE = "nvca.nvcf.nvidia.io/instance-type"
PRESENT, PRODUCT = "nvidia.com/gpu.present", "nvidia.com/gpu.product"
KAI = "kai-scheduler"


def _needs_cliques(view: View) -> bool:
    levels = {level.node_label for topology in view.snapshot.topologies for level in topology.levels}
    return CLIQUE_LABEL in levels or bool(view.objects("ComputeDomain"))


def clique_labels(view: View) -> Outcome:
    """V4: GPU nodes say which NVLink clique they belong to, where something asks for one."""
    nodes = view.gpu_nodes
    cliques = Counter(node.meta.labels.get(CLIQUE_LABEL, "") for node in nodes)
    if not nodes or (not _needs_cliques(view) and set(cliques) <= {""}):
        return absent("Nothing asks for an NVLink clique")
    bare = [node.name for node in nodes if CLIQUE_LABEL not in node.meta.labels]
    if bare:
        return failed(f"{len(bare)} of {len(nodes)} GPU nodes have no {CLIQUE_LABEL}: {some(bare)}", bare[:20])
    ready = Counter(n.meta.labels[CLIQUE_LABEL] for n in nodes if not n.unschedulable)
    shown = [f"{name} {ready[name]} of {count} nodes open" for name, count in sorted(cliques.items())]
    return passed(some(shown))


def topologies_sound(view: View) -> Outcome:
    """V5: levels are there, each once, the host last; a binding and its Topology have the same levels in one order."""
    gap = view.gap("Topology")
    if gap:
        return unknown(gap)
    if not view.snapshot.topologies:
        return absent("No Topology")
    problems: list[str] = []
    for topology in view.snapshot.topologies:
        labels = [level.node_label for level in topology.levels]
        if not labels or len(set(labels)) < len(labels):
            problems.append(f"Topology {topology.name} has {'a level twice' if labels else 'no level'}")
        if HOSTNAME in labels[:-1]:
            problems.append(f"Topology {topology.name} has {HOSTNAME} above another level")
        problems += _other_levels(view, topology.name, labels)
    shown = [f"{t.name}: {' > '.join(level.node_label for level in t.levels)}" for t in view.snapshot.topologies]
    return verdict(problems, some(shown, "; "))


def _other_levels(view: View, name: str, labels: Sequence[str]) -> Iterator[str]:
    for binding in view.objects("ClusterTopologyBinding"):
        keys = [str(level.get("key")) for level in binding.facts.get("spec.levels") or ()]
        if _topology_of(binding) == name and keys != list(labels):
            yield f"{binding.ref} has the levels {' > '.join(keys)}, Topology {name} has {' > '.join(labels)}"


def _topology_of(binding: ObservedObject) -> str:
    """Return the Topology that a binding means for KAI: the one it refers to, else the one of its own name."""
    for entry in binding.facts.get("spec.schedulerTopologyBindings") or ():
        if entry.get("schedulerName") == KAI and entry.get("topologyReference"):
            return str(entry["topologyReference"])
    return binding.meta.name


def bindings_in_sync(view: View) -> Outcome:
    """V6: each binding's Topology exists and has not drifted from it. The condition is good when False."""
    gap = view.gap("ClusterTopologyBinding", "Topology")
    if gap:
        return unknown(gap)
    bindings = view.objects("ClusterTopologyBinding")
    if not bindings:
        return absent("No ClusterTopologyBinding")
    known = {topology.name for topology in view.snapshot.topologies}
    problems = []
    for item in bindings:
        name = _topology_of(item)
        if name not in known:
            problems.append(f"{item.ref} means Topology {name}, which does not exist")
        drift = next((c for c in item.conditions if c.type == "SchedulerTopologyDrift"), None)
        if drift is not None and drift.status != "False":
            problems.append(f"{item.ref}: {drift.message or drift.reason or 'drifted'}")
        problems += [
            f"{item.ref}: {status.get('message') or 'not in sync'}"
            for status in item.facts.get("status.schedulerTopologyStatuses") or ()
            if status.get("inSync") is False
        ]
    return verdict(problems, f"{counted(len(bindings), 'binding')} in sync", [item.ref for item in bindings])


# Room in one domain


def room_in_one_domain(view: View) -> Outcome:
    """V7: some domain of the level asked for has enough nodes with enough free GPUs for all that waits of a gang."""
    if view.gap("Pod", "Node", "PodGroup"):
        return unknown(view.gap("Pod", "Node", "PodGroup"))
    asked = [(group, pods, level) for group, pods in view.waiting_gangs() if (level := _required(group))]
    if not asked:
        return absent("No waiting gang asks for one domain")
    free = _free_gpus(view)
    problems = []
    for group, pods, level in asked:
        short = _shortfall(view, free, pods, level)
        if short:
            problems.append(f"{group.key}: {short}")
    good = f"{counted(len(asked), 'waiting gang')}: each finds a domain with enough free GPUs"
    return verdict(problems, f"{good}; the gang's page has the whole answer")


def _required(group: PodGroup) -> str:
    return group.topology.required_level if group.topology is not None else ""


def _free_gpus(view: View) -> dict[str, int]:
    free = {node.name: gpus_of(node) for node in view.gpu_nodes if not node.unschedulable}
    for pod in view.live_pods:
        if pod.node_name in free:
            free[pod.node_name] -= pod_gpus(pod)
    return free


def _shortfall(view: View, free: dict[str, int], pods: list[Pod], level: str) -> str:
    """Say what the best domain lacks, counting GPUs alone; empty where one has enough."""
    asked = [count for pod in pods if (count := pod_gpus(pod))]
    each = max(asked, default=0)
    if not each:
        return ""
    slots: dict[str, int] = defaultdict(int)
    for node in view.gpu_nodes:
        name = node.meta.labels.get(level)
        if name is not None and node.name in free:
            slots[name] += max(free[node.name], 0) // each
    best = max(sorted(slots), key=lambda name: slots[name], default="")
    if not best:
        return f"no open GPU node has the label {level}"
    if slots[best] >= len(asked):
        return ""
    asks = f"{counted(len(asked), 'pod')} of {counted(each, 'GPU')}"
    return f"{asks} waiting, the best {level} ({best}) has room for {slots[best]}"


# Labels


def node_labels(view: View) -> Outcome:
    """V22: GPU nodes carry the labels by which workloads choose them."""
    if not view.gpu_nodes:
        gap = view.gap("Node")
        return unknown(gap) if gap else absent("No node offers a GPU")
    wanted = [PRESENT, PRODUCT, *([INSTANCE_TYPE] if view.is_nvcf else [])]
    problems = []
    for label in wanted:
        bare = [node.name for node in view.gpu_nodes if label not in node.meta.labels]
        if bare:
            problems.append(f"{len(bare)} of {len(view.gpu_nodes)} GPU nodes have no {label}: {some(bare)}")
    return verdict(problems, f"{counted(len(view.gpu_nodes), 'GPU node')} with {', '.join(wanted)}")


def levels_labelled(view: View) -> Outcome:
    """C11: each level of each Topology is a label of some node."""
    gap = view.gap("Topology", "Node")
    if gap:
        return unknown(gap)
    levels = [(topology.name, level.node_label) for topology in view.snapshot.topologies for level in topology.levels]
    if not levels:
        return absent("No Topology")
    known = {label for node in view.snapshot.nodes for label in node.meta.labels}
    problems = [f"no node has {label} (Topology {name})" for name, label in levels if label not in known]
    partly = [text for name, label in levels if label in known and (text := _partly(view, name, label))]
    shown = f"{counted(len(levels), 'level')} with labelled nodes"
    return verdict(problems, f"{shown}; {some(partly, '; ')}" if partly else shown)


def _partly(view: View, name: str, label: str) -> str:
    bare = [node.name for node in view.gpu_nodes if label not in node.meta.labels]
    return f"{counted(len(bare), 'GPU node')} outside every {label} of {name}" if bare else ""


def topologies_exist(view: View) -> Outcome:
    """C12: each Topology that a PodGroup or one of its subgroups names exists."""
    gap = view.gap("Topology", "PodGroup")
    if gap:
        return unknown(gap)
    known = {topology.name for topology in view.snapshot.topologies}
    named = [(group, name) for group in view.chain.podgroups.values() for name in _named(group)]
    if not named:
        return absent("No PodGroup names a Topology")
    lost = sorted({f"PodGroup {group.key} names {name}" for group, name in named if name not in known})
    if not lost:
        return passed(f"{counted(len({name for _, name in named}), 'Topology object')} named, all exist")
    hint = _binding_hint(view, {name for _, name in named if name not in known})
    return failed(some(lost, "; ") + hint, sorted({f"PodGroup/{g.key}" for g, name in named if name not in known})[:20])


def _named(group: PodGroup) -> Iterator[str]:
    found: list[TopologyConstraint | None] = [group.topology, *(sub.topology for sub in group.sub_groups)]
    for constraint in found:
        if constraint is not None and constraint.topology:
            yield constraint.topology


def _binding_hint(view: View, names: set[str]) -> str:
    """Say where the name is a binding's: older Grove passes it on as if it were the Topology's."""
    bindings = {item.meta.name: item for item in view.objects("ClusterTopologyBinding")}
    meant = [
        f"{name} is a binding, its Topology is {_topology_of(bindings[name])}" for name in sorted(names & {*bindings})
    ]
    return f" ({some(meant, '; ')})" if meant else ""


# Grove


def awareness(view: View) -> Outcome:
    """C8: Grove carries topologies out where there is a binding. Its configuration is not read; sets tell."""
    gap = view.gap("ClusterTopologyBinding", "PodCliqueSet")
    if gap:
        return unknown(gap)
    bindings = view.objects("ClusterTopologyBinding")
    off = [
        item.ref
        for item in view.objects("PodCliqueSet")
        if any(c.reason == "TopologyAwareSchedulingDisabled" for c in item.conditions)
    ]
    if off:
        return failed(f"{some(off)} asks for a topology, and Grove's topology awareness is off", off)
    if not bindings:
        return absent("No ClusterTopologyBinding")
    named = [gang.ref for gang in view.objects("PodGang") if gang.meta.annotations.get("grove.io/topology-name")]
    if named:
        return passed(f"{counted(len(named), 'PodGang')} with a topology name")
    return unknown("No set asks for a topology, and Grove's configuration is not read")


def scheduler_profile(view: View) -> Outcome:
    """C9: Grove takes KAI for the scheduler of its gangs, as their pods do."""
    gap = view.gap("PodGang", "Pod")
    if gap:
        return unknown(gap)
    gangs = view.objects("PodGang")
    if not gangs:
        return absent("No PodGang")
    apart = []
    for gang in gangs:
        told = gang.meta.labels.get("grove.io/scheduler-name", "")
        names = {pod.scheduler_name for pod in view.chain.members(gang)}
        if told and told not in view.scheduler_names and names & view.scheduler_names:
            apart.append(f"{gang.ref} is for {told}, its pods for {some(sorted(names))}")
    return verdict(apart, f"{counted(len(gangs), 'PodGang')} for the scheduler of their pods")


def compute_domains(view: View) -> Outcome:
    """C18: a namespace has one ComputeDomain, and its channel's claim template exists."""
    gap = view.gap("ComputeDomain", "ResourceClaimTemplate")
    if gap:
        return unknown(gap)
    domains = view.objects("ComputeDomain")
    if not domains:
        return absent("No ComputeDomain")
    problems = []
    for namespace, count in sorted(Counter(item.meta.namespace for item in domains).items()):
        if count > 1:
            problems.append(f"namespace {namespace} has {count} ComputeDomains")
    for item in domains:
        template = item.facts.get("spec.channel.resourceClaimTemplate.name")
        if template and view.chain.object("ResourceClaimTemplate", item.meta.namespace, str(template)) is None:
            problems.append(f"{item.ref}: ResourceClaimTemplate {template} does not exist")
    return verdict(problems, f"{counted(len(domains), 'ComputeDomain')}, one a namespace, with their templates")


CHECKS = (
    Check("V4", "GPU nodes carry their NVLink clique", Severity.WARNING,
          "Install or repair the GPU DRA driver, which sets nvidia.com/gpu.clique.", clique_labels),
    Check("V5", "Topologies are sound", Severity.WARNING,
          "Levels cannot be changed: delete the Topology and create it with the right levels.", topologies_sound),
    Check("V6", "Topology bindings are in sync", Severity.WARNING,
          "Create the Topology that the binding means, or correct its reference.", bindings_in_sync),
    Check("V7", "Waiting gangs find room in one domain", Severity.WARNING,
          "Open the gang's page: it names who holds the best domain and what would free it.", room_in_one_domain),
    Check("V22", "GPU nodes carry their labels", Severity.WARNING,
          "Look at GPU feature discovery and at NVCA's node labelling.", node_labels),
    Check("C8", "Grove carries topologies out", Severity.WARNING,
          "Set topologyAwareScheduling.enabled in Grove's configuration and restart it.", awareness),
    Check("C9", "Grove's gangs are for KAI", Severity.WARNING,
          "Name kai-scheduler in the set, or make it Grove's default profile.", scheduler_profile),
    Check("C11", "Topology levels are node labels", Severity.WARNING,
          "Label the nodes, or take the level out of the Topology.", levels_labelled),
    Check("C12", "Named topologies exist", Severity.CRITICAL,
          "Create a Topology of that name, or upgrade Grove, which once passed on the binding's name.",
          topologies_exist),
    Check("C18", "ComputeDomains are whole", Severity.WARNING,
          "Leave one ComputeDomain a namespace; see that its channel's claim template exists.", compute_domains),
)  # fmt: skip
