"""Words' facts for "no placement exists": never, because something is too small, or not now, because it is in use.

Each builder takes the smallest set of things in the way and tells the numbers behind one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from gangdash.engine.explain.build import first, named, spoken
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.holders import holders_on, usable_nodes
from gangdash.engine.explain.nodestate import taint_text
from gangdash.engine.explain.refusal import blocking_taints, is_state_taint
from gangdash.engine.explain.room import DOMAIN, NOTHING, STATE_REASONS, Class, Domain, Lift, Lifts, Room, reason_lift
from gangdash.engine.identifiers import ConstraintId, NodeReason, Unit
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.resources import is_counted_whole
from gangdash.engine.session import GPU, NodeState, RequestKind, TaskState
from gangdash.engine.verdict import Amount, Constraint, FactValue, Finding, ReasonCode, Waiting

Facts = dict[str, FactValue]
_NO_WAIT = Waiting(helps="no")
_UNITS = {"cpu": Unit.MILLICORES, "memory": Unit.BYTES, "gpu": Unit.GPU, "pods": Unit.PODS}
_NODE_IDS = {
    "gpu": ConstraintId.NODE_GPU,
    "cpu": ConstraintId.NODE_CPU,
    "memory": ConstraintId.NODE_MEMORY,
    "pods": ConstraintId.NODE_POD_SLOTS,
}
_LEVEL_WORDS = {"kubernetes.io/hostname": "node", "nvidia.com/gpu.clique": "NVLink domain"}
_CLUSTER_IDS = {"gpu": ConstraintId.CLUSTER_GPU, "cpu": ConstraintId.CLUSTER_CPU, "memory": ConstraintId.CLUSTER_MEMORY}


def findings(gang: Gang, room: Room, binding: Lifts, *, never: bool) -> Iterator[Finding]:
    """Yield one finding per thing in the way, the one that an admin should see first in front."""
    checks = [reason for reason in _CHECKS if reason_lift(reason) in binding]
    for reason in checks:
        yield _CHECKS[reason](gang, room, binding)
    amounts = [lift.what for lift in sorted(binding) if lift.kind in {"busy", "size"}]
    if DOMAIN in binding:
        yield _domain(gang, room, never=never)
    elif amounts and not never:
        yield from _busy(gang, room, amounts)
    elif amounts:
        yield _too_small(room, amounts)


def amount(room: Room, slot: int, value: float) -> Amount:
    """Return an amount of a session's resource in the documents' unit."""
    name = room.slot_name(slot)
    unit = _UNITS.get(name, Unit.COUNT)
    if unit is Unit.COUNT and not is_counted_whole(name):
        value /= 1000
    return Amount(value, unit, name if unit is Unit.COUNT else "")


def need_per_pod(room: Room, task: TaskState) -> Amount:
    """Return what a pod asks, in the resource that matters most: GPUs, a MIG profile, else CPU."""
    if task.request[GPU]:
        return Amount(task.request[GPU], Unit.GPU)
    if task.gpu.memory:
        return Amount(task.gpu.memory, Unit.GPU_MEMORY)
    for name, count in sorted(task.gpu.mig.items()):
        return Amount(count, Unit.COUNT, name)
    return Amount(task.request[0], Unit.MILLICORES)


def total_need(room: Room, slot: int = GPU) -> float:
    return sum(task.request[slot] for task in room.tasks)


def _largest(room: Room) -> Class:
    """Return the class whose pods ask for most, GPUs before CPU."""
    return max(room.classes, key=lambda item: (item.task.request[GPU], item.task.request[0]))


# Too small for ever


def _too_small(room: Room, amounts: list[str]) -> Finding:
    slot = room.session.layout.index[amounts[0]]
    empty = _empty(room)
    item = max(room.classes, key=lambda c: c.task.request[slot])
    index = room.classes.index(item)
    usable = [node for node in room.nodes if room.allows(index, node, empty)]
    if not any(room.capacity(index, node.index, tuple(room.supply(node, empty)), empty) for node in usable):
        return _node_too_small(room, item, slot, usable, empty)
    return _cluster_too_small(room, slot, usable, empty)


def _empty(room: Room) -> Lifts:
    """Return the lifts under which the cluster is empty and repaired."""
    lifts = {Lift("busy", name) for name in room.session.layout.names}
    return frozenset(lifts | {reason_lift(reason) for reason in STATE_REASONS})


def _node_too_small(room: Room, item: Class, slot: int, usable: list[NodeState], empty: Lifts) -> Finding:
    need = item.task.request[slot]
    largest = max((room.supply(node, empty)[slot] for node in usable), default=0.0)
    together = need <= largest
    pool = [node for node in usable if _has_the_rest(room, item.task, node, slot, empty)] if together else usable
    best = max(pool, key=lambda node: (room.supply(node, empty)[slot], -node.index), default=None)
    have = room.supply(best, empty)[slot] if best is not None else 0.0
    name = best.name if best is not None else "no node"
    told, there = amount(room, slot, need), amount(room, slot, have)
    return Finding(
        ReasonCode.NODE_TOO_SMALL,
        form="together" if together else "" if have > 0 else "none",
        facts={"need": told, "node": name, "have": there, "nodes": len(usable), "pod": item.task.name},
        binding=(
            Constraint(
                _NODE_IDS.get(room.slot_name(slot), ConstraintId.NODE_RESOURCE),
                name,
                told.value,
                there.value,
                told.unit,
                f"Node/{name} allocatable",
            ),
        ),
        waiting=_NO_WAIT,
    )


def _has_the_rest(room: Room, task: TaskState, node: NodeState, slot: int, lifts: Lifts) -> bool:
    """Whether the node has enough of everything but one resource."""
    supply = room.supply(node, lifts)
    return all(need <= supply[i] for i, need in enumerate(task.request) if i != slot)


def _cluster_too_small(room: Room, slot: int, usable: list[NodeState], empty: Lifts) -> Finding:
    fit = room.fit_count([node.index for node in usable], empty)
    each = need_per_pod(room, _largest(room).task)
    need = total_need(room, slot)
    have = sum(room.supply(node, empty)[slot] for node in usable)
    told = amount(room, slot, need)
    return Finding(
        ReasonCode.CLUSTER_TOO_SMALL,
        form="" if len(room.classes) == 1 else "sum",
        facts={
            "pods": len(room.tasks),
            "each": each,
            "nodes": len(usable),
            "fit": fit,
            "need": told,
            "have": amount(room, slot, have),
        },
        binding=(
            Constraint(
                _CLUSTER_IDS.get(room.slot_name(slot), ConstraintId.CLUSTER_RESOURCE),
                "nodes it may use",
                told.value,
                amount(room, slot, have).value,
                told.unit,
                f"allocatable of {len(usable)} nodes",
            ),
            Constraint(
                ConstraintId.CLUSTER_NODES, "pods that fit, empty", len(room.tasks), fit, Unit.PODS, "exact search"
            ),
        ),
        waiting=_NO_WAIT,
    )


# Topology


def _domain(gang: Gang, room: Room, *, never: bool) -> Finding:
    domains, classes = _concerned(room)
    lifts = _empty(room) if never else NOTHING
    counts = {domain: room.fit_count(domain.nodes, lifts) for domain in domains}
    best = max(domains, key=lambda d: (counts[d], _gpus(room, d, lifts), d.path), default=None)
    uses_gpu = any(item.task.request[GPU] for item in room.classes)
    wanted = [task for index in classes for task in room.classes[index].tasks]
    need = sum(task.request[GPU] for task in wanted)
    have = _gpus(room, best, lifts) if best is not None else 0.0
    by_gpu = uses_gpu and have < need
    could = sum(1 for domain in domains if room.fits_on(domain.nodes, _empty(room)))
    facts: Facts = {
        "need": Amount(need, Unit.GPU),
        "have": Amount(have, Unit.GPU),
        "pods": len(wanted),
        "fit": min(counts[best], len(wanted)) if best is not None else 0,
        "each": need_per_pod(room, wanted[0]),
        "level": _level(room),
        "domain": best.name if best is not None else "none",
        "domains": len(domains),
        "could": could,
    }
    binding = [_domain_constraint(room, best, need, have)] if by_gpu else []
    binding.append(_domain_pods(room, best, len(wanted), counts[best] if best is not None else 0))
    claim = _compute_domain(gang, room)
    form = "none" if best is None else "pinned" if room.is_pinned and not never else "" if by_gpu else "pods"
    if never and claim:
        form, facts["claim"] = "claim", claim
    return Finding(
        ReasonCode.DOMAIN_TOO_SMALL if never else ReasonCode.DOMAIN_BUSY,
        form=form,
        facts=facts,
        binding=tuple(binding),
        waiting=_NO_WAIT if never else Waiting(),
        holders=() if never or best is None else holders_on(gang, room),
    )


def _concerned(room: Room) -> tuple[list[Domain], list[int]]:
    """Return the domains to choose from and the classes that must share one."""
    if room.domains is not None:
        return room.domains, list(range(len(room.classes)))
    for classes, domains, _ in room.part_domains():
        if not any(_part_fits(room, classes, domain) for domain in domains):
            return domains, classes
    classes, domains, _ = room.part_domains()[0]
    return domains, classes


def _part_fits(room: Room, classes: list[int], domain: Domain) -> bool:
    wanted = sum(len(room.classes[index].tasks) for index in classes)
    return room.fit_count(domain.nodes) >= wanted


def _level(room: Room) -> str:
    """Return the level as people say it: the last part of the node label."""
    return _LEVEL_WORDS.get(room.level) or room.level.rsplit("/", 1)[-1] or room.level


def _gpus(room: Room, domain: Domain, lifts: Lifts) -> float:
    index = room.classes.index(_largest(room))
    return sum(
        max(room.supply(room.nodes[n], lifts)[GPU], 0) for n in domain.nodes if room.allows(index, room.nodes[n], lifts)
    )


def _domain_constraint(room: Room, domain: Domain | None, need: float, have: float) -> Constraint:
    scope = domain.name if domain is not None else "no domain"
    return Constraint(ConstraintId.DOMAIN_GPU, scope, need, have, Unit.GPU, _topology_source(room))


def _domain_pods(room: Room, domain: Domain | None, need: int, have: int) -> Constraint:
    scope = domain.name if domain is not None else "no domain"
    return Constraint(ConstraintId.DOMAIN_PODS, scope, need, have, Unit.PODS, _topology_source(room))


def _topology_source(room: Room) -> str:
    constraint = room.job.root.constraint
    name = constraint.topology if constraint is not None else ""
    return f"Topology/{name} level {room.level}" if name else f"level {room.level}"


def _compute_domain(gang: Gang, room: Room) -> str:
    """Return the ComputeDomain that the step's pods join, if there is one."""
    templates = {claim.template for task in room.tasks for claim in task.pod.claims if claim.template}
    for domain in gang.context.objects("ComputeDomain"):
        if domain.facts.get("spec.channel.resourceClaimTemplate.name") in templates:
            return domain.meta.name
    return ""


