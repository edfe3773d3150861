"""Does the topology that the gang names exist, and does it have the level?"""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.explain.build import named
from gangdash.engine.explain.gang import Gang
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.model.podgroup import TopologyConstraint
from gangdash.engine.verdict import Finding, Fix, FixKind, ReasonCode, Waiting, Who

_NO_WAIT = Waiting(helps="no")


def _source(gang: Gang) -> str:
    return f"PodGroup/{gang.podgroup.key}"


def constraints(gang: Gang) -> Iterator[tuple[str, TopologyConstraint]]:
    """Yield every constraint that the scheduler applies, with the subgroup that carries it."""
    if gang.podgroup.topology is not None and gang.podgroup.topology.topology:
        yield "", gang.podgroup.topology
    for spec in gang.podgroup.sub_groups:
        if spec.topology is not None and spec.topology.topology:
            yield spec.name, spec.topology


def topology(gang: Gang) -> Iterator[Finding]:
    """Yield what is wrong with the topology that the gang names."""
    if gang.shard is not None and gang.shard.config.plugin("topology") is None:
        return
    for _, constraint in constraints(gang):
        if constraint.topology not in gang.context.topologies:
            yield _topology_missing(gang, constraint)
            continue
        problem = _level_problem(gang, constraint)
        if problem is not None:
            yield _level_unknown(gang, constraint, *problem)


def _topology_missing(gang: Gang, constraint: TopologyConstraint) -> Finding:
    name = constraint.topology
    return Finding(
        ReasonCode.TOPOLOGY_MISSING,
        facts={"topology": name, "known": len(gang.context.topologies)},
        binding=(named(ConstraintId.OBJECT_EXISTS, f"Topology/{name}", name, "missing", _source(gang)),),
        waiting=_NO_WAIT,
        fixes=(
            Fix(
                FixKind.CREATE_OBJECT,
                {"object": f"Topology/{name}"},
                {"kind": "Topology", "name": name},
                who=Who.CLUSTER_ADMIN,
            ),
            Fix(FixKind.RELAX_TOPOLOGY, {"object": _source(gang), "level": ""}, form="none"),
        ),
    )


def _level_problem(gang: Gang, constraint: TopologyConstraint) -> tuple[str, str] | None:
    """Return the form of what is wrong and the level concerned."""
    levels = gang.context.topologies[constraint.topology].levels
    known = [level.node_label for level in levels]
    place = {level.alias: index for index, level in enumerate(levels) if level.alias}
    place.update({label: index for index, label in enumerate(known)})
    required, preferred = constraint.required_level, constraint.preferred_level
    if not required and not preferred:
        return "no_constraint", ""
    if not levels:
        return "no_levels", required or preferred
    for level in (required, preferred):
        if level and level not in place:
            return "", level
    if required and preferred and place[preferred] < place[required]:
        return "inverted", preferred
    return None


def _level_unknown(gang: Gang, constraint: TopologyConstraint, form: str, level: str) -> Finding:
    found = gang.context.topologies[constraint.topology]
    known = tuple(item.node_label for item in found.levels)
    return Finding(
        ReasonCode.TOPOLOGY_LEVEL_UNKNOWN,
        form=form,
        facts={"level": level, "topology": found.name, "known": known, "required": constraint.required_level},
        binding=(
            named(
                ConstraintId.TOPOLOGY_LEVEL, found.name, level or "a level", " > ".join(known) or "none", _source(gang)
            ),
        ),
        waiting=_NO_WAIT,
        fixes=(
            Fix(
                FixKind.FIX_REFERENCE,
                {"object": _source(gang), "field": "topologyConstraint"},
                {"found": level or "no level"},
                form="choose",
            ),
            Fix(FixKind.RELAX_TOPOLOGY, {"object": _source(gang), "level": ""}, form="none"),
        ),
    )
