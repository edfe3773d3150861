"""Nodes that lack a label of the gang's topology: they are in no domain, and no message of the scheduler names them."""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.explain.build import first, named
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.room import NOTHING, Room
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.session import NodeState
from gangdash.engine.verdict import Finding, Fix, FixKind, ReasonCode, Waiting, Who


def topology_labels(gang: Gang, room: Room) -> Iterator[Finding]:
    """Yield that missing labels alone keep the step out: with them it would have a domain now."""
    constraint = room.job.root.constraint
    topology = gang.context.topologies.get(constraint.topology) if constraint is not None else None
    if constraint is None or topology is None or room.domains is None or room.fits() is not False:
        return
    labels = [level.node_label for level in topology.levels]
    if constraint.required_level not in labels:
        return
    unlabelled = [node for node in room.nodes if any(label not in node.node.meta.labels for label in labels)]
    if unlabelled and (_fits_with(room, labels, constraint.required_level) or _no_domain_at_all(room)):
        yield _finding(topology.name, labels, unlabelled)


def _no_domain_at_all(room: Room) -> bool:
    """Whether no node is in any domain, though some node could take a pod."""
    return not room.domains and room.fit_count(range(len(room.nodes))) > 0


def _fits_with(room: Room, labels: list[str], level: str) -> bool:
    """Whether the step fits in some domain once nodes that lack only deeper labels are counted in."""
    depth = labels.index(level) + 1
    found: dict[tuple[str, ...], list[int]] = {}
    for node in room.nodes:
        own = node.node.meta.labels
        if all(label in own for label in labels[:depth]):
            found.setdefault(tuple(own[label] for label in labels[:depth]), []).append(node.index)
    return any(room.fits_on(nodes, NOTHING) for nodes in found.values())


def _finding(topology: str, labels: list[str], nodes: list[NodeState]) -> Finding:
    label = next(label for label in labels if any(label not in node.node.meta.labels for node in nodes))
    lacking = [node.name for node in nodes if label not in node.node.meta.labels]
    return Finding(
        ReasonCode.TOPOLOGY_LABEL_MISSING,
        facts={"nodes": len(lacking), "label": label, "topology": topology, "examples": first(lacking)},
        binding=(
            named(
                ConstraintId.OBJECT_LABEL, f"Node/{first(lacking)[0]}", label, "no such label", f"Topology/{topology}"
            ),
        ),
        waiting=Waiting(helps="no"),
        fixes=(
            Fix(
                FixKind.CREATE_OBJECT,
                {"object": f"Node/{first(lacking)[0]}", "label": label},
                {"kind": "Node", "name": first(lacking)[0], "label": label},
                form="label",
                who=Who.CLUSTER_ADMIN,
            ),
        ),
    )