# In use


def _busy(gang: Gang, room: Room, amounts: list[str]) -> Iterator[Finding]:
    for name in sorted(amounts, key=lambda n: (n != "gpu", n)):
        if name == "gpu":
            yield _gpus_busy(gang, room)
        elif name == "pods":
            yield _pod_slots(gang, room)
        else:
            yield _short(gang, room, name)


def _free(room: Room, node: NodeState) -> float:
    return max(room.supply(node, NOTHING)[GPU], 0.0)


def _gpus_busy(gang: Gang, room: Room) -> Finding:
    item = _largest(room)
    if item.task.kind in {RequestKind.FRACTION, RequestKind.GPU_MEMORY, RequestKind.MIG}:
        return _shape(gang, room, NOTHING)
    usable = [node for node in usable_nodes(room) if node.allocatable[GPU] > 0]
    need = total_need(room)
    free = sum(_free(room, node) for node in usable)
    ranked = sorted(usable, key=lambda node: (-_free(room, node), node.name))
    best = tuple(f"{_number(_free(room, node))} on {node.name}" for node in ranked if _free(room, node) > 0)
    fit = room.fit_count([node.index for node in usable])
    each = Amount(item.task.request[GPU], Unit.GPU)
    holders = holders_on(gang, room)
    facts: Facts = {
        "need": Amount(need, Unit.GPU),
        "free": Amount(free, Unit.GPU),
        "total": Amount(sum(node.allocatable[GPU] for node in usable), Unit.GPU),
        "nodes": len(usable),
        "pods": len(room.tasks),
        "fit": fit,
        "each": each,
        "best": best,
        "node": ranked[0].name if ranked else "none",
        "have": Amount(_free(room, ranked[0]) if ranked else 0.0, Unit.GPU),
        "holders": tuple(dict.fromkeys(spoken(holder.gang.rsplit("/", 1)[-1]) for holder in holders)),
    }
    scattered = free >= need
    binding = [
        Constraint(
            ConstraintId.NODE_GPU,
            ranked[0].name if ranked else "no node",
            each.value,
            _free(room, ranked[0]) if ranked else 0.0,
            Unit.GPU,
            "free GPUs of the best node",
        )
    ]
    if len(room.tasks) > 1 or not scattered:
        binding.append(Constraint(ConstraintId.CLUSTER_GPU, "nodes it may use", need, free, Unit.GPU, "free GPUs"))
        binding.append(
            Constraint(ConstraintId.CLUSTER_NODES, "pods that fit", len(room.tasks), fit, Unit.PODS, "exact search")
        )
    return Finding(
        ReasonCode.FRAGMENTED if scattered else ReasonCode.GPUS_BUSY,
        form="none_fits" if scattered and not fit else "",
        facts=facts,
        binding=tuple(binding),
        holders=holders,
    )


