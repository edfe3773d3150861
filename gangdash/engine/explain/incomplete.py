"""Do some members hold nodes while the required set is not complete, and is the missing grouping itself the cause?"""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.chain.index import controller
from gangdash.engine.explain import membership, owners
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.room import Room, reason_lift
from gangdash.engine.explain.times import annotation_time
from gangdash.engine.identifiers import ConstraintId, NodeReason, Unit
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.selectors import PodAffinityTerm
from gangdash.engine.rules.matching import selector_matches
from gangdash.engine.session import GPU, NodeState
from gangdash.engine.session.build import STALE_ANNOTATION
from gangdash.engine.verdict import Amount, Constraint, FactValue, Finding, Fix, FixKind, ReasonCode, Waiting

NEEDS_ALL = frozenset({"RayCluster", "RayJob", "PyTorchJob", "TFJob", "MPIJob", "LeaderWorkerSet"})
"""Kinds that are of no use with part of their pods. A plain Job's pods may work alone."""
REQUIRED_PLACEMENT = "kai.scheduler/topology-required-placement"
_FUNCTION_LABELS = frozenset({"function-version-id", "task-id"})


def below_minimum(gang: Gang) -> Iterator[Finding]:
    """Yield that fewer pods run than the gang needs, with the time at which the scheduler evicts the rest."""
    if gang.is_satisfied or not gang.placed or gang.finished:
        return
    grace = gang.podgroup.staleness_grace
    if grace is None:
        grace = gang.params.staleness_grace
    since = annotation_time(gang.meta, STALE_ANNOTATION)
    until = since + grace if since is not None and grace >= 0 else None
    facts: dict[str, FactValue] = {"placed": len(gang.placed), "needed": gang.needed, "until": until, "grace": grace}
    form = "kept" if grace < 0 else "" if until is not None else "soon"
    yield Finding(
        ReasonCode.BELOW_MINIMUM,
        form=form,
        facts=facts,
        binding=(
            Constraint(
                ConstraintId.GANG_ENFORCED,
                gang.meta.name,
                gang.needed,
                len(gang.placed),
                Unit.PODS,
                f"PodGroup/{gang.podgroup.key}",
            ),
            membership.member_constraint(gang, gang.needed, len(gang.alive)),
        ),
        waiting=Waiting(helps="no" if form != "kept" else "unknown", until=None),
    )


def not_enforced(gang: Gang, room: Room | None) -> Iterator[Finding]:
    """Yield that part of a workload runs alone because its pods are not held together as one gang."""
    tied = _tied_to_sibling(gang, room) if room is not None else None
    if tied is not None:
        yield tied
    wanted = _whole(gang)
    if wanted is not None and gang.pending and gang.is_satisfied and gang.placed and gang.needed < wanted:
        yield _too_low(gang, wanted)


def _whole(gang: Gang) -> int | None:
    """Return how many pods the workload needs to be of use; None for pods that work alone or scale by themselves."""
    chain = {owner.ref: owner for owner in (*gang.makers, *gang.owners)}.values()
    if not any(owner.kind in NEEDS_ALL or _is_meant_as_gang(gang, owner) for owner in chain):
        return None
    if any(owner.facts.get("spec.enableInTreeAutoscaling") is True for owner in chain):
        return None
    known = [count for owner in chain if (count := owners.replicas(owner)) is not None]
    return max(known, default=None)


def _is_meant_as_gang(gang: Gang, owner: ObservedObject) -> bool:
    """Whether a StatefulSet's pods are meant to start together: GPUs in parallel, in one domain, or as one function.

    The pod grouper gives every StatefulSet a minimum of 1, so the promise that they do is not kept.
    """
    if owner.kind != "StatefulSet" or not any(gang.gpus(pod) for pod in gang.pods):
        return False
    in_parallel = owner.facts.get("spec.podManagementPolicy") == "Parallel"
    in_domain = REQUIRED_PLACEMENT in owner.meta.annotations
    return in_parallel or in_domain or not _FUNCTION_LABELS.isdisjoint(owner.meta.labels)


