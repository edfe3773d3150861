"""Every layer of a workload with its counts, component by component, and which gang each object leads to.

A count that an object does not state stays None; pods are counted from the pods, whatever their controllers say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gangdash.engine.chain.components import Component, components_of, whole
from gangdash.engine.chain.gangs import condition
from gangdash.engine.chain.index import COMPONENT_LABEL, alive
from gangdash.engine.chain.joins import Chain
from gangdash.engine.chain.nvcf import function_of
from gangdash.engine.chain.remarks import is_ready
from gangdash.engine.chain.standing import gang_standing_of
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod

NAMES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Layer:
    """The objects of one kind under a component; each count is None where nothing states it."""

    kind: str
    names: tuple[str, ...] = ()
    wanted: int | None = None
    exist: int | None = None
    gated: int | None = None
    placed: int | None = None
    ready: int | None = None


@dataclass(frozen=True, slots=True)
class Rung:
    """One component with its layers from the top down."""

    name: str
    type: str
    replicas: int | None
    nodes: int
    gpus_per_pod: float | None
    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class GangStanding:
    """One PodGang with the PodGroups made of it. ``stage`` is empty once it is handed to the scheduler."""

    podgang: str
    bases: tuple[str, ...]
    podgroups: tuple[str, ...]
    stage: str
    problem: str


def ladder_of(chain: Chain, top: ObservedObject) -> list[Rung]:
    """Return the components of a top object; of a set without a graph its cliques and scaling groups."""
    if top.kind == "PodCliqueSet":
        return [_rung(chain, top, [top], part) for part in _parts(top)]
    sets = chain.sets_of(top)
    return [_rung(chain, top, sets, part) for part in components_of(top)]


def gangs_of(chain: Chain, top: ObservedObject) -> list[GangStanding]:
    """Return the PodGangs of a top object in the order of their names."""
    return [
        GangStanding(
            podgang=podgang.meta.name,
            bases=tuple(chain.base_names(podgang)),
            podgroups=tuple(group.meta.name for group in chain.podgroups_of(podgang)),
            stage=found.stage if (found := gang_standing_of(chain, podgang)) is not None else "",
            problem=found.problem if found is not None else "",
        )
        for podgang in _podgangs(chain, _sets(chain, top))
    ]


def _sets(chain: Chain, top: ObservedObject) -> list[ObservedObject]:
    return chain.sets_of(top) if top.kind == "DynamoGraphDeployment" else [top]


def _podgangs(chain: Chain, sets: Iterable[ObservedObject]) -> list[ObservedObject]:
    return [gang for item in sets for gang in chain.of_set("PodGang", item)]


def _parts(clique_set: ObservedObject) -> Iterator[Component]:
    """Yield a set's own parts: its scaling groups, and the cliques that are in none."""
    groups = clique_set.facts.get("spec.template.podCliqueScalingGroups") or ()
    grouped = {name for group in groups for name in group.get("cliqueNames") or ()}
    for group in groups:
        replicas = whole(group.get("replicas"))
        yield Component(str(group.get("name", "")), "", 1 if replicas is None else replicas)
    for clique in clique_set.facts.get("spec.template.cliques") or ():
        if clique.get("name") not in grouped:
            replicas = whole((clique.get("spec") or {}).get("replicas"))
            yield Component(str(clique.get("name", "")), "", 1 if replicas is None else replicas)


def _rung(chain: Chain, top: ObservedObject, sets: list[ObservedObject], part: Component) -> Rung:
    cliques = [clique for item in sets for clique in _cliques(chain, item, part)]
    layers = [_top_layer(top, part)] if top.kind == "DynamoGraphDeployment" else []
    layers += [_set_layer(item) for item in sets]
    layers += _group_layers(chain, sets, cliques)
    layers += _grove_layers(chain, sets, cliques) if sets else _plain_layers(chain, top, part)
    return Rung(part.name, part.type, part.replicas, part.nodes, part.gpus_per_pod, tuple(layers))


