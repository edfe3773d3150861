"""Numbers for tasks that ask for the same and nodes that offer the same, so that answers can be shared.

Two tasks of one template are refused by the same nodes as far as labels, taints, node state and shape
decide; ports, volumes, claims and other pods are not part of it. Of a node's labels only those count that
some pod's selector or affinity reads: host names would otherwise make every node its own template.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gangdash.engine.model import digest
from gangdash.engine.model.pod import Pod
from gangdash.engine.session.core import Session
from gangdash.engine.statement import NodeState, TaskState


def number_templates(session: Session) -> None:
    """Give every task and node of the session the number of its template."""
    tasks: dict[object, int] = {}
    for task in session.tasks.values():
        task.template = tasks.setdefault(_task_key(task), len(tasks))
    params = session.params
    read = {params.gpu_worker_label_key, params.cpu_worker_label_key}
    read.update(key for task in session.tasks.values() for key in _label_keys(task.pod))
    keys = sorted(read)
    nodes: dict[object, int] = {}
    for node in session.nodes.values():
        node.template = nodes.setdefault(_node_key(node, keys), len(nodes))


def _task_key(task: TaskState) -> object:
    pod, gpu = task.pod, task.gpu
    return (
        tuple(task.request),
        task.kind,
        task.is_legacy_mig,
        (gpu.count, gpu.portion, gpu.memory, tuple(sorted(gpu.claimed.items())), tuple(sorted(gpu.mig.items()))),
        tuple(sorted(pod.node_selector.items())),
        digest.text(pod.affinity) if pod.affinity is not None else "",
        pod.tolerations,
        tuple(sorted(pod.overhead.items())),
    )


def _node_key(node: NodeState, label_keys: Iterable[str]) -> object:
    labels = node.node.meta.labels
    return (
        tuple(labels.get(key) for key in label_keys),
        node.node.taints,
        node.not_ready,
        tuple(node.allocatable),
        (node.gpu_memory, node.has_gpu_memory, node.gpu_count, node.has_claimed_gpus),
        (node.is_mig, node.mig_strategy, node.is_cpu_only),
    )


def _label_keys(pod: Pod) -> Iterator[str]:
    yield from pod.node_selector
    if pod.affinity is not None:
        terms = [*(pod.affinity.node_required or ()), *(preferred.term for preferred in pod.affinity.node_preferred)]
        for term in terms:
            yield from (requirement.key for requirement in term.match_expressions)