def _too_low(gang: Gang, wanted: int) -> Finding:
    return Finding(
        ReasonCode.GANG_NOT_ENFORCED,
        facts={
            "placed": len(gang.placed),
            "total": wanted,
            "waiting": len(gang.pending) + len(gang.gated),
            "minimum": gang.needed,
        },
        binding=(
            Constraint(
                ConstraintId.GANG_ENFORCED,
                gang.meta.name,
                wanted,
                gang.needed,
                Unit.PODS,
                f"PodGroup/{gang.podgroup.key} minimum",
            ),
            Constraint(
                ConstraintId.GANG_MIN_MEMBER, gang.meta.name, wanted, len(gang.placed), Unit.PODS, gang.owner_ref
            ),
        ),
    )


# Pods of one owner, each a gang of its own, tied together by affinity


def _tied_to_sibling(gang: Gang, room: Room) -> Finding | None:
    """Return a finding when affinity ties the gang to a placed sibling's domain and another domain could hold both."""
    lift = frozenset({reason_lift(NodeReason.POD_AFFINITY)})
    if NodeReason.POD_AFFINITY not in room.present or room.fits() is not False or not room.fits(lift):
        return None
    pod = gang.pending[0] if gang.pending else None
    terms = pod.affinity.pod_required if pod is not None and pod.affinity is not None else ()
    for term in terms:
        sibling = _placed_sibling(gang, term)
        if sibling is not None:
            return _tied(gang, room, term, sibling)
    return None


def _placed_sibling(gang: Gang, term: PodAffinityTerm) -> Pod | None:
    """Return a placed pod of the same owner, in another PodGroup, that the affinity term points to."""
    uids = {owner.uid for pod in gang.pending if (owner := controller(pod.meta)) is not None}
    for uid in sorted(uids):
        for pod in gang.context.owned_pods.get(uid, ()):
            if pod.node_name and pod not in gang.pods and selector_matches(term.selector, pod.meta.labels):
                return pod
    return None


def _tied(gang: Gang, room: Room, term: PodAffinityTerm, sibling: Pod) -> Finding:
    key = term.topology_key
    home = (
        gang.context.nodes[sibling.node_name].meta.labels.get(key, "")
        if sibling.node_name in gang.context.nodes
        else ""
    )
    inside = [node for node in room.nodes if node.node.meta.labels.get(key) == home]
    need = sum(gang.gpus(pod) for pod in gang.pending)
    have = max((room.supply(node, frozenset())[GPU] for node in inside), default=0.0)
    spare = sorted({value for node in _roomy(room) if (value := node.node.meta.labels.get(key, home)) != home})
    return Finding(
        ReasonCode.GANG_NOT_ENFORCED,
        form="siblings",
        facts={
            "domain": home,
            "key": key,
            "sibling": sibling.meta.name,
            "have": Amount(max(have, 0.0), Unit.GPU),
            "need": Amount(need, Unit.GPU),
            "spare": tuple(spare),
        },
        binding=(
            Constraint(ConstraintId.DOMAIN_GPU, home, need, max(have, 0.0), Unit.GPU, f"pod affinity on {key}"),
            Constraint(
                ConstraintId.GANG_ENFORCED, gang.meta.name, 2, 1, Unit.PODS, f"PodGroup/{gang.podgroup.key} minimum"
            ),
        ),
        fixes=(
            Fix(
                FixKind.EVICT_GANG,
                {"object": f"Pod/{sibling.key}"},
                {"gang": f"pod {sibling.meta.name}", "gpus": gang.gpus(sibling)},
            ),
        ),
    )


def _roomy(room: Room) -> list[NodeState]:
    """Return the nodes that could take a pod of the step if its pod affinity did not refuse them."""
    lift = frozenset({reason_lift(NodeReason.POD_AFFINITY)})
    return [
        node
        for node in room.nodes
        if room.allows(0, node, lift) and room.capacity(0, node.index, tuple(room.supply(node, lift)), lift)
    ]