def _cliques(chain: Chain, clique_set: ObservedObject, part: Component) -> Iterator[ObservedObject]:
    """Yield the PodCliques of a component: by its label, by what its status names, else by how they are named."""
    lower = part.name.lower()
    replicas = whole(clique_set.facts.get("spec.replicas")) or 1
    expected = {f"{clique_set.meta.name}-{index}-{lower}" for index in range(replicas)}
    for clique in chain.of_set("PodClique", clique_set):
        label = clique.meta.labels.get(COMPONENT_LABEL)
        names = {clique.meta.name, chain.scaling_group_of(clique)}
        if label is not None:
            if label.lower() == lower:
                yield clique
        elif names & set(part.made_as) or names & expected:
            yield clique


def _top_layer(top: ObservedObject, part: Component) -> Layer:
    ready = part.ready if part.ready is not None else part.available
    return Layer(top.kind, (top.meta.name,), part.replicas, None, None, part.scheduled, ready)


def _set_layer(clique_set: ObservedObject) -> Layer:
    facts = clique_set.facts
    return Layer(
        clique_set.kind,
        (clique_set.meta.name,),
        wanted=whole(facts.get("spec.replicas")),
        exist=whole(facts.get("status.replicas")),
        ready=whole(facts.get("status.availableReplicas")),
    )


def _group_layers(chain: Chain, sets: list[ObservedObject], cliques: list[ObservedObject]) -> list[Layer]:
    names = {chain.scaling_group_of(clique) for clique in cliques} - {""}
    groups = [
        item for above in sets for item in chain.of_set("PodCliqueScalingGroup", above) if item.meta.name in names
    ]
    return [
        Layer(
            group.kind,
            (group.meta.name,),
            wanted=whole(group.facts.get("spec.replicas")),
            exist=whole(group.facts.get("status.replicas")),
            placed=whole(group.facts.get("status.scheduledReplicas")),
            ready=whole(group.facts.get("status.availableReplicas")),
        )
        for group in groups
    ]


def _grove_layers(chain: Chain, sets: list[ObservedObject], cliques: list[ObservedObject]) -> list[Layer]:
    held = {clique.meta.name for clique in cliques}
    gangs = [gang for gang in _podgangs(chain, sets) if any(name in held for name, _, _ in chain.cliques_of(gang))]
    groups = [group for gang in gangs for group in chain.podgroups_of(gang)]
    initialized = [gang for gang in gangs if (c := condition(gang, "Initialized")) is not None and c.status == "True"]
    pods = [pod for clique in cliques for pod in chain.pods_of(clique)]
    wanted = _sum(clique.facts.get("spec.replicas") for clique in cliques)
    return [
        Layer(
            "PodClique",
            _names(clique.meta.name for clique in cliques),
            wanted=wanted,
            exist=_sum(clique.facts.get("status.replicas") for clique in cliques),
            gated=_sum(clique.facts.get("status.scheduleGatedReplicas") for clique in cliques),
            placed=_sum(clique.facts.get("status.scheduledReplicas") for clique in cliques),
            ready=_sum(clique.facts.get("status.readyReplicas") for clique in cliques),
        ),
        _layer(chain, "PodGang", (gang.meta.name for gang in gangs), exist=len(gangs), ready=len(initialized)),
        _layer(chain, "PodGroup", (group.meta.name for group in groups), wanted=len(gangs), exist=len(groups)),
        _pod_layer(chain, pods, wanted),
    ]


def _plain_layers(chain: Chain, top: ObservedObject, part: Component) -> list[Layer]:
    """Return the layers of a component that Dynamo carries out itself: its own object, a Deployment, pods."""
    layers, pods = [], []
    for made in chain.children(top, "DynamoComponentDeployment"):
        name = str(made.facts.get("spec.name") or made.facts.get("spec.serviceName") or "")
        if name.lower() != part.name.lower():
            continue
        layers.append(Layer(made.kind, (made.meta.name,), wanted=whole(made.facts.get("spec.replicas"))))
        for below in chain.children(made):
            facts = below.facts
            layers.append(
                Layer(
                    below.kind,
                    (below.meta.name,),
                    wanted=whole(facts.get("spec.replicas")),
                    exist=whole(facts.get("status.replicas")),
                    ready=whole(facts.get("status.readyReplicas")),
                )
            )
            pods += _pods_under(chain, below)
    return [*layers, _pod_layer(chain, pods, part.pods)] if layers else []


