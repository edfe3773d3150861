"""Which nodes may host a pod once resources are not the question? The checks per pod and node, in order.

GPU mode, GPU memory label, pod slots, node state, ports, taints, node affinity, inter-pod affinity, volumes,
restricted scheduling, claimed devices. The scheduler runs the Kubernetes filters in random order; here the
order is fixed, and ``all_failures`` gives every reason. Queue capacity and resource fit are other rules.
Mirrors pkg/scheduler/plugins/predicates and api/node_info (KAI d5bc503a). Answers that depend on labels,
taints and shape alone are kept per node for all tasks with the same demands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gangdash.engine.model.pod import HostPort
from gangdash.engine.model.selectors import NodeSelectorTerm, Toleration
from gangdash.engine.rules.affinity import AffinityState, affinity_index, remembered
from gangdash.engine.rules.gpu_sharing import choose_groups
from gangdash.engine.rules.matching import host_ports, node_matches_pod, ports_conflict, untolerated_taint
from gangdash.engine.rules.prepredicates import PrePredicates
from gangdash.engine.rules.volumes import VolumeRules
from gangdash.engine.session import PODS, JobState, NodeState, RequestKind, Session, TaskState

PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"
UNTOLERATED = "node(s) had untolerated taint(s)"
AFFINITY_MISMATCH = "node(s) didn't match Pod's node affinity/selector"
PODS_EXCEEDED = "node(s) pod number exceeded"
CLAIMED_ONLY = "fractional/shared GPU pods are not yet supported on DRA-only nodes"
NOT_MIG = "MIG job cannot be scheduled on non-MIG node"
SINGLE_STRATEGY = "only whole gpu jobs can run on a node with MigStrategy='single'"
MIXED_STRATEGY = "non MIG jobs cant run on a node with MigStrategy='mixed'"


_Demands = tuple[
    frozenset[tuple[str, str]], tuple[NodeSelectorTerm, ...] | None, tuple[Toleration, ...], tuple[object, ...]
]


class _Fixed(NamedTuple):
    """What tasks with the same demands meet on a node, whatever else runs there."""

    mode: bool
    state: bool
    taint: bool
    affinity: bool
    restricted: bool


def install(session: Session) -> None:
    """Hang the checks into a session's hooks."""
    rules = Predicates(session)
    session.hooks.pre_predicates.append(rules.pre_filter)
    session.hooks.victim_invariants.append(rules.pre.victim_invariant_error)
    session.hooks.predicates.append(rules.first_failure)
    session.hooks.all_failures.append(rules.all_failures)
    session.hooks.excludes.append(rules.is_excluded)


