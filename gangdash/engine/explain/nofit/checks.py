"""Checks that keep the step off nodes with room: selectors, taints, affinity, volumes, claims, ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from gangdash.engine.explain.build import first, named
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.nodestate import taint_text
from gangdash.engine.explain.nofit.case import NO_WAIT, Case, empty_lifts, need_per_pod, total_need
from gangdash.engine.explain.nofit.shapes import no_device, numa_split
from gangdash.engine.explain.refusal import blocking_taints, is_state_taint
from gangdash.engine.explain.room import NOTHING, Room, reason_lift
from gangdash.engine.identifiers import ConstraintId, NodeReason, Unit
from gangdash.engine.model.pod import Pod
from gangdash.engine.session import GPU, NodeState, TaskState
from gangdash.engine.verdict import Amount, Constraint, Finding, ReasonCode


def _pods_of(room: Room, reason: NodeReason) -> list[TaskState]:
    """Return the pods of the step that some node refuses for the reason."""
    found = []
    for index, item in enumerate(room.classes):
        if any(reason in reasons for reasons in room.reasons[index]):
            found.extend(item.tasks)
    return found or room.tasks


def _refused_with_room(case: Case, reason: NodeReason) -> list[NodeState]:
    """Return the nodes that the reason refuses and that could take a pod without it."""
    room, lifts = case.room, case.binding | {reason_lift(reason)}
    return [
        node
        for node in room.nodes
        if any(
            reason in room.reasons[i][node.index]
            and room.allows(i, node, lifts)
            and room.capacity(i, node.index, tuple(room.supply(node, lifts)), lifts)
            for i in range(len(room.classes))
        )
    ]


def _selector(case: Case) -> Finding:
    room = case.room
    tasks = _pods_of(room, NodeReason.SELECTOR)
    index = next(i for i, item in enumerate(room.classes) if item.task in tasks)
    matching = [node for node in room.nodes if NodeReason.SELECTOR not in room.reasons[index][node.index]]
    text = selector_text(tasks[0].pod)
    fit = room.fit_count([node.index for node in matching], empty_lifts(room) if case.never else NOTHING)
    return Finding(
        ReasonCode.SELECTOR_MISMATCH,
        form="none" if not matching else "" if case.never else "now",
        facts={
            "pods": len(tasks),
            "selector": text,
            "nodes": len(matching),
            "examples": first(node.name for node in matching),
            "each": need_per_pod(tasks[0]),
            "fit": fit,
        },
        binding=(
            named(
                ConstraintId.NODE_SELECTOR,
                tasks[0].name,
                text,
                ", ".join(first(node.name for node in matching)) or "no node",
                f"Pod/{tasks[0].key}",
            ),
        ),
        waiting=NO_WAIT if not matching else None,
    )


def selector_text(pod: Pod) -> str:
    """Return the pod's node selector, or its first node affinity term, as people write it."""
    if pod.node_selector:
        return ", ".join(f"{key}={value}" for key, value in sorted(pod.node_selector.items()))
    terms = pod.affinity.node_required if pod.affinity is not None and pod.affinity.node_required else ()
    for term in terms:
        parts = [
            f"{r.key} {r.operator}" + (f" {'|'.join(r.values[:3])}" if r.values else "")
            for r in (*term.match_expressions, *term.match_fields)
        ]
        if parts:
            return ", ".join(parts)
    return "its selector"


def _taint(case: Case) -> Finding:
    room = case.room
    nodes = _refused_with_room(case, NodeReason.TAINT) or [
        node for node in room.nodes if NodeReason.TAINT in room.reasons[0][node.index]
    ]
    tasks = _pods_of(room, NodeReason.TAINT)
    taints = Counter(
        taint_text(taint)
        for node in nodes
        for taint in blocking_taints(tasks[0], node.node)
        if not is_state_taint(taint)
    )
    taint = taints.most_common(1)[0][0] if taints else "unknown"
    asked, offered = total_need(room), sum(node.allocatable[GPU] for node in nodes)
    return Finding(
        ReasonCode.TAINT_NOT_TOLERATED,
        facts={
            "nodes": len(nodes),
            "taint": taint,
            "examples": first(node.name for node in nodes),
            "pods": len(tasks),
            "need": Amount(asked, Unit.GPU),
            "have": Amount(offered, Unit.GPU),
        },
        binding=(
            named(
                ConstraintId.NODE_TAINT,
                ", ".join(first(n.name for n in nodes)),
                "a toleration",
                taint,
                f"Pod/{tasks[0].key}",
            ),
        ),
        waiting=NO_WAIT,
    )


