"""What stands around the gangs: namespaces, priority classes, KAI's own settings and components, Events."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from gangdash.simulator.events import Event
from gangdash.simulator.identity import stamp, uid
from gangdash.simulator.kinds import KINDS, Kind
from gangdash.simulator.objects.pods import PLANTED_SECRET
from gangdash.simulator.plant import NAMESPACES, NIGHT, PRIORITIES, SYSTEM_NAMESPACES

if TYPE_CHECKING:
    from gangdash.simulator.world import World

KAI = "kai-scheduler"
VERSION = "v0.17.0"
_OPERATORS = (
    ("grove-operator", "grove-system", "v0.1.0-alpha.12"),
    ("dynamo-operator", "dynamo-system", "1.4.1"),
)
_DEFINED = ("kai.scheduler", "scheduling.run.ai", "grove.io", "scheduler.grove.io", "nvidia.com")
"""Groups of the installed add-ons, whose kinds the server has definitions of."""
_ACTIONS = "allocate, consolidation, reclaim, preempt, stalegangeviction"
_PLUGINS = (
    "predicates",
    "proportion",
    "priority",
    "nodeavailability",
    "resourcetype",
    "podaffinity",
    "elastic",
    "kubeflow",
    "ray",
    "subgrouporder",
    "taskorder",
    "nominatednode",
    "dynamicresources",
    "minruntime",
    "topology",
    "snapshot",
    "sg-nodelocalgreedy",
    "sg-multinodegang",
    "gpupack",
    "gpusharingorder",
)
_COMPONENTS = ("binder", "pod-grouper", "podgroup-controller", "queue-controller", "admission", "kai-operator")


_OLD_TOPOLOGY = "clustertopologies"
"""A kind of earlier versions of Grove, which this cluster never had."""
_DEFINITION_CONDITIONS = ("NamesAccepted", "Established")


def furniture(world: World) -> Iterator[dict[str, Any]]:
    """Yield everything that is not a gang, a node or a queue."""
    yield from (_namespace(world, name) for name in (*SYSTEM_NAMESPACES, *NAMESPACES))
    yield from _priority_classes(world)
    yield from _shards(world)
    yield from _components(world)
    yield from (_definition(world, kind) for kind in KINDS if kind.group in _DEFINED and kind.plural != _OLD_TOPOLOGY)


def _definition(world: World, kind: Kind) -> dict[str, Any]:
    """Return the definition of a custom kind, without the schema that makes real ones large."""
    shown = _object(world, "apiextensions.k8s.io/v1", "CustomResourceDefinition", kind.resource)
    spec = {
        "group": kind.group,
        "names": {"kind": kind.kind, "plural": kind.plural},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "versions": [{"name": v, "served": True, "storage": v == kind.versions[0]} for v in kind.versions],
    }
    since = stamp(world.installed)
    conditions = [{"type": name, "status": "True", "lastTransitionTime": since} for name in _DEFINITION_CONDITIONS]
    return shown | {"spec": spec, "status": {"conditions": conditions, "storedVersions": [kind.versions[0]]}}


def _object(world: World, api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "uid": uid(world.seed, kind, namespace, name)}
    metadata["creationTimestamp"] = stamp(world.installed)
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _namespace(world: World, name: str) -> dict[str, Any]:
    shown = _object(world, "v1", "Namespace", name)
    shown["metadata"]["labels"] = {"kubernetes.io/metadata.name": name}
    return shown | {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def _priority_classes(world: World) -> Iterator[dict[str, Any]]:
    for priority in PRIORITIES.values():
        shown = _object(world, "scheduling.k8s.io/v1", "PriorityClass", priority.name)
        yield shown | {"value": priority.value, "globalDefault": False, "description": priority.words}


def _shards(world: World) -> Iterator[dict[str, Any]]:
    """Yield KAI's settings: the configuration, and for each shard its object, ConfigMap and Deployment."""
    config = _object(world, "kai.scheduler/v1", "Config", "kai-config")
    global_terms = {
        "schedulerName": KAI,
        "nodePoolLabelKey": "kai.scheduler/node-pool",
        "queueLabelKey": "kai.scheduler/queue",
    }
    yield config | {"spec": {"namespace": KAI, "global": global_terms}}
    for name, label in (("default", ""), (NIGHT, NIGHT)):
        shard = _object(world, "kai.scheduler/v1", "SchedulingShard", name)
        placement = {"gpu": "binpack", "cpu": "binpack"}
        yield shard | {"spec": {"partitionLabelValue": label, "placementStrategy": placement}}
        settings = _object(world, "v1", "ConfigMap", f"{KAI}-{name}", KAI)
        yield settings | {"data": {"config.yaml": _settings()}}
        args = [f"--scheduler-name={KAI}", "--schedule-period=1s", "--nodepool-label-key=kai.scheduler/node-pool"]
        args += [f"--partition-label-value={label}"] if label else []
        yield _deployment(world, f"{KAI}-{name}", "scheduler", args, up=not label)