class Predicates:
    """The pod and node checks of one session; listens to its statements to know which ports are taken."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._params = session.params
        snapshot = session.snapshot
        self._checks_volumes = snapshot.was_read("PersistentVolumeClaim")
        self.volumes = VolumeRules(snapshot, ignore_space=self._params.schedule_csi_storage)
        self.pre = PrePredicates(session, self.volumes)
        self._affinity = affinity_index(session)
        self._known = remembered(session)
        self._by_demand: dict[_Demands, dict[int, _Fixed]] = {}
        self._answers: dict[str, dict[int, _Fixed]] = {}
        """Per task uid the answers by node index that it shares with all tasks of equal demands."""
        self._ports: dict[str, dict[str, tuple[HostPort, ...]]] = {}
        self._legacy_mig: dict[str, list[str]] = {}
        has_ports = any(host_ports(task.pod) for task in session.tasks.values())
        if has_ports:
            session.listeners.append(self)
        self._take_stock(session)
        self._is_simple = not (self._legacy_mig or self._affinity.active or has_ports)
        """Whether no port, no other pod and no old MIG pod has a say in this session."""

    def _take_stock(self, session: Session) -> None:
        for node in session.nodes.values():
            for placed in node.placed.values():
                self.node_added(placed.task, node)
                if placed.task.is_legacy_mig:
                    self._legacy_mig.setdefault(node.name, []).append(placed.task.key)

    # Which ports are taken

    def node_added(self, task: TaskState, node: NodeState) -> None:
        ports = host_ports(task.pod)
        if ports:
            self._ports.setdefault(node.name, {})[task.key] = ports

    def node_removed(self, task: TaskState, node: NodeState) -> None:
        if node.name in self._ports:
            self._ports[node.name].pop(task.key, None)

    def allocated(self, task: TaskState, node: NodeState) -> None:
        """Ports go by what is on a node, not by who holds what."""

    def released(self, task: TaskState, node: NodeState) -> None:
        """Ports go by what is on a node, not by who holds what."""

    # Once per pod and attempt

    def pre_filter(self, task: TaskState, job: JobState) -> str:
        """Return the error that keeps the pod from every node, empty when it may be tried.

        Also takes stock of the pods that matter to its affinity terms. A pod found free of such terms
        once stays so for the session, even if a pod that excludes it is placed later: a quirk of the scheduler.
        """
        self._note_affinity(task)
        errors = self.pre.errors(task)
        if not errors:
            return ""
        lines = "".join(f"{name}: {message}.\n" for name, message in errors)
        return f"Scheduling conditions were not met for pod {task.namespace}/{task.name}:\n{lines}"

    def _note_affinity(self, task: TaskState) -> AffinityState | None:
        if not self._affinity.active or task.uid in self._known.free:
            return None
        state = self._affinity.pre_filter(task.pod)
        if state is None:
            self._known.free.add(task.uid)
        else:
            self._known.states[task.uid] = state
        return state

    # Per pod and node

    def first_failure(self, task: TaskState, job: JobState, node: NodeState) -> tuple[str, ...]:
        """Return the reasons of the first check that refuses the node, empty when none does."""
        if self._is_simple and not task.asks_shared_gpu and self._fixed_answer(task, node) is _PASSES:
            volumes = task.pod.volumes
            if node.idle[PODS] + node.releasing[PODS] > 0 and not (volumes.claims or volumes.ephemeral):
                return ()
        return next(self._failures(task, node), ())

    def all_failures(self, task: TaskState, job: JobState, node: NodeState) -> tuple[str, ...]:
        """Return the reasons of every check that refuses the node, each once."""
        return tuple(dict.fromkeys(reason for reasons in self._failures(task, node) for reason in reasons))

    def is_excluded(self, task: TaskState, node: NodeState) -> bool:
        """Whether labels, taints, state or shape alone keep the task off the node, whatever else happens there."""
        return self._fixed_answer(task, node) != _PASSES

    def _failures(self, task: TaskState, node: NodeState) -> Iterator[tuple[str, ...]]:
        fixed = self._fixed_answer(task, node)
        if not fixed.mode or (self._legacy_mig and task.kind is RequestKind.MIG):
            yield from self._mode_failures(task, node)
        if self._lacks_pod_slot(task, node):
            yield (PODS_EXCEEDED,)
        if not fixed.state:
            yield node.not_ready
        yield from self._kubernetes_failures(task, node, fixed)
        if not fixed.restricted:
            yield (self._restriction_text(task, node),)

    def _kubernetes_failures(self, task: TaskState, node: NodeState, fixed: _Fixed) -> Iterator[tuple[str, ...]]:
        if self._ports and self._ports_taken(task, node):
            yield (PORTS_TAKEN,)
        if not fixed.taint:
            yield (UNTOLERATED,)
        if not fixed.affinity:
            yield (AFFINITY_MISMATCH,)
        if self._affinity.active:
            yield from self._affinity_failures(task, node)
        volumes = task.pod.volumes
        if self._checks_volumes and (volumes.claims or volumes.ephemeral):
            reasons = self.volumes.failures(task.pod, node.node)
            if reasons:
                yield reasons

    def _fixed_answer(self, task: TaskState, node: NodeState) -> _Fixed:
        answers = self._answers.get(task.uid)
        if answers is None:
            answers = self._answers[task.uid] = self._by_demand.setdefault(_demands(task), {})
        answer = answers.get(node.index)
        if answer is None:
            found = self._work_out(task, node)
            answer = answers[node.index] = _PASSES if found == _PASSES else found
        return answer

    def _work_out(self, task: TaskState, node: NodeState) -> _Fixed:
        return _Fixed(
            mode=not any(_mode_failures(task, node, ())),
            state=not node.not_ready,
            taint=untolerated_taint(task.pod, node.node) is None,
            affinity=node_matches_pod(task.pod, node.node),
            restricted=not self._params.restrict_node_scheduling or self._worker_label(task) in node.node.meta.labels,
        )

    def _mode_failures(self, task: TaskState, node: NodeState) -> Iterator[tuple[str, ...]]:
        for reason in _mode_failures(task, node, sorted(self._legacy_mig.get(node.name, ()))):
            yield (reason,)

    def _lacks_pod_slot(self, task: TaskState, node: NodeState) -> bool:
        """A new shared GPU needs room for its reservation pod too."""
        free = node.idle[PODS] + node.releasing[PODS]
        if not task.asks_shared_gpu:
            return free <= 0
        return free < 2 and self._opens_group(task, node)

    def _opens_group(self, task: TaskState, node: NodeState) -> bool:
        """Only groups named by a number are taken for existing ones, so on most clusters every group is new."""
        choice = choose_groups(self._session, task, node, pipeline_only=True)
        return choice is None or any(not group.isdecimal() for group in choice.groups)

    def _ports_taken(self, task: TaskState, node: NodeState) -> bool:
        used, wanted = self._ports.get(node.name), host_ports(task.pod)
        return bool(used and wanted) and ports_conflict(wanted, [p for ports in (used or {}).values() for p in ports])

    def _affinity_failures(self, task: TaskState, node: NodeState) -> Iterator[tuple[str, ...]]:
        if task.uid in self._known.free:
            return
        state = self._known.states.get(task.uid) or self._note_affinity(task)
        reason = self._affinity.failure(state, node.node) if state is not None else ""
        if reason:
            yield (reason,)

    def _worker_label(self, task: TaskState) -> str:
        return self._params.gpu_worker_label_key if task.asks_gpu else self._params.cpu_worker_label_key

    def _restriction_text(self, task: TaskState, node: NodeState) -> str:
        kind = "gpu" if task.asks_gpu else "cpu"
        return f"{kind} task: <{task.namespace}/{task.name}> can't run on non {kind} nodes, node: <{node.name}>"


_PASSES = _Fixed(mode=True, state=True, taint=True, affinity=True, restricted=True)


def _mode_failures(task: TaskState, node: NodeState, legacy: list[str] | tuple[str, ...]) -> Iterator[str]:
    """Yield why the node's way of offering GPUs does not suit the task; ``legacy`` are old MIG pods on it."""
    if task.is_legacy_mig:
        yield f"Legacy MIG jobs cannot be scheduled on node {node.name}"
    if task.asks_gpu:
        is_mig_task = task.kind is RequestKind.MIG
        if node.has_claimed_gpus and task.asks_shared_gpu:
            yield CLAIMED_ONLY
        if is_mig_task and not node.is_mig:
            yield NOT_MIG
        if node.is_mig and is_mig_task and legacy:
            yield f"MIG job cannot be scheduled on node with legacy MIG jobs: <[{' '.join(legacy)}]>"
        if node.is_mig and node.mig_strategy == "single" and task.kind is not RequestKind.REGULAR:
            yield SINGLE_STRATEGY
        if node.is_mig and node.mig_strategy == "mixed" and not is_mig_task:
            yield MIXED_STRATEGY
    if task.gpu.memory > 0 and not node.has_gpu_memory:
        yield (
            "node is not a gpu node or the gpu memory count on the node was not synced yet,"
            f" task: <{task.namespace}/{task.name}>, node: <{node.name}>"
        )


def _demands(task: TaskState) -> _Demands:
    """Return everything of a task that its fixed answers depend on."""
    pod = task.pod
    required = pod.affinity.node_required if pod.affinity is not None else None
    selector = frozenset(pod.node_selector.items())
    shape = (task.kind, task.asks_gpu, task.gpu.memory > 0, task.is_legacy_mig)
    return selector, required, pod.tolerations, shape