def _pods_under(chain: Chain, item: ObservedObject) -> list[Pod]:
    return [*chain.pods_of(item), *(pod for below in chain.children(item) for pod in _pods_under(chain, below))]


def _layer(chain: Chain, kind: str, names: Iterable[str], *, wanted: int | None = None, **counts: int) -> Layer:
    """Return a layer of objects that are counted here; nothing is counted of a kind that was not read."""
    if not chain.snapshot.was_read(kind):
        return Layer(kind, wanted=wanted)
    return Layer(kind, _names(names), wanted, **counts)


def _pod_layer(chain: Chain, pods: Iterable[Pod], wanted: int | None) -> Layer:
    living = alive(pods)
    return _layer(
        chain,
        "Pod",
        (pod.meta.name for pod in living),
        wanted=wanted,
        exist=len(living),
        gated=sum(bool(pod.gates) and not pod.node_name for pod in living),
        placed=sum(bool(pod.node_name) for pod in living),
        ready=sum(is_ready(pod) for pod in living),
    )


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names))[:NAMES_SHOWN])


def _sum(values: Iterable[object]) -> int | None:
    """Add counts; unknown where one of them is, or where there is none."""
    found = [whole(value) for value in values]
    return None if not found or None in found else sum(count or 0 for count in found)


# Which gang each object leads to

Leads = Mapping[tuple[str, str, str, str], frozenset[str]]
"""PodGroup names by kind, namespace, name and uid of an object."""


def leads(chain: Chain) -> Leads:
    """Return for every object above or between the PodGroups that lead out of it; all of one namespace.

    A function or task of NVCF is such an object too, by its id.
    """
    found: dict[tuple[str, str, str, str], set[str]] = defaultdict(set)
    pods = _pods_by_group(chain)
    for key, group in chain.podgroups.items():
        members = tuple(pods.get(key, ()))
        for link in chain.ancestry(group.meta, members):
            found[_key(link.kind, link.namespace, link.name, link.item)].add(group.meta.name)
        function = function_of(chain, group.meta, members)
        if function is not None:
            found[function.kind, group.meta.namespace, function.id, ""].add(group.meta.name)
        if function is not None and function.request:
            found["MiniService", group.meta.namespace, function.request, ""].add(group.meta.name)
    for top in chain.tops():
        for item, groups in _under(chain, top):
            found[_key(item.kind, item.meta.namespace, item.meta.name, item)] |= groups
    return {key: frozenset(groups) for key, groups in found.items()}


def _key(kind: str, namespace: str, name: str, item: ObservedObject | None) -> tuple[str, str, str, str]:
    return kind, namespace, name, item.meta.uid if item is not None else ""


def _pods_by_group(chain: Chain) -> Mapping[str, list[Pod]]:
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in chain.pods:
        name = pod.meta.annotations.get("pod-group-name")
        if name:
            found[f"{pod.meta.namespace}/{name}"].append(pod)
    return found


def _under(chain: Chain, top: ObservedObject) -> Iterator[tuple[ObservedObject, set[str]]]:
    sets = _sets(chain, top)
    whole_top: set[str] = set()
    for item in sets:
        by_clique: dict[str, set[str]] = defaultdict(set)
        for gang in chain.of_set("PodGang", item):
            groups = {group.meta.name for group in chain.podgroups_of(gang)}
            yield gang, groups
            whole_top |= groups
            for name, _, _ in chain.cliques_of(gang):
                by_clique[name] |= groups
        for clique in chain.of_set("PodClique", item):
            yield clique, by_clique[clique.meta.name]
        for group in chain.of_set("PodCliqueScalingGroup", item):
            cliques = [c for c in chain.of_set("PodClique", item) if chain.scaling_group_of(c) == group.meta.name]
            yield group, {name for clique in cliques for name in by_clique[clique.meta.name]}
        yield item, whole_top
    yield top, whole_top