def _pod_affinity(case: Case) -> Finding:
    room = case.room
    tasks = _pods_of(room, NodeReason.POD_AFFINITY)
    nodes = _refused_with_room(case, NodeReason.POD_AFFINITY)
    affinity = tasks[0].pod.affinity
    terms = (*affinity.pod_required, *affinity.anti_required) if affinity is not None else ()
    key = terms[0].topology_key if terms else "another pod's rule"
    kind = "affinity" if affinity is not None and affinity.pod_required else "anti-affinity"
    return Finding(
        ReasonCode.POD_AFFINITY,
        facts={
            "kind": kind,
            "key": key,
            "nodes": len(nodes),
            "examples": first(n.name for n in nodes),
            "pods": len(tasks),
        },
        binding=(
            named(
                ConstraintId.NODE_POD_AFFINITY, tasks[0].name, f"pod {kind} on {key}", "no node", f"Pod/{tasks[0].key}"
            ),
        ),
    )


def _volume(case: Case) -> Finding:
    room = case.room
    tasks = _pods_of(room, NodeReason.VOLUME)
    nodes = _refused_with_room(case, NodeReason.VOLUME)
    volumes = tasks[0].pod.volumes
    claim = (*volumes.claims, *volumes.ephemeral, "its volume")[0]
    return Finding(
        ReasonCode.VOLUME,
        facts={"claim": claim, "nodes": len(nodes), "examples": first(n.name for n in nodes), "pods": len(tasks)},
        binding=(
            named(
                ConstraintId.NODE_VOLUME,
                claim,
                "usable on a node with room",
                "not usable there",
                f"PersistentVolumeClaim/{tasks[0].namespace}/{claim}",
            ),
        ),
    )


def _claim(case: Case) -> Finding:
    room = case.room
    tasks = _pods_of(room, NodeReason.CLAIM)
    without = [node for node in room.nodes if NodeReason.CLAIM in room.reasons[0][node.index]]
    fit = room.fit_count(range(len(room.nodes)))
    classes = sorted(_device_classes(case.gang, tasks[0]))
    name = classes[0] if classes else "its claim"
    return Finding(
        ReasonCode.CLAIM_UNALLOCATABLE,
        facts={
            "fit": fit,
            "pods": len(room.tasks),
            "device_class": name,
            "without": len(without),
            "examples": first(node.name for node in without),
        },
        binding=(
            Constraint(
                ConstraintId.NODE_CLAIM, name, len(room.tasks), fit, Unit.PODS, "ResourceSlices and claims in use"
            ),
        ),
    )


def _device_classes(gang: Gang, task: TaskState) -> set[str]:
    """Return the device classes that the pod's claims ask for, from the claims made and from their templates."""
    namespace = task.namespace
    found: set[str] = set()
    claims = {claim.meta.key: claim for claim in gang.context.snapshot.resource_claims}
    for pod_claim in task.pod.claims:
        made = claims.get(f"{namespace}/{pod_claim.claim or pod_claim.resolved or ''}")
        if made is not None:
            found.update(request.device_class for request in made.requests if request.device_class)
        template = gang.context.object("ResourceClaimTemplate", namespace, pod_claim.template or "")
        for request in (template.facts.get("spec.spec.devices.requests") or ()) if template is not None else ():
            exact = request.get("exactly") or request
            found.add(str(exact.get("deviceClassName", "")))
    return found - {""}


def _ports(case: Case) -> Finding:
    room = case.room
    tasks = _pods_of(room, NodeReason.PORTS)
    nodes = _refused_with_room(case, NodeReason.PORTS)
    ports = sorted({port.port for container in tasks[0].pod.containers for port in container.host_ports})
    told = ", ".join(str(port) for port in ports)
    return Finding(
        ReasonCode.CONFLICTING_CONSTRAINTS,
        form="ports",
        facts={"ports": told, "nodes": len(nodes), "examples": first(node.name for node in nodes)},
        binding=(named(ConstraintId.NODE_PORTS, tasks[0].name, told, "taken", f"Pod/{tasks[0].key}"),),
    )


def _other(case: Case) -> Finding:
    room = case.room
    tasks = room.tasks
    return Finding(
        ReasonCode.CONFLICTING_CONSTRAINTS,
        facts={"constraints": first(lift.what for lift in case.binding if lift.what)},
        binding=(
            named(ConstraintId.NODE_RESOURCE, tasks[0].name, "a node that takes it", "none", f"Pod/{tasks[0].key}"),
        ),
    )


CHECKS: Mapping[NodeReason, Callable[[Case], Finding]] = {
    NodeReason.SELECTOR: _selector,
    NodeReason.TAINT: _taint,
    NodeReason.VOLUME: _volume,
    NodeReason.CLAIM: _claim,
    NodeReason.POD_AFFINITY: _pod_affinity,
    NodeReason.PORTS: _ports,
    NodeReason.GPU_SHAPE: no_device,
    NodeReason.RESOURCE: _other,
    NodeReason.NUMA: numa_split,
}
"""In the order in which a finding is put in front of the others."""
