"""The working state of one pod in a cycle.

What the API said stays in ``pod``; everything a statement changes is in the other fields, and
``save``/``restore`` carry exactly those. Mirrors pkg/scheduler/api/pod_info/pod_info.go (KAI d5bc503a).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gangdash.engine.model.pod import Pod
from gangdash.engine.statement.claims import Claims
from gangdash.engine.statement.request import GpuRequest, RequestKind
from gangdash.engine.statement.status import Status
from gangdash.engine.statement.vectors import NO_AMOUNTS, Amounts, Vector

if TYPE_CHECKING:
    from gangdash.engine.statement.job import JobState, PodSet

DEFAULT_POD_SET = "default"


class Gift(NamedTuple):
    """What a node gives a task, GPUs of whatever kind included."""

    asked: Vector
    """The very request that it answers."""
    gpu: GpuRequest
    vector: Vector
    amounts: Amounts


class TaskMemo(NamedTuple):
    """The changeable fields of a task at one moment."""

    status: Status
    node_name: str
    gpu_groups: tuple[str, ...]
    is_virtual: bool
    accepted: Vector
    accepted_amounts: Amounts
    accepted_gpu: GpuRequest
    is_shared: bool
    claims: Claims | None


class TaskState:
    """A pod in the cycle. ``job`` is ``None`` for pods of no gang of this shard: they only hold capacity."""

    __slots__ = (
        "accepted",
        "accepted_amounts",
        "accepted_gpu",
        "bind_node",
        "claims",
        "gpu",
        "gpu_groups",
        "is_legacy_mig",
        "is_reservation",
        "is_shared",
        "is_virtual",
        "job",
        "key",
        "kind",
        "name",
        "namespace",
        "node_name",
        "order",
        "overhead",
        "pod",
        "pod_set",
        "request",
        "request_amounts",
        "start_node",
        "start_status",
        "status",
        "sub_group",
        "template",
        "uid",
        "whole_gift",
    )

    def __init__(self, pod: Pod, status: Status, node_name: str, request: Vector, gpu: GpuRequest) -> None:
        self.pod = pod
        self.key = pod.key
        self.uid = pod.meta.uid or pod.key
        self.name = pod.meta.name
        self.namespace = pod.meta.namespace
        self.status = status
        self.node_name = node_name
        self.start_status = status
        """Status and node when the cycle began."""
        self.start_node = node_name
        self.request = request
        """What it asks, GPU slot included; 0 GPUs for a gpu-memory request."""
        self.request_amounts: Amounts = NO_AMOUNTS
        self.gpu = gpu
        self.kind = RequestKind.REGULAR
        self.accepted: Vector = [0] * len(request)
        """What its node gives it (set when it is put on a node): a memory request has its share here."""
        self.accepted_amounts: Amounts = NO_AMOUNTS
        self.accepted_gpu = GpuRequest()
        self.whole_gift: Gift | None = None
        """What any node gives it where it shares no GPU, once worked out."""
        self.is_shared = False
        """Whether what it holds is part of shared GPUs, named in ``gpu_groups``."""
        self.gpu_groups: tuple[str, ...] = ()
        self.is_virtual = False
        """Changed by a statement that is not committed (or only in memory): may be placed again in a simulation."""
        self.is_legacy_mig = False
        self.is_reservation = False
        self.overhead: Vector | None = None
        self.claims: Claims | None = None
        """Devices behind its resource claims, held or promised; ``None`` without claims."""
        self.bind_node = ""
        """The node of a BindRequest that counts, if the pod has one."""
        self.job: JobState | None = None
        self.pod_set: PodSet | None = None
        """``None`` while the pod names a subgroup that does not exist."""
        self.sub_group = DEFAULT_POD_SET
        self.order: tuple[object, ...] = ()
        """Sort key of the task order inside a pod set."""
        self.template = 0
        """Tasks with the same number ask for the same and are refused by the same nodes."""

    @property
    def asks_gpu(self) -> bool:
        """Whether it asks for any kind of GPU."""
        gpu = self.gpu
        return (
            self.kind in (RequestKind.GPU_MEMORY, RequestKind.MIG)
            or gpu.gpus > 0
            or bool(gpu.claimed and gpu.claimed_count)
        )

    @property
    def asks_shared_gpu(self) -> bool:
        return self.kind in (RequestKind.FRACTION, RequestKind.GPU_MEMORY)

    def can_be_placed(self, *, real: bool) -> bool:
        """Whether a step may take it: pending, or in a simulation (not ``real``) also a victim of that simulation."""
        return self.status is Status.PENDING or (not real and self.status is Status.RELEASING and self.is_virtual)

    def save(self) -> TaskMemo:
        return TaskMemo(
            self.status,
            self.node_name,
            self.gpu_groups,
            self.is_virtual,
            self.accepted,
            self.accepted_amounts,
            self.accepted_gpu,
            self.is_shared,
            self.claims,
        )

    def restore(self, memo: TaskMemo) -> None:
        """Put the fields back; the counters of its gang are the caller's business."""
        self.status = memo.status
        self.node_name = memo.node_name
        self.gpu_groups = memo.gpu_groups
        self.is_virtual = memo.is_virtual
        self.accepted = memo.accepted
        self.accepted_amounts = memo.accepted_amounts
        self.accepted_gpu = memo.accepted_gpu
        self.is_shared = memo.is_shared
        self.claims = memo.claims

    def __repr__(self) -> str:
        return f"<task {self.key} {self.status.name} on {self.node_name or '-'}>"
