"""Do labels, selectors, terms, tolerations and ports match? The small questions that every filter asks.

Relies on the frozen facts alone, so every answer may be cached for the life of a snapshot. Mirrors the
semantics of Kubernetes 1.35 (apimachinery labels, component-helpers nodeaffinity and tolerations).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import HostPort, Pod
from gangdash.engine.model.selectors import LabelSelector, NodeSelectorTerm, Requirement, Taint, Toleration

ANY_HOST_IP = "0.0.0.0"  # noqa: S104 (the any-address of a host port, nothing binds here)
_NAME_FIELD = "metadata.name"
_HARD_EFFECTS = ("NoSchedule", "NoExecute")


def requirement_matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """Return whether labels meet one requirement; a number that does not parse meets nothing."""
    value = labels.get(requirement.key)
    operator = requirement.operator
    if operator == "In":
        return value is not None and value in requirement.values
    if operator == "NotIn":
        return value is None or value not in requirement.values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if operator in ("Gt", "Lt") and value is not None and len(requirement.values) == 1:
        return _number_matches(operator, value, requirement.values[0])
    return False


def _number_matches(operator: str, have: str, limit: str) -> bool:
    try:
        left, right = int(have), int(limit)
    except ValueError:
        return False
    return left > right if operator == "Gt" else left < right


def selector_matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Return whether labels meet a selector: no selector matches nothing, an empty one everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(requirement_matches(r, labels) for r in selector.match_expressions)


def node_term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """Return whether a node meets all requirements of one term; an empty term matches no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    if not all(_field_matches(r, node.name) for r in term.match_fields):
        return False
    return all(requirement_matches(r, node.meta.labels) for r in term.match_expressions)


def _field_matches(requirement: Requirement, node_name: str) -> bool:
    """Only the field metadata.name with one value exists upstream; anything else is a parse error, so no match."""
    if requirement.key != _NAME_FIELD or len(requirement.values) != 1:
        return False
    if requirement.operator == "In":
        return node_name == requirement.values[0]
    return requirement.operator == "NotIn" and node_name != requirement.values[0]


def any_node_term_matches(terms: Iterable[NodeSelectorTerm], node: Node) -> bool:
    return any(node_term_matches(term, node) for term in terms)


def node_matches_pod(pod: Pod, node: Node) -> bool:
    """Return whether a node meets the pod's node selector and required node affinity."""
    labels = node.meta.labels
    if any(labels.get(key) != value for key, value in pod.node_selector.items()):
        return False
    required = pod.affinity.node_required if pod.affinity is not None else None
    return required is None or any_node_term_matches(required, node)


def has_node_constraint(pod: Pod) -> bool:
    return bool(pod.node_selector) or (pod.affinity is not None and pod.affinity.node_required is not None)


def names_conflict(pod: Pod) -> bool:
    """Return whether every term of the affinity pins node names that exclude each other."""
    terms = pod.affinity.node_required if pod.affinity is not None else None
    if not terms:
        return False
    pinned: set[str] = set()
    for term in terms:
        pins = [set(r.values) for r in term.match_fields if r.key == _NAME_FIELD and r.operator == "In"]
        if not pins:
            return False
        pinned |= set.intersection(*pins)
    return not pinned


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(_toleration_matches(t, taint) for t in tolerations)


def _toleration_matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def untolerated_taint(pod: Pod, node: Node) -> Taint | None:
    """Return the first taint that keeps the pod off the node; PreferNoSchedule never does."""
    for taint in node.taints:
        if taint.effect in _HARD_EFFECTS and not tolerates(pod.tolerations, taint):
            return taint
    return None


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of the main containers and sidecars."""
    return tuple(
        port for c in pod.containers if c.role in ("main", "sidecar") for port in c.host_ports if port.port > 0
    )


def ports_conflict(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """Return whether a wanted port is taken: the any-address conflicts with every address."""
    taken = list(used)
    for want in wanted:
        ip = want.host_ip or ANY_HOST_IP
        for have in taken:
            if want.port != have.port or (want.protocol or "TCP") != (have.protocol or "TCP"):
                continue
            have_ip = have.host_ip or ANY_HOST_IP
            if ANY_HOST_IP in (ip, have_ip) or ip == have_ip:
                return True
    return False
