"""The tree of subgroups that a PodGroup spells out as a flat list with parent names.

Mirrors pkg/scheduler/api/podgroup_info/subgroup_info/factory.go (KAI d5bc503a). A tree that cannot be
built leaves the gang with one pod set ``default`` of minimum 1, as the scheduler does without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gangdash.engine.model.podgroup import PodGroup, SubGroupSpec, TopologyConstraint
from gangdash.engine.statement import DEFAULT_POD_SET, PodSet, SubGroupSet

Aliases = Mapping[str, Mapping[str, str]]
"""Level alias to node label, per topology."""


class _BrokenTreeError(Exception):
    """A name occurs twice or a parent is missing."""


def sub_group_tree(podgroup: PodGroup, aliases: Aliases) -> SubGroupSet:
    """Return the root of the gang's tree, constraints with node labels instead of aliases."""
    try:
        return _build(podgroup, aliases)
    except _BrokenTreeError:
        root = SubGroupSet("")
        root.add(PodSet(DEFAULT_POD_SET, 1))
        return root


def _build(podgroup: PodGroup, aliases: Aliases) -> SubGroupSet:
    constraint = podgroup.topology
    if constraint is not None and not constraint.topology:
        constraint = None
    root = SubGroupSet("", podgroup.min_sub_group, _resolved(constraint, aliases))
    specs = sorted(podgroup.sub_groups, key=lambda spec: spec.name)
    if len({spec.name for spec in specs}) != len(specs):
        raise _BrokenTreeError
    parents = {spec.parent.lower() for spec in specs}
    sets = {"": root}
    for spec in specs:
        if spec.name in parents:
            sets[spec.name] = SubGroupSet(spec.name, spec.min_sub_group, _resolved(spec.topology, aliases))
    for spec in specs:
        parent = sets.get(spec.parent.lower())
        if parent is None:
            raise _BrokenTreeError
        parent.add(sets[spec.name] if spec.name in parents else _leaf(spec, aliases))
    if next(root.descendants(), None) is None:
        root.add(PodSet(DEFAULT_POD_SET, 1 if podgroup.min_member is None else podgroup.min_member))
    return root


def _leaf(spec: SubGroupSpec, aliases: Aliases) -> PodSet:
    return PodSet(spec.name, max(spec.min_member or 0, 0), _resolved(spec.topology, aliases))


def _resolved(constraint: TopologyConstraint | None, aliases: Aliases) -> TopologyConstraint | None:
    names = aliases.get(constraint.topology) if constraint is not None else None
    if constraint is None or not names:
        return constraint
    return replace(
        constraint,
        required_level=names.get(constraint.required_level, constraint.required_level),
        preferred_level=names.get(constraint.preferred_level, constraint.preferred_level),
    )
