"""The controllers that owe a chain its next step: where each runs, whether it is ready, which version it is.

A part is known by the name of its Deployment, or by its container image where an installation calls it otherwise. A
part that is not found is None: where Deployments were read it is absent, else nobody can tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from gangdash.engine.chain.components import whole
from gangdash.engine.chain.index import Index
from gangdash.engine.model.observed import ObservedObject


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the platform by the names it goes by. ``needs`` is the image or namespace that tells it from others."""

    title: str
    names: tuple[str, ...]
    needs: str = ""


KAI_PARTS = (
    Part("KAI operator", ("kai-operator",), "kai"),
    Part("KAI scheduler", ("kai-scheduler-default", "scheduler", "kai-scheduler"), "kai"),
    Part("KAI pod grouper", ("pod-grouper", "podgrouper")),
    Part("KAI pod group controller", ("podgroup-controller", "podgroupcontroller")),
    Part("KAI binder", ("binder",), "kai"),
    Part("KAI queue controller", ("queue-controller", "queuecontroller"), "kai"),
    Part("KAI admission", ("admission",), "kai"),
)
KAI_SCHEDULER, KAI_GROUPER = KAI_PARTS[1], KAI_PARTS[2]
GROVE_OPERATOR = Part("Grove's operator", ("grove-operator",))
DYNAMO_OPERATOR = Part(
    "Dynamo's operator", ("dynamo-operator-controller-manager", "dynamo-operator", "dynamo-platform-dynamo-operator")
)
NVCA = Part("NVCA", ("nvca",))
NVCA_OPERATOR = Part("NVCA's operator", ("nvca-operator",))


@dataclass(frozen=True, slots=True)
class Running:
    """A part as its Deployment shows it."""

    part: Part
    deployment: ObservedObject

    @property
    def ref(self) -> str:
        return self.deployment.ref

    @property
    def wanted(self) -> int:
        found = whole(self.deployment.facts.get("spec.replicas"))
        return 1 if found is None else found

    @property
    def ready(self) -> int:
        return whole(self.deployment.facts.get("status.readyReplicas")) or 0

    @property
    def is_ready(self) -> bool:
        return self.ready > 0

    @property
    def version(self) -> str:
        return version_of(self.deployment)

    @property
    def since(self) -> float | None:
        return next((c.since for c in self.deployment.conditions if c.type == "Available"), None)


class Platform:
    """The parts of one cluster."""

    def __init__(self, index: Index) -> None:
        self._index = index

    @cached_property
    def _found(self) -> Mapping[str, Running]:
        found: dict[str, Running] = {}
        for deployment in self._index.objects("Deployment"):
            for part in (*KAI_PARTS, GROVE_OPERATOR, DYNAMO_OPERATOR, NVCA, NVCA_OPERATOR):
                if part.title not in found and _is(part, deployment):
                    found[part.title] = Running(part, deployment)
        return found

    def find(self, part: Part) -> Running | None:
        return self._found.get(part.title)

    def state(self, part: Part) -> str:
        """Say in a few words what is wrong with a part; empty where it is ready, or runs under a name unknown here."""
        running = self.find(part)
        if running is None or running.is_ready:
            return ""
        return f"{running.ready} of {running.wanted} replicas are ready"


def _is(part: Part, deployment: ObservedObject) -> bool:
    names = {deployment.meta.name, *images(deployment)}
    if not names & set(part.names):
        return False
    return not part.needs or any(part.needs in word for word in (deployment.meta.namespace, *names))


def images(deployment: ObservedObject) -> list[str]:
    """Return the last part of each container image, without its tag."""
    return [_image(container).partition(":")[0] for container in _containers(deployment)]


def version_of(deployment: ObservedObject) -> str:
    """Return the tag of the first container's image that has one."""
    tags = (_image(container).partition(":")[2] for container in _containers(deployment))
    return next((tag for tag in tags if tag), "")


def _image(container: Mapping[str, object]) -> str:
    return str(container.get("image", "")).split("@", 1)[0].rsplit("/", 1)[-1]


def _containers(deployment: ObservedObject) -> list[Mapping[str, object]]:
    return list(deployment.facts.get("spec.template.spec.containers") or ())
