"""The platform's own parts: scheduler, binder, operators, webhooks. Are they up, and which version runs?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gangdash.engine.explain.context import Context
from gangdash.engine.explain.owners import number
from gangdash.engine.model.config import Shard
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.verdict import Fix, FixKind, Who


@dataclass(frozen=True, slots=True)
class Component:
    """A Deployment of the platform. ``state`` says in a few words why it is not ready, empty when it is."""

    name: str
    namespace: str
    wanted: int
    ready: int
    version: str
    state: str
    since: float | None

    @property
    def is_ready(self) -> bool:
        return self.ready > 0

    @property
    def ref(self) -> str:
        return f"Deployment/{self.namespace}/{self.name}"


def component(context: Context, deployment: ObservedObject) -> Component:
    facts = deployment.facts
    ready = number(facts, "status.readyReplicas") or 0
    wanted = number(facts, "spec.replicas")
    available = next((c for c in deployment.conditions if c.type == "Available"), None)
    return Component(
        name=deployment.meta.name,
        namespace=deployment.meta.namespace,
        wanted=1 if wanted is None else wanted,
        ready=ready,
        version=version(deployment),
        state="" if ready else _state(context, deployment),
        since=available.since if available is not None else None,
    )


def version(deployment: ObservedObject) -> str:
    """Return the tag of the first container's image."""
    for container in deployment.facts.get("spec.template.spec.containers") or ():
        image = str(container.get("image", "")).rsplit("/", 1)[-1].split("@", 1)[0]
        if ":" in image:
            return image.rsplit(":", 1)[1]
    return ""


def _matches(labels: Any, selector: Any) -> bool:
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def pods_of(context: Context, deployment: ObservedObject) -> list[Pod]:
    """Return the Deployment's pods by its selector, in the order of their names."""
    selector = deployment.facts.get("spec.selector.matchLabels") or {}
    return sorted(
        (
            pod
            for pod in context.snapshot.pods
            if pod.meta.namespace == deployment.meta.namespace and _matches(pod.meta.labels, selector)
        ),
        key=lambda pod: pod.key,
    )


def _state(context: Context, deployment: ObservedObject) -> str:
    """Say what its pods' containers wait for, with the last end and the restarts."""
    for pod in pods_of(context, deployment):
        for state in pod.container_states:
            if state.ready:
                continue
            words = [part for part in (state.reason, state.last_reason) if part]
            if state.restarts:
                words.append(f"{state.restarts} restarts")
            if words:
                return ", ".join(words)
    return "no pod is ready"


def component_behind(context: Context, namespace: str, service: str) -> Component | None:
    """Return the Deployment behind a Service, by the Service's selector."""
    found = context.object("Service", namespace, service)
    selector = found.facts.get("spec.selector") if found is not None else None
    for deployment in context.objects("Deployment"):
        if deployment.meta.namespace != namespace:
            continue
        labels = deployment.facts.get("spec.selector.matchLabels") or {}
        if (selector and _matches(labels, selector)) or (not selector and deployment.meta.name == service):
            return component(context, deployment)
    return None


def scheduler_of(context: Context, shard: Shard) -> Component | None:
    """Return the Deployment that runs a shard's scheduler: by its partition argument, else by the shard's name."""
    found = [d for d in context.objects("Deployment") if _runs(d, "scheduler") and "kai" in _image_or_name(d)]
    value = shard.config.params.node_pool_label_value
    own = [d for d in found if _partition(d) == value] if len(found) > 1 or value else found
    chosen = next((d for d in own if d.meta.name.endswith(f"-{shard.name}")), own[0] if own else None)
    return component(context, chosen) if chosen is not None else None


def _partition(deployment: ObservedObject) -> str:
    """Return the node pool that a scheduler's arguments name; empty for the default one."""
    for container in deployment.facts.get("spec.template.spec.containers") or ():
        for argument in container.get("args") or ():
            name, _, value = str(argument).lstrip("-").partition("=")
            if name == "partition-label-value":
                return value
    return ""


def binder(context: Context) -> Component | None:
    found = (d for d in context.objects("Deployment") if _runs(d, "binder"))
    return next((component(context, deployment) for deployment in found), None)


def _image_or_name(deployment: ObservedObject) -> str:
    images = [str(c.get("image", "")) for c in deployment.facts.get("spec.template.spec.containers") or ()]
    return " ".join([deployment.meta.name, deployment.meta.namespace, *images])


def _runs(deployment: ObservedObject, program: str) -> bool:
    """Whether a container's image, tag aside, ends with the program's name, or the Deployment is called so."""
    for container in deployment.facts.get("spec.template.spec.containers") or ():
        image = str(container.get("image", "")).split("@", 1)[0].rsplit("/", 1)[-1].split(":", 1)[0]
        if image == program:
            return True
    return deployment.meta.name == program


def restart(part: Component | None, otherwise: str) -> Fix:
    """Return the restart of a component, or of what it is called where its Deployment was not found."""
    name = f"Deployment {part.name}" if part is not None else otherwise
    return Fix(
        FixKind.RESTART_COMPONENT,
        {"object": part.ref if part is not None else otherwise},
        {"component": name},
        who=Who.PLATFORM,
    )
