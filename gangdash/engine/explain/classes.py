"""The pods of a step in classes: equal pods are placed as one kind with a count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gangdash.engine.rules.matching import selector_matches
from gangdash.engine.session import TaskState


@dataclass(slots=True)
class Class:
    """Pods of one step that ask for the same and are refused by the same nodes."""

    tasks: list[TaskState]
    per_node: int | None
    """At most this many share a node, by anti-affinity among themselves."""

    @property
    def task(self) -> TaskState:
        return self.tasks[0]


def classes_of(tasks: Iterable[TaskState]) -> list[Class]:
    """Return the pods of a step by what they ask for."""
    found: dict[str, Class] = {}
    for task in tasks:
        key = _class_key(task)
        if key in found:
            found[key].tasks.append(task)
        else:
            found[key] = Class([task], 1 if _excludes_its_like(task) else None)
    return list(found.values())


def _class_key(task: TaskState) -> str:
    pod = task.pod
    parts = (task.request, task.kind, task.gpu.count, task.gpu.portion, task.gpu.memory, sorted(task.gpu.mig.items()))
    demands = (sorted(pod.node_selector.items()), pod.affinity, pod.tolerations, pod.volumes)
    claims = [(claim.claim, claim.template) for claim in pod.claims]
    ports = [container.host_ports for container in pod.containers if container.host_ports]
    return repr((parts, demands, claims, ports, task.sub_group))


def has_pod_terms(task: TaskState) -> bool:
    """Whether where other pods run decides about the task, beyond keeping its like apart."""
    affinity = task.pod.affinity
    if affinity is None:
        return False
    return bool(affinity.pod_required) or (bool(affinity.anti_required) and not _excludes_its_like(task))


def _excludes_its_like(task: TaskState) -> bool:
    """Whether required anti-affinity by host name keeps two pods with the task's labels apart."""
    affinity = task.pod.affinity
    if any(container.host_ports for container in task.pod.containers):
        return True
    return affinity is not None and any(
        term.topology_key == "kubernetes.io/hostname" and selector_matches(term.selector, task.pod.meta.labels)
        for term in affinity.anti_required
    )