@cache
def _settings() -> str:
    """Return a scheduler's configuration file."""
    arguments = {"nodeplacement": {"gpu": "binpack", "cpu": "binpack"}}
    names = [*_PLUGINS, "nodeplacement"]
    plugins = [{"name": name} | ({"arguments": arguments[name]} if name in arguments else {}) for name in names]
    return yaml.safe_dump({"actions": _ACTIONS, "tiers": [{"plugins": plugins}]}, sort_keys=False)


def _components(world: World) -> Iterator[dict[str, Any]]:
    for name in _COMPONENTS:
        yield _deployment(world, name, name, [], up=name != "binder" or world.binder_up)
    for name, namespace, tag in _OPERATORS:
        shown = _deployment(world, name, name, [], up=True)
        shown["spec"]["template"]["spec"]["containers"][0]["image"] = f"registry.example.com/{namespace}/{name}:{tag}"
        shown["metadata"] |= {"namespace": namespace, "uid": uid(world.seed, "Deployment", namespace, name)}
        yield shown
    exporters = _object(world, "apps/v1", "DaemonSet", "node-exporter", "kube-system")
    count = len(world.nodes)
    counts = {"desiredNumberScheduled": count, "currentNumberScheduled": count, "numberReady": count}
    yield exporters | {"spec": {"selector": {"matchLabels": {"app": "node-exporter"}}}, "status": counts}


def _deployment(world: World, name: str, image: str, args: list[str], *, up: bool) -> dict[str, Any]:
    container: dict[str, Any] = {"name": image, "image": f"registry.example.com/kai/{image}:{VERSION}"}
    container |= {"args": args} if args else {}
    container |= {"env": [{"name": "WEBHOOK_TOKEN", "value": PLANTED_SECRET}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    since = stamp(world.born - timedelta(hours=5))
    available = {"type": "Available", "status": str(up), "lastTransitionTime": since}
    available["reason"] = "MinimumReplicasAvailable" if up else "MinimumReplicasUnavailable"
    status: dict[str, Any] = {"replicas": 1, "observedGeneration": 1, "conditions": [available]}
    status |= {"readyReplicas": 1, "availableReplicas": 1} if up else {"unavailableReplicas": 1}
    return _object(world, "apps/v1", "Deployment", name, KAI) | {"spec": spec, "status": status}


def event(world: World, shown: Event) -> dict[str, Any]:
    """Return one Event object."""
    about = shown.about
    involved = {
        "apiVersion": about.api_version,
        "kind": about.kind,
        "namespace": about.namespace,
        "name": about.name,
        "uid": about.uid,
    }
    metadata = {
        "name": shown.name,
        "namespace": about.namespace,
        "uid": uid(world.seed, "Event", about.namespace, shown.name),
        "creationTimestamp": stamp(shown.first),
        "annotations": dict(shown.annotations),
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": metadata,
        "involvedObject": involved,
        "reason": shown.reason,
        "message": shown.message,
        "source": {"component": shown.component},
        "reportingComponent": shown.component,
        "reportingInstance": "",
        "firstTimestamp": stamp(shown.first),
        "lastTimestamp": stamp(shown.last),
        "eventTime": None,
        "count": shown.count,
        "type": shown.type,
    }