def _number(value: float) -> str:
    return f"{value:g}"


def _pod_slots(gang: Gang, room: Room) -> Finding:
    slot = room.session.layout.index["pods"]
    lifts = frozenset({Lift("busy", "pods")})
    full = [
        node
        for node in room.nodes
        if room.supply(node, NOTHING)[slot] < 1
        and any(
            room.allows(i, node, NOTHING) and room.capacity(i, node.index, tuple(room.supply(node, lifts)), lifts)
            for i in range(len(room.classes))
        )
    ]
    allowed = sum(node.allocatable[slot] for node in full)
    used = sum(node.allocatable[slot] - node.idle[slot] for node in full)
    domains = [domain.name for domain in room.domains or () if any(node.index in domain.nodes for node in full)]
    return Finding(
        ReasonCode.POD_SLOTS,
        form="domain" if domains else "",
        facts={
            "nodes": first(node.name for node in full),
            "count": len(full),
            "used": used,
            "allowed": allowed,
            "domain": domains[0] if domains else "",
        },
        binding=tuple(
            Constraint(
                ConstraintId.NODE_POD_SLOTS,
                node.name,
                node.allocatable[slot] - node.idle[slot] + 1,
                node.allocatable[slot],
                Unit.PODS,
                f"Node/{node.name} allocatable pods",
            )
            for node in full[:5]
        ),
        holders=holders_on(gang, room, slot=slot, nodes=full),
    )


