"""Which NVCF function or task a gang belongs to, and which rule told: its labels, an owner's, a pod's, the namespace's.

NVCF writes its ids onto what it renders and onto every pod, controllers pass them on or do not, and the namespace of an
instance always has them. Where even that is silent, the MiniService of the namespace names the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gangdash.engine.chain.joins import Chain
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod

_PREFIX = "nvca.nvcf.nvidia.io/"
_FUNCTION_KEYS = ("function-version-id", "FUNCTION_VERSION_ID", f"{_PREFIX}function-version-id")
_TASK_KEYS = ("task-id", "TASK_ID", f"{_PREFIX}task-id")
_INFRA_NAMES = frozenset({"utils"})


@dataclass(frozen=True, slots=True)
class Function:
    """``kind`` is Function (``id`` is its version's) or Task; ``rule`` says what told: label, owner, pod, ..."""

    kind: str
    id: str
    rule: str
    request: str = ""
    """The MiniService of its namespace, empty where there is none."""


def function_of(chain: Chain, meta: Meta, pods: Iterable[Pod] = ()) -> Function | None:
    """Return the function or task that an object works for; None where nothing says so."""
    if meta.name in _INFRA_NAMES:
        return None
    service = _service_of(chain, meta.namespace)
    request = service.meta.name if service is not None else ""
    for rule, labels in _sources(chain, meta, pods):
        for kind, keys in (("Function", _FUNCTION_KEYS), ("Task", _TASK_KEYS)):
            found = next((labels[key] for key in keys if labels.get(key)), "")
            if found:
                return Function(kind, found, rule, request)
    return _from_request(chain, service)


def _sources(chain: Chain, meta: Meta, pods: Iterable[Pod]) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield "label", meta.labels
    for owner in chain.owners(meta):
        yield "owner", owner.meta.labels
    for pod in pods:
        yield "pod", pod.meta.labels
    namespace = chain.namespaces.get(meta.namespace)
    if namespace is not None:
        yield "namespace", namespace.labels


def _service_of(chain: Chain, namespace: str) -> ObservedObject | None:
    found = (item for item in chain.objects("MiniService") if item.facts.get("spec.namespace") == namespace)
    return next(found, None) if namespace else None


def _from_request(chain: Chain, service: ObservedObject | None) -> Function | None:
    """Return what the request behind a MiniService was for."""
    name = service.facts.get("spec.icmsRequestName") if service is not None else None
    if service is None or not name:
        return None
    for request in chain.objects("ICMSRequest"):
        if request.meta.name != name:
            continue
        function = request.facts.get("spec.functionDetails.functionVersionId")
        task = request.facts.get("spec.taskDetails.taskId")
        if function or task:
            return Function("Function" if function else "Task", str(function or task), "request", service.meta.name)
    return None
