"""From a snapshot to a shard's session: which objects the scheduler sees and in which state.

Mirrors pkg/scheduler/cache/cluster_info/cluster_info.go (KAI d5bc503a). Where the scheduler walks maps
in no order, names decide here, so the order of the snapshot's lists never matters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.config import SchedulerParams, Shard
from gangdash.engine.model.meta import Meta
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import BindRequest, PodGroup
from gangdash.engine.session.claims import PodClaims, claimed_gpus
from gangdash.engine.session.core import Session
from gangdash.engine.session.nodes import node_state
from gangdash.engine.session.queues import queue_tree
from gangdash.engine.session.requests import PodRequest, RequestMemo
from gangdash.engine.session.templates import number_templates
from gangdash.engine.session.tree import sub_group_tree
from gangdash.engine.statement import (
    ACTIVE_USED,
    DEFAULT_POD_SET,
    GPU,
    GpuRequest,
    JobState,
    Layout,
    Status,
    TaskState,
)
from gangdash.engine.statement.claims import is_gpu_name
from gangdash.engine.statement.node import UNKNOWN_GPU_MEMORY

GROUP_ANNOTATION = "pod-group-name"
SUB_GROUP_LABEL = "kai.scheduler/subgroup-name"
GPU_GROUP_LABEL = "runai-gpu-group"
GPU_GROUPS_PREFIX = "runai-gpu-group/"
APP_LABEL = "app"
SCALING_APP = "scaling-pod"
STALE_ANNOTATION = "kai.scheduler/stale-podgroup-timestamp"
START_ANNOTATION = "kai.scheduler/last-start-timestamp"
EVICTION_ANNOTATION = "kai.scheduler/last-eviction-timestamp"
DEFAULT_PRIORITY = 50
PREEMPTIBLE_BELOW = 100
"""Gangs of a lower priority are preemptible unless the PodGroup says otherwise."""
UNKNOWN_QUEUE = "QueueDoesNotExist"

_MEMO = RequestMemo()


def build_session(snapshot: ClusterSnapshot, shard: Shard) -> Session:
    """Return the session of one shard as it opens, before any rule has looked at it."""
    return _Builder(snapshot, shard).build()


def in_pool(meta: Meta, params: SchedulerParams) -> bool:
    """Whether a node, queue or PodGroup belongs to the shard's node pool."""
    key, value = params.node_pool_label_key, params.node_pool_label_value
    if not key:
        return True
    return meta.labels.get(key) == value if value else key not in meta.labels


def is_utility_pod(pod: Pod, params: SchedulerParams) -> bool:
    """Whether the pod is one the scheduler itself keeps: a GPU reservation or a scaling pod."""
    return pod.meta.labels.get(APP_LABEL) in {params.reservation_app_label, SCALING_APP}


def pod_status(pod: Pod, as_of: float, stuck_after: float, *, has_bind_request: bool) -> Status:
    """Return the state in which the scheduler takes a pod into a session."""
    if pod.phase == "Running":
        if pod.meta.deleted is None:
            return Status.RUNNING
        return Status.STUCK_IN_RELEASING if as_of - pod.meta.deleted > stuck_after else Status.RELEASING
    if pod.phase == "Pending":
        if pod.meta.deleted is not None:
            return Status.RELEASING
        if pod.node_name:
            return Status.BOUND
        if has_bind_request:
            return Status.BINDING
        return Status.GATED if pod.gates else Status.PENDING
    return Status.SUCCEEDED if pod.phase == "Succeeded" else Status.UNKNOWN


def is_backed_off(podgroup: PodGroup, params: SchedulerParams) -> bool:
    """Whether the scheduler leaves the gang alone because it failed once on its present node pool."""
    if podgroup.scheduling_backoff in {None, -1}:
        return False
    if not podgroup.scheduling_conditions:
        return False
    last = max(podgroup.scheduling_conditions, key=lambda condition: _number(condition.transition_id))
    return last.node_pool == podgroup.meta.labels.get(params.node_pool_label_key, "default")


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return -1


def _time(text: str | None) -> float | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


