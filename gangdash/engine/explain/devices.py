"""GPUs that a node has and does not offer: unhealthy ones, and all of them where no device plugin reports.

Relies on capacity against allocatable, on the labels that GPU discovery sets, and on the device plugin's DaemonSet
and pods where they were read.
"""

from __future__ import annotations

from gangdash.engine.identifiers import NodeReason
from gangdash.engine.model.node import Node
from gangdash.engine.model.resources import GPU_NAMES, MIG_PREFIX

COUNT_LABEL = "nvidia.com/gpu.count"


def offered_gpus(node: Node) -> int:
    return sum(node.allocatable.get(name, 0) for name in GPU_NAMES)


def has_mig(node: Node) -> bool:
    return any(name.startswith(MIG_PREFIX) and count > 0 for name, count in node.capacity.items())


def known_gpus(node: Node) -> int:
    """Return how many GPUs the node has, by its capacity or by the label that discovery sets."""
    capacity = sum(node.capacity.get(name, 0) for name in GPU_NAMES)
    label = node.meta.labels.get(COUNT_LABEL, "")
    return max(capacity, int(label)) if label.isdecimal() and not has_mig(node) else capacity


def missing_gpus(node: Node) -> tuple[NodeReason, float] | None:
    """Return why and how many GPUs of the node are not offered; None when all are."""
    offered, known = offered_gpus(node), known_gpus(node)
    if known <= offered:
        return None
    reason = NodeReason.DEVICES_UNHEALTHY if offered else NodeReason.NO_DEVICE_PLUGIN
    return reason, float(known - offered)
