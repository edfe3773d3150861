"""A placed gang that is of no use: another component of the same graph has no gang placed at all.

Asked for graphs whose components are gangs of their own. Replicas and scaled gangs of one component do not need each
other, and Grove's base gang holds all components together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from gangdash.engine.explain.build import named, spoken
from gangdash.engine.explain.context import Context
from gangdash.engine.explain.gang import Gang, gangs_of
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.verdict import Finding, ReasonCode, Waiting

_GRAPH, _COMPONENT = "DynamoGraphDeployment", "DynamoComponentDeployment"


def sibling_waits(gang: Gang) -> Iterator[Finding]:
    """Yield the component of the gang's graph that waits as a whole."""
    own, graph = gang.owner_of_kind(_COMPONENT), gang.owner_of_kind(_GRAPH)
    if own is None or graph is None or not gang.is_satisfied:
        return
    for ref, members in sorted(_graphs(gang.context)[graph.ref].items()):
        if ref != own.ref and all(member.waits and not member.placed for member in members):
            yield _finding(graph, ref.rpartition("/")[2], members[0])
            return


def _graphs(context: Context) -> Mapping[str, Mapping[str, list[Gang]]]:
    """Return the gangs that are not over by graph and component, worked out once for a snapshot."""
    if context.graphs is None:
        found: dict[str, dict[str, list[Gang]]] = defaultdict(lambda: defaultdict(list))
        for other in gangs_of(context):
            graph, component = other.owner_of_kind(_GRAPH), other.owner_of_kind(_COMPONENT)
            if graph is not None and component is not None and not other.is_over:
                found[graph.ref][component.ref].append(other)
        context.graphs = found
    return context.graphs


def _finding(graph: ObservedObject, component: str, sibling: Gang) -> Finding:
    source = f"PodGroup/{sibling.podgroup.key}"
    return Finding(
        ReasonCode.SIBLING_GANG_WAITS,
        facts={
            "sibling": spoken(sibling.meta.name),
            "component": component,
            "kind": graph.kind,
            "graph": graph.meta.name,
        },
        binding=(named(ConstraintId.GANG_ENFORCED, graph.ref, f"{component} placed", "waits", source),),
        waiting=Waiting(helps="unknown", on=(source,)),
    )
