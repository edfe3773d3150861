"""What every gang of a shard asks again about its nodes, worked out once: lost devices, stuck pods, refusals by demand.

Holds for the session as it opened. Answers that depend on what else runs on a node are not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from gangdash.engine.explain.devices import missing_gpus
from gangdash.engine.explain.numa import Zones, strict_zones
from gangdash.engine.explain.refusal import refusals
from gangdash.engine.identifiers import NodeReason
from gangdash.engine.rules.affinity import has_terms
from gangdash.engine.session import GPU, JobState, Session, Status, TaskState, Vector

Row = list[frozenset[NodeReason]]


class Stock:
    """The nodes of one session, by index."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.missing = [missing_gpus(node.node) for node in session.all_nodes]
        self.stuck: list[Vector | None] = [_stuck(placed) for placed in _charges(session)]
        self._rows: dict[str, Row] = {}

    @cached_property
    def zones(self) -> dict[str, Zones]:
        return strict_zones(self.session.snapshot, self.session.shard)

    @cached_property
    def _has_terms(self) -> bool:
        """Whether any pod has inter-pod terms, so that a node's answer depends on the pods there."""
        return any(has_terms(task.pod) for task in self.session.tasks.values())

    def row(self, job: JobState, task: TaskState) -> Row:
        """Return why each node refuses the task, amounts aside."""
        key = None if self._depends_on_pods(task) else _demand_key(task)
        if key is None:
            return self._work_out(job, task)
        if key not in self._rows:
            self._rows[key] = self._work_out(job, task)
        return self._rows[key]

    def _depends_on_pods(self, task: TaskState) -> bool:
        pod = task.pod
        return (
            self._has_terms
            or bool(pod.claims or pod.volumes.claims or pod.volumes.ephemeral)
            or task.asks_shared_gpu
            or any(container.host_ports for container in pod.containers)
        )

    def _work_out(self, job: JobState, task: TaskState) -> Row:
        row = []
        for node in self.session.all_nodes:
            found = refusals(self.session, job, task, node)
            zones = self.zones.get(node.name)
            if zones is not None and zones.best < task.request[GPU] <= zones.total:
                found |= {NodeReason.NUMA}
            row.append(found)
        return row


def _charges(session: Session) -> list[list[Vector]]:
    """Return what stuck terminating pods hold, by node."""
    return [
        [placed.charge for placed in node.placed.values() if placed.status is Status.STUCK_IN_RELEASING]
        for node in session.all_nodes
    ]


def _stuck(charges: Sequence[Vector]) -> Vector | None:
    return [sum(amounts) for amounts in zip(*charges, strict=True)] if charges else None


def _demand_key(task: TaskState) -> str:
    """Return text that is equal for tasks with the same demands on nodes."""
    pod = task.pod
    shape = (task.kind, task.asks_gpu, task.gpu.memory > 0, task.is_legacy_mig, task.request[GPU])
    return repr((shape, sorted(pod.node_selector.items()), pod.affinity, pod.tolerations))