def _short(gang: Gang, room: Room, name: str) -> Finding:
    """Return that CPU, memory or another resource is short, with the pod that asks for most of it."""
    slot = room.session.layout.index[name]
    item = max(room.classes, key=lambda c: c.task.request[slot])
    index = room.classes.index(item)
    usable = [node for node in room.nodes if room.allows(index, node, NOTHING)]
    others = [node for node in usable if _has_the_rest(room, item.task, node, slot, NOTHING)] or usable
    best = max(others, key=lambda node: (room.supply(node, NOTHING)[slot], -node.index), default=None)
    have = max(room.supply(best, NOTHING)[slot], 0.0) if best is not None else 0.0
    need = item.task.request[slot]
    told, there = amount(room, slot, need), amount(room, slot, have)
    alone = [n for n in room.nodes if n.allocatable[slot] > 0] if name not in _UNITS else []
    facts: Facts = {
        "pod": item.task.name,
        "need": told,
        "node": best.name if best is not None else "none",
        "have": there,
        "short": Amount(told.value - there.value, told.unit, told.name),
        "pods": len(room.tasks),
        "fit": room.fit_count(range(len(room.nodes))),
        "each": told,
        "offers": len(alone),
    }
    return Finding(
        ReasonCode.RESOURCE_SHORT,
        form="pods" if have >= need else "beside" if len(others) < len(usable) else "",
        facts=facts | _beside(room, item.task, best),
        binding=(
            Constraint(
                _NODE_IDS.get(name, ConstraintId.NODE_RESOURCE),
                f"{best.name if best is not None else 'no node'} {name}",
                told.value,
                there.value,
                told.unit,
                f"pod {item.task.name}, free on the best node",
            ),
        ),
        holders=holders_on(gang, room, slot=slot, nodes=[best] if best is not None else []),
    )


