"""Which nodes with GPUs the waiting pods of a gang may never use, whatever is free there.

By what their spec and the node's labels, taints and node pool say alone; the replay weighs everything. Gangs with the
same such nodes share one filter, named by its content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.digest import text
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Pod
from gangdash.engine.rules.matching import node_matches_pod, untolerated_taint

NO_FILTER = ""


@dataclass(slots=True)
class NodeFilters:
    """``barred`` are names of nodes by the filter's key."""

    nodes: Sequence[Node]
    pool_label: str
    barred: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _by_spec: dict[str, frozenset[str]] = field(default_factory=dict)

    def of(self, pods: Iterable[Pod], pool: str) -> str:
        """Return the key of the filter for these pods: nodes that none of them may use; empty where there is none."""
        waiting = [self._of_spec(pod, pool) for pod in pods]
        names = tuple(sorted(frozenset.intersection(*waiting))) if waiting else ()
        if not names:
            return NO_FILTER
        key = hashlib.blake2b("\n".join(names).encode(), digest_size=16).hexdigest()
        self.barred[key] = names
        return key

    def _of_spec(self, pod: Pod, pool: str) -> frozenset[str]:
        spec = text((pod.node_selector, pod.affinity, pod.tolerations, pool))
        if spec not in self._by_spec:
            self._by_spec[spec] = frozenset(node.name for node in self.nodes if self._bars(node, pod, pool))
        return self._by_spec[spec]

    def _bars(self, node: Node, pod: Pod, pool: str) -> bool:
        if node.meta.labels.get(self.pool_label, "") != pool:
            return True
        return not node_matches_pod(pod, node) or untolerated_taint(pod, node) is not None


def node_filters(snapshot: ClusterSnapshot, gpus: Mapping[str, float]) -> NodeFilters:
    """Return the filters of a reading, none made yet; ``gpus`` are those of each node by its name."""
    params = snapshot.shards[0].config.params if snapshot.shards else None
    nodes = [node for node in snapshot.nodes if gpus.get(node.name)]
    return NodeFilters(nodes, params.node_pool_label_key if params is not None else "")
