"""Which annotations, arguments and flags may be kept: everything else is dropped while decoding.

Annotations and arguments are free text in which people put secrets, so they are kept by name only, and a
container's last words are a piece of its log, so they are not kept at all.
Leaves out fields: those are allowed by being named in a record or in the table of kinds.
"""

from __future__ import annotations

from collections.abc import Iterable

KEPT_ANNOTATIONS = frozenset({
    # membership and scheduling requests of pods
    "pod-group-name",
    "gpu-fraction", "gpu-fraction-num-devices", "gpu-fraction-container-name", "gpu-memory",
    "received-resource-type", "run.ai/reserve_for_gpu_index", "runai/shared-gpu-configmap",
    "nvidia.com/gpu.memory",
    # KAI, on pods, owners and PodGroups
    "kai.scheduler/batch-min-member",
    "kai.scheduler/last-eviction-timestamp", "kai.scheduler/last-start-timestamp",
    "kai.scheduler/numa-placement-observed", "kai.scheduler/numa-placement-predicted",
    "kai.scheduler/preemption-delay", "kai.scheduler/segment-size",
    "kai.scheduler/segment-topology-preferred-placement", "kai.scheduler/segment-topology-required-placement",
    "kai.scheduler/skip-podgrouper", "kai.scheduler/stale-podgroup-timestamp",
    "kai.scheduler/staleness-grace-period",
    "kai.scheduler/top-owner-metadata", "kai.scheduler/topology", "kai.scheduler/topology-preferred-placement",
    "kai.scheduler/topology-required-placement",
    # what an eviction event says
    "evictor-action-type", "evictor-pod-group-name", "evictor-pod-group-namespace", "num-evicted-pods",
    # other controllers
    "grove.io/disable-managed-resource-protection", "grove.io/mnnvl-group", "grove.io/topology-name",
    "nvidia.com/current-worker-hash", "nvidia.com/dynamo-operator-origin-version", "nvidia.com/enable-disaggregatedset",
    "nvidia.com/enable-grove", "nvidia.com/grove-update-strategy", "nvidia.com/kai-scheduler-queue",
    "nvidia.com/volcano-queue", "nvidia.com/workload-provider", "scheduling.grove.io/volcano-queue",
    "kueue.x-k8s.io/workload",
    "leaderworkerset.sigs.k8s.io/leader-name", "leaderworkerset.sigs.k8s.io/size",
    "leaderworkerset.sigs.k8s.io/exclusive-topology",
    "resource.kubernetes.io/pod-claim-name",
    "storageclass.kubernetes.io/is-default-class",
})  # fmt: skip
KEPT_ANNOTATION_PREFIXES = ("nvidia.com/mig-",)

SCHEDULER_FLAGS = frozenset({
    "allow-consolidating-reclaim", "cpu-worker-node-label-key", "default-staleness-grace-period",
    "detailed-fit-errors", "full-hierarchy-fairness", "gpu-worker-node-label-key", "leader-elect",
    "max-consolidation-preemptees", "mig-worker-node-label-key", "namespace", "nodepool-label-key",
    "partition-label-value", "queue-label-key", "resource-reservation-app-label", "restrict-node-scheduling",
    "schedule-csi-storage", "schedule-period", "scheduler-name", "stuck-in-releasing-threshold",
    "update-pod-eviction-condition", "use-scheduling-signatures",
})  # fmt: skip
"""Flags of KAI's scheduler that change what a replay does or say which shard a Deployment serves."""

SWITCHES = frozenset({
    "allow-consolidating-reclaim", "detailed-fit-errors", "full-hierarchy-fairness", "leader-elect",
    "restrict-node-scheduling", "schedule-csi-storage", "update-pod-eviction-condition", "use-scheduling-signatures",
})  # fmt: skip
"""Flags that take no separate value: alone they mean true."""


RUNTIME_REASONS = frozenset({"StartError", "ContainerCannotRun", "ContainerStatusUnknown"})
"""Why a container ended before it could say a word: the message is the runtime's, not a piece of its log."""


def kept_annotations(annotations: dict[str, str] | None) -> dict[str, str] | None:
    """Return the annotations that some rule or join reads, or ``None`` if none is left."""
    if not annotations:
        return None
    return {k: v for k, v in annotations.items() if _is_kept(k)} or None


def _is_kept(key: str) -> bool:
    return key in KEPT_ANNOTATIONS or key.startswith(KEPT_ANNOTATION_PREFIXES)


def kept_pod_args(args: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return only Grove's start-order arguments (``--podcliques=NAME:COUNT``)."""
    return tuple(a for a in args or () if a.startswith("--podcliques=")) or None


def kept_scheduler_args(args: Iterable[str]) -> list[str]:
    """Return only the scheduler's own flags, each as ``--name=value``; a value may be the argument after its flag."""
    texts = list(args)
    kept: list[str] = []
    for arg, following in zip(texts, [*texts[1:], ""], strict=False):
        name, equals, text = arg.removeprefix("--").partition("=")
        if not arg.startswith("--") or name not in SCHEDULER_FLAGS:
            continue
        if not equals:
            text = "true" if name in SWITCHES else following
        kept.append(f"--{name}={text}")
    return kept
