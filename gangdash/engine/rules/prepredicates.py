"""Can a pod be placed anywhere at all? The checks that are made once per pod, before any node is looked at.

Largest node of the shard, ConfigMaps, volume claims, node names that exclude each other; claims of devices
are in ``dra``. Relies on the session's vectors for the request and on what was read: a kind that was not
read refuses nothing. Mirrors pkg/scheduler/k8s_internal/predicates (KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Iterable

from gangdash.engine.model.pod import Pod
from gangdash.engine.rules.humanize import CORES, GIGABYTES, digits
from gangdash.engine.rules.matching import names_conflict
from gangdash.engine.rules.volumes import VolumeRules
from gangdash.engine.session import CPU, GPU, MEMORY, Layout, NodeState, Session, TaskState, Vector

_SHARED_GPU_CONFIG_MAP = "runai/shared-gpu-configmap"
_CONFLICT = "NodeAffinity"
"""The one check here that the scheduler makes only while it places, not before it looks for victims."""
_STORAGE = ("ephemeral-storage", "storage")


class PrePredicates:
    """The per-pod checks of one session."""

    def __init__(self, session: Session, volumes: VolumeRules) -> None:
        snapshot = session.snapshot
        self._layout = session.layout
        self._largest = _largest(session.nodes.values(), session.layout)
        self._pool = session.pool_name
        self._config_maps = snapshot.config_maps if snapshot.was_read("ConfigMap") else None
        self._checks_claims = snapshot.was_read("PersistentVolumeClaim")
        self._volumes = volumes
        self._errors: dict[str, list[tuple[str, str]]] = {}

    def errors(self, task: TaskState) -> list[tuple[str, str]]:
        """Return every failing check with its message, in a fixed order (the scheduler's own is random).

        Nothing that happens in a cycle changes the answer, so it is worked out once per task.
        """
        found = self._errors.get(task.uid)
        if found is None:
            found = self._errors[task.uid] = self._work_out(task)
        return found

    def _work_out(self, task: TaskState) -> list[tuple[str, str]]:
        found = []
        if names_conflict(task.pod):
            found.append((_CONFLICT, "pod affinity terms conflict"))
        found.extend(self._unresolvable(task))
        return found

    def victim_invariant_error(self, task: TaskState) -> str:
        """Return the first error that no eviction can cure, empty when there is none."""
        return next((message for name, message in self.errors(task) if name != _CONFLICT), "")

    def _unresolvable(self, task: TaskState) -> list[tuple[str, str]]:
        checks = (
            ("VolumeBinding", self.volume_error(task.pod)),
            ("ConfigMap", self.config_map_error(task.pod)),
            ("MaxNodePoolResources", self.size_error(task)),
        )
        return [(name, message) for name, message in checks if message]

    def volume_error(self, pod: Pod) -> str:
        claims = self._volumes.pod_claims(pod) if self._checks_claims else None
        return claims.error if claims is not None else ""

    def config_map_error(self, pod: Pod) -> str:
        missing = self.missing_config_maps(pod)
        return f"Missing required configmaps: [{' '.join(missing)}]" if missing else ""

    def missing_config_maps(self, pod: Pod) -> list[str]:
        """Return the names of ConfigMaps that the pod needs and that do not exist, sorted."""
        if self._config_maps is None:
            return []
        needed = set(pod.volumes.config_maps).union(*(c.config_maps for c in pod.containers))
        shared = pod.meta.annotations.get(_SHARED_GPU_CONFIG_MAP)
        return sorted(
            name
            for name in needed
            if f"{pod.meta.namespace}/{name}" not in self._config_maps
            and not (shared is not None and name.startswith(shared))
        )

    def oversized_slot(self, task: TaskState) -> int | None:
        """Return the first resource of which no node of the shard is large enough, each taken on its own."""
        for slot in (GPU, CPU, MEMORY):
            if task.request[slot] > self._largest[slot]:
                return slot
        for slot, amount in enumerate(task.request):
            if slot not in (GPU, CPU, MEMORY) and amount > 0 and self._largest[slot] < amount:
                return slot
        return None

    def size_error(self, task: TaskState) -> str:
        slot = self.oversized_slot(task)
        if slot is None:
            return ""
        name, most, unit = self._described(slot)
        start = f"The pod {task.namespace}/{task.name} requires {requirement_text(task, self._layout)}. "
        if most == 0:
            return f"{start}No node in the {self._pool} node-pool has {name} resources"
        text = f"Max {name} resources available in a single node in the {self._pool} node-pool is topped at "
        return f"{start}{text}{digits(most)}{unit and ' ' + unit}"

    def _described(self, slot: int) -> tuple[str, float, str]:
        """Return name, amount and unit as printed; an amount is worked out only for these few resources."""
        most = self._largest[slot]
        if slot == GPU:
            return "GPU", most, ""
        if slot == CPU:
            return "CPU", most / CORES, "cores"
        if slot == MEMORY:
            return "memory", most / GIGABYTES, "GB"
        name = self._layout.names[slot]
        return (name, most / GIGABYTES, "GB") if name in _STORAGE else (name, 0, "")


def requirement_text(task: TaskState, layout: Layout) -> str:
    """Return everything the pod asks for, as messages list it: MIG profiles last."""
    request = task.request
    parts = [
        f"GPU: {digits(task.gpu.quota_gpus)}",
        f"CPU: {digits(request[CPU] / CORES)} (cores)",
        f"memory: {digits(request[MEMORY] / GIGABYTES)} (GB)",
    ]
    for slot, amount in enumerate(request):
        name = layout.names[slot]
        if slot in (CPU, MEMORY, GPU) or not amount or name.startswith("nvidia.com/mig-"):
            continue
        parts.append(f"{name}: {digits(amount / GIGABYTES)} (GB)" if name in _STORAGE else f"{name}: {digits(amount)}")
    parts.extend(f"mig {name}: {count}" for name, count in sorted(task.gpu.mig.items()))
    return ", ".join(parts)


def _largest(nodes: Iterable[NodeState], layout: Layout) -> Vector:
    largest = layout.zeros()
    for node in nodes:
        largest = [max(a, b) for a, b in zip(largest, node.allocatable, strict=True)]
    return largest