class _Builder:
    def __init__(self, snapshot: ClusterSnapshot, shard: Shard) -> None:
        self.snapshot = snapshot
        self.params = shard.config.params
        self.session = Session(snapshot, shard)
        self.claims = PodClaims(snapshot.resource_claims)
        self.pods = [pod for pod in snapshot.pods if pod.phase != "Failed"]
        self.bind_requests: dict[str, BindRequest] = {}
        self._node_names: set[str] = set()

    def build(self) -> Session:
        nodes = sorted((node for node in self.snapshot.nodes if self._takes_node(node)), key=lambda node: node.name)
        self._node_names = {node.name for node in nodes}
        requests = _MEMO.of((pod, self._claimed(pod)) for pod in self.pods if pod.phase != "Succeeded")
        names = {name for node in nodes for name in node.allocatable}
        names.update(name for request in requests.values() for name in request.names)
        self.session.layout = Layout(sorted(names))
        self._add_nodes(nodes)
        self._find_bind_requests()
        tasks = [self._task(pod, requests.get(id(pod))) for pod in sorted(self.pods, key=lambda pod: pod.key)]
        self._put_on_nodes(tasks)
        self.session.queues = queue_tree(
            (queue for queue in self.snapshot.queues if in_pool(queue.meta, self.params)),
            full_hierarchy=self.params.full_hierarchy_fairness,
            as_of=self.snapshot.as_of,
        )
        self._add_jobs(tasks)
        number_templates(self.session)
        return self.session

    # Nodes

    def _takes_node(self, node: Node) -> bool:
        if not in_pool(node.meta, self.params):
            return False
        workers = (self.params.gpu_worker_label_key, self.params.cpu_worker_label_key)
        return not self.params.restrict_node_scheduling or any(key in node.meta.labels for key in workers)

    def _add_nodes(self, nodes: list[Node]) -> None:
        session, layout = self.session, self.session.layout
        claimable: dict[str, int] = defaultdict(int)
        for piece in self.snapshot.resource_slices:
            if piece.node_name and is_gpu_name(piece.driver):
                claimable[piece.node_name] += len(piece.devices)
        backed = {cls.extended_resource for cls in self.snapshot.device_classes if cls.extended_resource}
        slots = [layout.index[name] for name in backed if name in layout.index and layout.index[name] != GPU]
        for index, node in enumerate(nodes):
            state = node_state(node, index, layout, self.params, claimable.get(node.name, 0))
            state.unbacked = tuple(slot for slot in slots if state.allocatable[slot] == 0)
            state.watchers = session.watchers
            session.nodes[node.name] = state
            session.all_nodes.append(state)
        session.backed_slots = frozenset(slots)
        known = [state.gpu_memory for state in session.nodes.values() if state.gpu_memory > UNKNOWN_GPU_MEMORY]
        session.min_gpu_memory = min(known, default=None)
        session.max_gpu_memory = max(known, default=None)

    # Tasks

    def _find_bind_requests(self) -> None:
        """Keep requests that have not failed for good and point to a node of the shard, by pod."""
        for request in sorted(self.snapshot.bind_requests, key=lambda request: request.meta.key):
            if request.node not in self.session.nodes:
                continue
            failed = request.phase == "Failed" and (
                request.backoff_limit is None or request.failed_attempts >= request.backoff_limit
            )
            key = f"{request.meta.namespace}/{request.pod_name}"
            if failed:
                self.bind_requests.pop(key, None)
            else:
                self.bind_requests[key] = request

    def _claimed(self, pod: Pod) -> Mapping[str, int]:
        """Return GPUs of the pod's claims; on a node of another shard they are not looked at."""
        on_other_node = bool(pod.node_name) and pod.node_name not in self._node_names
        return {} if on_other_node else claimed_gpus(self.claims.of(pod))

    def _task(self, pod: Pod, request: PodRequest | None) -> TaskState:
        session, layout = self.session, self.session.layout
        bind = self.bind_requests.get(pod.key)
        status = pod_status(pod, session.as_of, self.params.stuck_in_releasing, has_bind_request=bind is not None)
        if request is None:
            task = TaskState(pod, status, "", layout.zeros(), GpuRequest())
        else:
            vector = layout.from_amounts(request.amounts)
            vector[GPU] = request.gpu.gpus + request.gpu.claimed_count
            for name, count in request.gpu.mig.items():
                if name in layout.index:
                    vector[layout.index[name]] = count
            task = TaskState(pod, status, pod.node_name or (bind.node if bind is not None else ""), vector, request.gpu)
            task.kind = request.kind
            task.is_legacy_mig = request.is_legacy_mig
            self._add_placement(task, bind)
        task.request_amounts = layout.amounts(task.request)
        task.sub_group = pod.meta.labels.get(SUB_GROUP_LABEL, "") or DEFAULT_POD_SET
        session.tasks[task.uid] = task
        return task

    def _add_placement(self, task: TaskState, bind: BindRequest | None) -> None:
        pod, labels = task.pod, task.pod.meta.labels
        if bind is not None and bind.gpu_groups:
            task.gpu_groups = bind.gpu_groups
        elif GPU_GROUP_LABEL in labels:
            others = sorted(value for key, value in labels.items() if key.startswith(GPU_GROUPS_PREFIX))
            task.gpu_groups = (labels[GPU_GROUP_LABEL], *others)
        task.bind_node = bind.node if bind is not None else ""
        task.is_reservation = labels.get(APP_LABEL) == self.params.reservation_app_label
        if pod.overhead:
            task.overhead = self.session.layout.from_amounts(pod.overhead)
        if pod.claims:
            task.claims = self.claims.allocated(pod)

    def _put_on_nodes(self, tasks: list[TaskState]) -> None:
        for reservations in (True, False):
            for task in tasks:
                node = self.session.nodes.get(task.node_name)
                if node is None or task.is_reservation is not reservations or not task.status & ACTIVE_USED:
                    continue
                node.add(task)

    # Gangs

    def _add_jobs(self, tasks: list[TaskState]) -> None:
        members: dict[str, list[TaskState]] = defaultdict(list)
        for task in tasks:
            group = task.pod.meta.annotations.get(GROUP_ANNOTATION)
            if group:
                members[group].append(task)
        default = self._default_priority()
        priorities = {cls.meta.name: cls.value for cls in self.snapshot.priority_classes}
        aliases = {
            topology.name: {level.alias: level.node_label for level in topology.levels if level.alias}
            for topology in self.snapshot.topologies
        }
        for podgroup in sorted(self.snapshot.podgroups, key=lambda podgroup: (podgroup.meta.name, podgroup.key)):
            if not in_pool(podgroup.meta, self.params) or is_backed_off(podgroup, self.params):
                continue
            job = JobState(podgroup, sub_group_tree(podgroup, aliases), self.session.layout.zeros())
            self._rank(job, self._priority(job, members[job.key], priorities, default))
            self._stamp(job)
            self.session.jobs[job.key] = job
        for job in self.session.jobs.values():
            for task in members[job.key]:
                job.add_task(task)

    def _default_priority(self) -> int:
        """Return the value of the first global default by name: the API admits several and defines no order."""
        defaults = [cls for cls in self.snapshot.priority_classes if cls.global_default]
        return min(defaults, key=lambda cls: cls.meta.name).value if defaults else DEFAULT_PRIORITY

    def _priority(self, job: JobState, tasks: list[TaskState], priorities: Mapping[str, int], default: int) -> int:
        """Return the value of the gang's class; where classes could not be read, what its pods were admitted with."""
        value = priorities.get(job.podgroup.priority_class_name)
        if value is None and not self.snapshot.was_read("PriorityClass"):
            value = max((task.pod.priority for task in tasks if task.pod.priority is not None), default=None)
        return default if value is None else value

    def _rank(self, job: JobState, priority: int) -> None:
        podgroup = job.podgroup
        if podgroup.queue not in self.session.queues:
            job.add_error(UNKNOWN_QUEUE, f"Queue '{podgroup.queue}' does not exist")
            return
        job.priority = priority
        if podgroup.preemptibility in {"preemptible", "non-preemptible"}:
            job.is_preemptible = podgroup.preemptibility == "preemptible"
        else:
            job.is_preemptible = job.priority < PREEMPTIBLE_BELOW

    @staticmethod
    def _stamp(job: JobState) -> None:
        annotations = job.podgroup.meta.annotations
        job.stale_since = _time(annotations.get(STALE_ANNOTATION))
        job.last_start = _time(annotations.get(START_ANNOTATION))
        job.last_eviction = _time(annotations.get(EVICTION_ANNOTATION))
