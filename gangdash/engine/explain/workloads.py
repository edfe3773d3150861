"""Workloads that should have a PodGroup and have none: found by their pods, or by an owner that cannot make any.

A workload should have one when its pods name KAI's scheduler or a near miss of it, carry a KAI queue label, or when
pods of one coupled workload hold nodes while siblings are unschedulable.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from gangdash.engine.chain.index import controller
from gangdash.engine.explain import owners
from gangdash.engine.explain.context import Context
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.session.build import APP_LABEL, GROUP_ANNOTATION, SCALING_APP
from gangdash.engine.session.requests import pod_request

SKIP_ANNOTATION = "kai.scheduler/skip-podgrouper"
COUPLED = frozenset({
    "LeaderWorkerSet", "RayCluster", "RayJob", "PyTorchJob", "TFJob", "MPIJob", "JobSet", "PodCliqueSet", "Job",
})  # fmt: skip
"""Kinds whose pods need each other; replicas of a Deployment do not."""
_MAKERS = ("Job", "RayCluster", "PyTorchJob", "PodClique", "StatefulSet")
_NEAR = 2


@dataclass(frozen=True)
class Workload:
    """Pods of one top owner that belong to no PodGroup; ``owner`` is None for bare pods."""

    context: Context
    kind: str
    namespace: str
    name: str
    uid: str
    owner: ObservedObject | None
    pods: tuple[Pod, ...]

    @property
    def ref(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}"

    @cached_property
    def waiting(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.phase == "Pending" and not pod.node_name]

    @cached_property
    def placed(self) -> list[Pod]:
        return [pod for pod in self.pods if pod.node_name and pod.phase in {"Pending", "Running"}]

    def gpus(self) -> float:
        """Return the GPUs that the placed pods hold."""
        return sum(pod_request(pod, {}).gpu.gpus for pod in self.placed)

    def cpu(self) -> float:
        return sum(pod_request(pod, {}).amounts.get("cpu", 0) for pod in self.placed)

    @cached_property
    def makers(self) -> list[ObservedObject]:
        """The objects that create its pods, the top owner last."""
        found: dict[str, ObservedObject] = {}
        for pod in self.pods:
            direct = self.context.owner(pod.meta)
            if direct is not None:
                found[direct.ref] = direct
        if self.owner is not None:
            found.setdefault(self.owner.ref, self.owner)
        return list(found.values())

    @cached_property
    def skip_key(self) -> str:
        """The annotation by which it opts out of the pod grouper; empty when it does not."""
        metas = [pod.meta for pod in self.pods] + [maker.meta for maker in self.makers]
        return SKIP_ANNOTATION if any(meta.annotations.get(SKIP_ANNOTATION) == "true" for meta in metas) else ""


def near_miss(context: Context, name: str) -> bool:
    """Whether a scheduler's name is almost, and not quite, that of a KAI scheduler."""
    if not name or name in context.scheduler_names:
        return False
    return any(distance(name.lower(), known.lower()) <= _NEAR for known in context.scheduler_names)


def distance(left: str, right: str) -> int:
    """Return how many letters must be put in, taken out or changed to make one name the other."""
    if abs(len(left) - len(right)) > _NEAR:
        return _NEAR + 1
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


def workloads(context: Context) -> Iterator[Workload]:
    """Yield the workloads that should have a PodGroup and have none, in the order of their names."""
    groups = _by_owner(context)
    for key in sorted(groups):
        workload = groups[key]
        if workload.waiting and (_is_for_kai(workload) or _is_half_placed(workload)):
            yield workload
    yield from _without_pods(context)


def _by_owner(context: Context) -> Mapping[tuple[str, str, str], Workload]:
    pods: dict[tuple[str, str, str], list[Pod]] = defaultdict(list)
    tops: dict[tuple[str, str, str], tuple[str, ObservedObject | None]] = {}
    for pod in sorted(context.snapshot.pods, key=lambda pod: pod.key):
        if _is_grouped(context, pod) or pod.meta.labels.get(APP_LABEL) in _helpers(context):
            continue
        kind, meta, owner = top_owner(context, pod)
        key = (meta.namespace, meta.name, kind)
        pods[key].append(pod)
        tops[key] = (meta.uid, owner)
    return {
        key: Workload(context, key[2], key[0], key[1], tops[key][0], tops[key][1], tuple(found))
        for key, found in pods.items()
    }


def _helpers(context: Context) -> frozenset[str]:
    return frozenset({SCALING_APP, context.params.reservation_app_label})


def _is_grouped(context: Context, pod: Pod) -> bool:
    name = pod.meta.annotations.get(GROUP_ANNOTATION)
    return bool(name) and any(group == name for _, group in context.podgroups)


def top_owner(context: Context, pod: Pod) -> tuple[str, Meta, ObservedObject | None]:
    """Return kind, metadata and object of the top of the chain of controllers; a pod may own a set of further pods."""
    kind, meta, owner = "Pod", pod.meta, None
    seen = {pod.meta.uid or pod.key}
    while (ref := controller(meta)) is not None and ref.uid not in seen:
        seen.add(ref.uid)
        if ref.kind == "Pod":
            parent = context.pods.get((meta.namespace, ref.name))
            if parent is None:
                break
            kind, meta, owner = "Pod", parent.meta, None
            continue
        found = context.owner(meta)
        if found is None:
            return ref.kind, Meta(ref.name, meta.namespace, ref.uid), None
        kind, meta, owner = found.kind, found.meta, found
    return kind, meta, owner


def _is_for_kai(workload: Workload) -> bool:
    """Whether some waiting pod names KAI's scheduler or almost does, or carries a KAI queue."""
    context, key = workload.context, workload.context.params.queue_label_key
    return any(
        pod.scheduler_name in context.scheduler_names
        or near_miss(context, pod.scheduler_name)
        or key in pod.meta.labels
        for pod in workload.waiting
    )


def _is_half_placed(workload: Workload) -> bool:
    """Whether pods of a coupled workload hold nodes while others of it are unschedulable."""
    if workload.kind not in COUPLED or not workload.placed:
        return False
    if workload.kind == "Job" and not workload.gpus():
        return False
    return any(
        (condition := pod.condition("PodScheduled")) is not None and condition.reason == "Unschedulable"
        for pod in workload.waiting
    )


def _without_pods(context: Context) -> Iterator[Workload]:
    """Yield owners meant for KAI whose every attempt to make a pod is refused."""
    key = context.params.queue_label_key
    owned = {owner.uid for pod in context.snapshot.pods for owner in pod.meta.owners}
    grouped = {owner.uid for group in context.snapshot.podgroups for owner in group.meta.owners}
    for kind in _MAKERS:
        for maker in context.objects(kind):
            scheduler = maker.facts.get("spec.template.spec.schedulerName")
            for_kai = key in maker.meta.labels or scheduler in context.scheduler_names
            if not for_kai or maker.meta.uid in owned | grouped:
                continue
            if owners.refusal(context, [maker]) is not None or owners.is_suspended(maker):
                yield Workload(context, kind, maker.meta.namespace, maker.meta.name, maker.meta.uid, maker, ())