def _beside(room: Room, task: TaskState, best: NodeState | None) -> Facts:
    """Return what else the pod asks that only few nodes offer, for a sentence that must say why others do not count."""
    rare = [(name, slot) for name, slot in room.session.layout.index.items() if task.request[slot] > 0 and slot > GPU]
    offering = {name: [n for n in room.nodes if n.allocatable[slot] >= task.request[slot]] for name, slot in rare}
    scarce = min((name for name in offering if name != "pods"), key=lambda n: (len(offering[n]), n), default="")
    return {"wanted": scarce, "only": best.name if best is not None else "none"}


# Checks


def _pods_of(room: Room, reason: NodeReason) -> list[TaskState]:
    """Return the pods of the step that some node refuses for the reason."""
    found = []
    for index, item in enumerate(room.classes):
        if any(reason in reasons for reasons in room.reasons[index]):
            found.extend(item.tasks)
    return found or room.tasks


def _refused_with_room(room: Room, reason: NodeReason, binding: Lifts) -> list[NodeState]:
    """Return the nodes that the reason refuses and that could take a pod without it."""
    lifts = binding | {reason_lift(reason)}
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


def _selector(gang: Gang, room: Room, binding: Lifts) -> Finding:
    tasks = _pods_of(room, NodeReason.SELECTOR)
    index = next(i for i, item in enumerate(room.classes) if item.task in tasks)
    matching = [node for node in room.nodes if NodeReason.SELECTOR not in room.reasons[index][node.index]]
    text = selector_text(tasks[0].pod)
    fit = room.fit_count([node.index for node in matching], _empty(room))
    return Finding(
        ReasonCode.SELECTOR_MISMATCH,
        form="none" if not matching else "",
        facts={
            "pods": len(tasks),
            "selector": text,
            "nodes": len(matching),
            "examples": first(node.name for node in matching),
            "each": need_per_pod(room, tasks[0]),
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
        waiting=_NO_WAIT if not matching else None,
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


def _taint(gang: Gang, room: Room, binding: Lifts) -> Finding:
    nodes = _refused_with_room(room, NodeReason.TAINT, binding) or [
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
        waiting=_NO_WAIT,
    )


def _pod_affinity(gang: Gang, room: Room, binding: Lifts) -> Finding:
    tasks = _pods_of(room, NodeReason.POD_AFFINITY)
    nodes = _refused_with_room(room, NodeReason.POD_AFFINITY, binding)
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


def _volume(gang: Gang, room: Room, binding: Lifts) -> Finding:
    tasks = _pods_of(room, NodeReason.VOLUME)
    nodes = _refused_with_room(room, NodeReason.VOLUME, binding)
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


def _claim(gang: Gang, room: Room, binding: Lifts) -> Finding:
    tasks = _pods_of(room, NodeReason.CLAIM)
    without = [node for node in room.nodes if NodeReason.CLAIM in room.reasons[0][node.index]]
    fit = room.fit_count(range(len(room.nodes)))
    classes = sorted(_device_classes(gang, tasks[0]))
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
            Constraint(
                ConstraintId.CLUSTER_NODES,
                f"nodes with a free device of {name}",
                len(room.tasks),
                len(room.nodes) - len(without),
                Unit.NODES,
                "ResourceSlices",
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


def _ports(gang: Gang, room: Room, binding: Lifts) -> Finding:
    tasks = _pods_of(room, NodeReason.PORTS)
    nodes = _refused_with_room(room, NodeReason.PORTS, binding)
    ports = sorted({port.port for container in tasks[0].pod.containers for port in container.host_ports})
    told = ", ".join(str(port) for port in ports)
    return Finding(
        ReasonCode.CONFLICTING_CONSTRAINTS,
        form="ports",
        facts={"ports": told, "nodes": len(nodes), "examples": first(node.name for node in nodes)},
        binding=(named(ConstraintId.NODE_PORTS, tasks[0].name, told, "taken", f"Pod/{tasks[0].key}"),),
    )


def _shape(gang: Gang, room: Room, binding: Lifts) -> Finding:
    """Return that no device has room for a fraction, an amount of memory or a MIG profile."""
    item = _largest(room)
    if item.task.kind is RequestKind.MIG:
        return _profile(room, item)
    need = item.task.gpu
    free = {node.name: _share_left(room, node) for node in usable_nodes(room)}
    best = max(sorted(free), key=lambda name: free[name], default="no node")
    have = free.get(best, 0.0)
    by_memory = item.task.kind is RequestKind.GPU_MEMORY
    memory = room.session.nodes[best].gpu_memory if best in room.session.nodes else 0
    told = Amount(need.memory, Unit.GPU_MEMORY) if by_memory else Amount(need.portion, Unit.GPU)
    there = Amount(have * memory, Unit.GPU_MEMORY) if by_memory else Amount(have, Unit.GPU)
    return Finding(
        ReasonCode.GPU_SHAPE,
        form="too_large" if by_memory and need.memory > _largest_memory(room) else "",
        facts={
            "need": told,
            "node": best,
            "have": there,
            "devices": need.count,
            "largest": Amount(_largest_memory(room), Unit.GPU_MEMORY),
            "pods": len(room.tasks),
            "fit": room.fit_count(range(len(room.nodes))),
        },
        binding=(
            Constraint(
                ConstraintId.NODE_GPU_MEMORY if by_memory else ConstraintId.NODE_GPU_FRACTION,
                best,
                told.value,
                there.value,
                told.unit,
                "largest free share of one device",
            ),
        ),
        holders=holders_on(gang, room),
    )


def _largest_memory(room: Room) -> float:
    """Return MiB of the largest GPU that a node of the shard says it has."""
    return float(max((node.gpu_memory for node in room.nodes if node.has_gpu_memory), default=0))


def _share_left(room: Room, node: NodeState) -> float:
    """Return the largest share of one device of the node that is free."""
    if _free(room, node) >= 1:
        return 1.0
    left = [1 - used / node.gpu_memory for used in node.shared.used.values() if used > 0 and node.gpu_memory]
    return round(max(left, default=0.0), 4)


def _profile(room: Room, item: Class) -> Finding:
    name, count = min(item.task.gpu.mig.items())
    slot = room.session.layout.index[name] if name in room.session.layout.index else GPU
    offering = [node for node in room.nodes if node.allocatable[slot] > 0 and slot != GPU]
    best = max(offering, key=lambda n: (room.supply(n, NOTHING)[slot], n.name), default=None)
    have = room.supply(best, NOTHING)[slot] if best is not None else 0.0
    told = Amount(count, Unit.COUNT, name)
    return Finding(
        ReasonCode.GPU_SHAPE,
        form="profile",
        facts={
            "need": told,
            "nodes": len(offering),
            "have": Amount(have, Unit.COUNT),
            "node": best.name if best else "none",
        },
        binding=(
            Constraint(
                ConstraintId.NODE_MIG, best.name if best else "no node", count, have, Unit.COUNT, f"allocatable {name}"
            ),
        ),
    )


def _numa(gang: Gang, room: Room, binding: Lifts) -> Finding:
    split = [n for n in room.nodes if any(NodeReason.NUMA in reasons[n.index] for reasons in room.reasons)]
    node = max(split, key=lambda n: (room.zones[n.name].best, n.name))
    zones = room.zones[node.name]
    need = _largest(room).task.request[GPU]
    return Finding(
        ReasonCode.NUMA_SPLIT,
        facts={
            "node": node.name,
            "free": Amount(zones.total, Unit.GPU),
            "best": zones.best,
            "need": Amount(need, Unit.GPU),
        },
        binding=(
            Constraint(
                ConstraintId.NODE_NUMA, node.name, need, zones.best, Unit.GPU, f"NodeResourceTopology/{node.name}"
            ),
        ),
        holders=holders_on(gang, room, nodes=[node]),
    )


def _other(gang: Gang, room: Room, binding: Lifts) -> Finding:
    tasks = room.tasks
    return Finding(
        ReasonCode.CONFLICTING_CONSTRAINTS,
        facts={"constraints": first(lift.what for lift in binding if lift.what)},
        binding=(
            named(ConstraintId.NODE_RESOURCE, tasks[0].name, "a node that takes it", "none", f"Pod/{tasks[0].key}"),
        ),
    )


_CHECKS: Mapping[NodeReason, Callable[[Gang, Room, Lifts], Finding]] = {
    NodeReason.SELECTOR: _selector,
    NodeReason.TAINT: _taint,
    NodeReason.VOLUME: _volume,
    NodeReason.CLAIM: _claim,
    NodeReason.POD_AFFINITY: _pod_affinity,
    NodeReason.PORTS: _ports,
    NodeReason.GPU_SHAPE: _shape,
    NodeReason.RESOURCE: _other,
    NodeReason.NUMA: _numa,
}
