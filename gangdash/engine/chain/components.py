"""The components of a DynamoGraphDeployment, the same whatever version the API server showed it in.

v1alpha1 keeps services in a map and GPUs as a number beside them, v1beta1 keeps a list with pod templates. A count that
the object does not state stays None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.resources import GPU_NAMES, MIG_PREFIX


@dataclass(frozen=True, slots=True)
class Component:
    """One component as asked for and as its controller counts it; ``nodes`` is above 1 for one that spans nodes."""

    name: str
    type: str = ""
    replicas: int = 1
    nodes: int = 1
    gpus_per_pod: float | None = None
    made_of: str = ""
    """Kind of the object that carries it out: PodClique, PodCliqueScalingGroup, Deployment, LeaderWorkerSet."""
    made_as: tuple[str, ...] = ()
    """Names of those objects."""
    scheduled: int | None = None
    ready: int | None = None
    available: int | None = None
    updated: int | None = None

    @property
    def pods(self) -> int:
        return self.replicas * self.nodes


def components_of(graph: ObservedObject) -> list[Component]:
    """Return the components in the order of their names."""
    adapter = _ADAPTERS.get(graph.api_version.rpartition("/")[2], _either)
    return sorted(adapter(graph), key=lambda component: component.name)


def _v1alpha1(graph: ObservedObject) -> Iterator[Component]:
    states = _states(graph, "status.services")
    for name, spec in _map(graph.facts.get("spec.services")).items():
        limits = _map(_map(spec.get("resources")).get("limits")) or _map(_map(spec.get("resources")).get("requests"))
        kind = str(spec.get("subComponentType") or spec.get("componentType") or "")
        yield _component(name, kind, spec, _float(limits.get("gpu")), states.get(name.lower(), {}))


def _v1beta1(graph: ObservedObject) -> Iterator[Component]:
    states = _states(graph, "status.components")
    for spec in graph.facts.get("spec.components") or ():
        name = str(spec.get("name", ""))
        yield _component(name, str(spec.get("type") or ""), spec, _template_gpus(spec), states.get(name.lower(), {}))


def _either(graph: ObservedObject) -> Iterator[Component]:
    """Read a version of the future by what it holds."""
    yield from _v1beta1(graph) if graph.facts.get("spec.components") else _v1alpha1(graph)


_ADAPTERS: Mapping[str, Callable[[ObservedObject], Iterator[Component]]] = {
    "v1alpha1": _v1alpha1,
    "v1beta1": _v1beta1,
}


def _component(
    name: str, kind: str, spec: Mapping[str, Any], gpus: float | None, state: Mapping[str, Any]
) -> Component:
    replicas = whole(spec.get("replicas"))
    nodes = whole(_map(spec.get("multinode")).get("nodeCount")) if "multinode" in spec else 1
    names = state.get("componentNames") or ([state["componentName"]] if state.get("componentName") else [])
    return Component(
        name=name,
        type=kind,
        replicas=1 if replicas is None else replicas,
        nodes=max(2 if nodes is None else nodes, 1),
        gpus_per_pod=gpus,
        made_of=str(state.get("componentKind") or ""),
        made_as=tuple(str(item) for item in names),
        scheduled=whole(state.get("scheduledReplicas")),
        ready=whole(state.get("readyReplicas")),
        available=whole(state.get("availableReplicas")),
        updated=whole(state.get("updatedReplicas")),
    )


def _states(graph: ObservedObject, path: str) -> dict[str, Mapping[str, Any]]:
    """Return the status of components by their name in lower case: spec and status differ in case."""
    return {str(name).lower(): _map(state) for name, state in _map(graph.facts.get(path)).items()}


def _template_gpus(spec: Mapping[str, Any]) -> float | None:
    containers = _map(_map(spec.get("podTemplate")).get("spec")).get("containers") or ()
    found = None
    for container in containers:
        limits = _map(_map(container.get("resources")).get("limits"))
        for name, amount in limits.items():
            if name in GPU_NAMES or name.startswith(MIG_PREFIX):
                found = (found or 0.0) + (_float(amount) or 0.0)
    return found


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def whole(value: Any) -> int | None:
    """Return a whole number, None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
