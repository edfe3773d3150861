"""What the objects that make a gang's pods say about themselves: replicas, suspension, failures, refusals.

One reader per kind of controller; each fact is read where that kind keeps it, and absent where the kind has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gangdash.engine.chain.index import last_seen
from gangdash.engine.explain.context import Context
from gangdash.engine.model.observed import Event, ObservedObject

_SUSPEND_FIELDS = {
    "Job": "spec.suspend",
    "JobSet": "spec.suspend",
    "RayCluster": "spec.suspend",
    "RayJob": "spec.suspend",
    "PyTorchJob": "spec.runPolicy.suspend",
}
_FAILED_CREATE = frozenset({"FailedCreate", "PodCreateFailed", "FailedCreatePod", "FailedToCreateHeadPod"})
_WEBHOOK = re.compile(r'(?:failed calling webhook|admission webhook) "([^"]+)"')
_DENIED = re.compile(r"denied the request: ?(.*)", re.DOTALL)
_QUOTA = re.compile(r"exceeded quota: (?P<name>[^,\s]+)(?:, requested: (?P<requested>.+?)(?=, used:|$))?")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the API server would not take a new pod: ``kind`` is ``webhook_down``, ``webhook_denies`` or ``quota``."""

    kind: str
    name: str
    text: str
    event: Event
    asked: Mapping[str, str] = field(default_factory=dict)
    """What the refused pod asked of a quota, by resource."""


def number(facts: Mapping[str, Any], path: str) -> int | None:
    """Return a whole number from the facts; None when it is absent or something else."""
    value = facts.get(path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_suspended(owner: ObservedObject) -> str | None:
    """Return the field that suspends the owner; None when it is not suspended."""
    path = _SUSPEND_FIELDS.get(owner.kind)
    return path if path is not None and owner.facts.get(path) is True else None


def replicas(owner: ObservedObject) -> int | None:
    """Return how many pods the owner makes at a time; None when its kind does not say so in one number."""
    facts = owner.facts
    if owner.kind == "Job":
        parallelism = number(facts, "spec.parallelism")
        completions = number(facts, "spec.completions")
        parallelism = 1 if parallelism is None else parallelism
        return parallelism if completions is None else min(parallelism, completions)
    if owner.kind in {"ReplicaSet", "StatefulSet", "PodClique"}:
        found = number(facts, "spec.replicas")
        return 1 if found is None else found
    if owner.kind == "RayCluster":
        return 1 + sum(_workers(group) for group in facts.get("spec.workerGroupSpecs", ()))
    if owner.kind == "PyTorchJob":
        specs = facts.get("spec.pytorchReplicaSpecs", {})
        return sum(spec.get("replicas", 1) for spec in specs.values()) if specs else None
    return None


def _workers(group: Mapping[str, Any]) -> int:
    return int(group.get("replicas") or 0) * int(group.get("numOfHosts") or 1)


def failures(owner: ObservedObject) -> int:
    """Return how often a Job's pods have failed."""
    return (number(owner.facts, "status.failed") or 0) if owner.kind == "Job" else 0


def refusal(context: Context, owners: Iterable[ObservedObject]) -> Refusal | None:
    """Return the latest refusal of a new pod that the owners' events tell of."""
    events = [
        event
        for owner in owners
        for event in context.events(owner.kind, owner.meta.namespace, owner.meta.name)
        if event.reason in _FAILED_CREATE
    ]
    for event in sorted(events, key=last_seen, reverse=True):
        found = _refusal(event)
        if found is not None:
            return found
    return None


def _refusal(event: Event) -> Refusal | None:
    text = event.message
    quota = _QUOTA.search(text)
    if quota:
        asked = dict(pair.split("=", 1) for pair in (quota["requested"] or "").split(",") if "=" in pair)
        return Refusal("quota", quota["name"], text, event, asked)
    webhook = _WEBHOOK.search(text)
    if webhook is None:
        return None
    denied = _DENIED.search(text)
    if denied:
        return Refusal("webhook_denies", webhook[1], denied[1].strip(), event)
    return Refusal("webhook_down", webhook[1], text, event)
