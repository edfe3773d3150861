"""One PodGroup as a reader sees it: which pods it has, in which state, how many it needs, who made it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gangdash.engine.chain.index import controller
from gangdash.engine.explain.context import Context
from gangdash.engine.model.config import SchedulerParams, Shard
from gangdash.engine.model.cycle import GangResult
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import BindRequest, PodGroup
from gangdash.engine.session.build import PREEMPTIBLE_BELOW, SUB_GROUP_LABEL, pod_status
from gangdash.engine.session.requests import asked_gpus
from gangdash.engine.session.tree import sub_group_tree
from gangdash.engine.statement import DEFAULT_POD_SET, Amounts, JobState, PodSet, Status, SubGroupSet
from gangdash.engine.statement.status import ACTIVE_ALLOCATED, ALIVE, ALLOCATED


@dataclass(frozen=True, slots=True)
class Part:
    """One subgroup with pods: its minimum and its pods by what they are."""

    name: str
    minimum: int
    pods: tuple[Pod, ...]
    alive: int
    gated: int
    placed: int

    @property
    def is_ready(self) -> bool:
        return self.alive - self.gated >= self.minimum


class Gang:
    """A PodGroup with its pods; all lists are in the order of the pods' names."""

    def __init__(self, context: Context, podgroup: PodGroup) -> None:
        self.context = context
        self.podgroup = podgroup
        self.meta = podgroup.meta
        self.shard: Shard | None = context.shard_of(podgroup.meta)
        self.pods = context.members(podgroup)

    def __repr__(self) -> str:
        return f"<gang {self.podgroup.key}>"

    @property
    def params(self) -> SchedulerParams:
        return self.shard.config.params if self.shard is not None else self.context.params

    @property
    def as_of(self) -> float:
        return self.context.as_of

    @property
    def result(self) -> GangResult | None:
        return self.context.results.get((self.meta.namespace, self.meta.name))

    # Pods by state

    def bind_request(self, pod: Pod) -> BindRequest | None:
        return self.context.bind_requests.get((pod.meta.namespace, pod.meta.name))

    def has_live_bind_request(self, pod: Pod) -> bool:
        """Whether the scheduler takes the pod as being bound: its request has not failed for good."""
        request = self.bind_request(pod)
        if request is None or request.node not in self.context.nodes:
            return False
        limit = request.backoff_limit
        return not (request.phase == "Failed" and (limit is None or request.failed_attempts >= limit))

    def status(self, pod: Pod) -> Status:
        if pod.phase == "Failed":
            return Status.FAILED
        return pod_status(
            pod, self.as_of, self.params.stuck_in_releasing, has_bind_request=self.has_live_bind_request(pod)
        )

    @cached_property
    def statuses(self) -> dict[str, Status]:
        return {pod.key: self.status(pod) for pod in self.pods}

    def having(self, statuses: int) -> list[Pod]:
        return [pod for pod in self.pods if self.statuses[pod.key] & statuses]

    @cached_property
    def placed(self) -> list[Pod]:
        """Pods that hold a node and keep it, those being bound included."""
        return self.having(ACTIVE_ALLOCATED)

    @cached_property
    def bound(self) -> list[Pod]:
        """Pods with a node of their own, not merely a BindRequest."""
        return [pod for pod in self.placed if pod.node_name]

    @cached_property
    def binding(self) -> list[Pod]:
        return self.having(Status.BINDING)

    @cached_property
    def pending(self) -> list[Pod]:
        return self.having(Status.PENDING)

    @cached_property
    def gated(self) -> list[Pod]:
        return self.having(Status.GATED)

    @cached_property
    def finished(self) -> list[Pod]:
        return self.having(Status.SUCCEEDED)

    @cached_property
    def failed(self) -> list[Pod]:
        return self.having(Status.FAILED)

    @cached_property
    def terminating(self) -> list[Pod]:
        return self.having(Status.RELEASING | Status.STUCK_IN_RELEASING)

    @cached_property
    def alive(self) -> list[Pod]:
        return self.having(ALIVE)

    # What it needs

    @cached_property
    def root(self) -> SubGroupSet:
        aliases = {
            topology.name: {level.alias: level.node_label for level in topology.levels if level.alias}
            for topology in self.context.snapshot.topologies
        }
        return sub_group_tree(self.podgroup, aliases)

    @cached_property
    def parts(self) -> dict[str, Part]:
        """Leaf subgroups by name, in the order of the tree."""
        return {leaf.name: self._part(leaf) for leaf in self.root.descendants()}

    def _part(self, leaf: PodSet) -> Part:
        pods = [pod for pod in self.pods if (pod.meta.labels.get(SUB_GROUP_LABEL) or DEFAULT_POD_SET) == leaf.name]
        states = [self.statuses[pod.key] for pod in pods]
        return Part(
            name=leaf.name,
            minimum=leaf.min_available,
            pods=tuple(pods),
            alive=sum(1 for state in states if state & ALIVE),
            gated=sum(1 for state in states if state is Status.GATED),
            placed=sum(1 for state in states if state & ACTIVE_ALLOCATED),
        )

    @cached_property
    def strangers(self) -> list[Pod]:
        """Pods whose subgroup label names none of the gang's subgroups; they count for nothing."""
        return [
            pod for pod in self.alive if (pod.meta.labels.get(SUB_GROUP_LABEL) or DEFAULT_POD_SET) not in self.parts
        ]

    @cached_property
    def needed(self) -> int:
        """Pods that the gang needs in order to start: the smallest sum that its minimums allow."""
        return _needed(self.root)

    @cached_property
    def is_ready(self) -> bool:
        """Whether enough ungated pods exist for the scheduler to try."""
        return self._is_ready(self.root)

    def _is_ready(self, group: SubGroupSet) -> bool:
        ready = sum(self._is_ready(child) for child in group.groups)
        ready += sum(self.parts[leaf.name].is_ready for leaf in group.pod_sets)
        return ready >= group.minimum

    @cached_property
    def is_satisfied(self) -> bool:
        """Whether enough pods hold nodes."""
        return self._is_satisfied(self.root)

    def _is_satisfied(self, group: SubGroupSet) -> bool:
        done = sum(self._is_satisfied(child) for child in group.groups)
        done += sum(self.parts[leaf.name].placed >= leaf.min_available for leaf in group.pod_sets)
        return done >= group.minimum

    @cached_property
    def short_parts(self) -> list[Part]:
        """Subgroups with fewer ungated pods than their minimum."""
        return [part for part in self.parts.values() if not part.is_ready]

    @cached_property
    def waits(self) -> bool:
        """Whether some pod has no node yet, or members are missing."""
        return bool(self.pending or self.gated or self.binding) or not (self.is_ready or self.is_over)

    @cached_property
    def is_over(self) -> bool:
        """Whether it has run to its end: pods have finished and none waits, or who made it is gone or done."""
        if self.pending or self.gated or self.binding:
            return False
        if self.finished or self.is_ending:
            return True
        return not self.alive and (self.is_abandoned or self._owner_is_done)

    @property
    def is_ending(self) -> bool:
        """Whether all that is left of it is terminating."""
        return bool(self.terminating) and not self.alive

    @cached_property
    def is_abandoned(self) -> bool:
        """Whether the object that made it no longer exists, though objects of its kind were read."""
        ref = controller(self.meta)
        if ref is None or self.context.owner(self.meta) is not None:
            return False
        if ref.kind == "Pod":
            return (self.meta.namespace, ref.name) not in self.context.pods
        return self.context.snapshot.was_read(ref.kind)

    @property
    def _owner_is_done(self) -> bool:
        owner = self.context.owner(self.meta)
        done = {"Complete", "Failed", "Succeeded"}
        return owner is not None and any(c.type in done and c.status == "True" for c in owner.conditions)

    @property
    def job(self) -> JobState | None:
        """The gang as the scheduler holds it when its session opens; None when it does not see it."""
        if self.shard is None:
            return None
        job = self.context.session(self.shard).jobs.get(self.meta.name)
        return job if job is not None and job.podgroup is self.podgroup else None

    @cached_property
    def held(self) -> Amounts:
        """CPU, memory and GPUs that the gang's placed pods are charged to its queue."""
        tasks = self.job.tasks.values() if self.job is not None else ()
        held = [task.accepted_amounts for task in tasks if task.start_status & ALLOCATED]
        return (sum(a[0] for a in held), sum(a[1] for a in held), sum(a[2] for a in held))

    # What it asks

    def gpus(self, pod: Pod) -> float:
        """Return the GPUs a pod asks for, fractions included; a memory request counts as its device."""
        return asked_gpus(pod)

    @cached_property
    def priority(self) -> int:
        classes = {item.meta.name: item for item in self.context.snapshot.priority_classes}
        named = classes.get(self.podgroup.priority_class_name)
        if named is not None:
            return named.value
        if self.podgroup.priority_class_name and not self.context.snapshot.was_read("PriorityClass"):
            told = next((pod.priority for pod in self.pods if pod.priority is not None), None)
            if told is not None:
                return told
        default = min(
            (item for item in classes.values() if item.global_default), key=lambda i: i.meta.name, default=None
        )
        return default.value if default is not None else 50

    @cached_property
    def is_preemptible(self) -> bool:
        if self.podgroup.preemptibility:
            return self.podgroup.preemptibility == "preemptible"
        return self.priority < PREEMPTIBLE_BELOW

    # Who made it

    @cached_property
    def owners(self) -> list[ObservedObject]:
        """Return the chain of controllers of the PodGroup, or of its pods where it has none, nearest first."""
        chain = self.context.owners(self.meta)
        if chain:
            return chain
        first = self.context.pods.get((self.meta.namespace, ref.name)) if (ref := controller(self.meta)) else None
        for pod in (first, *self.pods):
            chain = self.context.owners(pod.meta) if pod is not None else []
            if chain:
                return chain
        return []

    @property
    def owner_ref(self) -> str:
        """``Kind/namespace/name`` of the top owner; empty when it has none."""
        if self.owners:
            return self.owners[-1].ref
        ref = controller(self.meta)
        return f"{ref.kind}/{self.meta.namespace}/{ref.name}" if ref is not None else ""

    def owner_of_kind(self, *kinds: str) -> ObservedObject | None:
        return next((owner for owner in self.owners if owner.kind in kinds), None)

    @cached_property
    def makers(self) -> list[ObservedObject]:
        """The objects that create the gang's pods: its owners' first link, and those of all its pods."""
        found: dict[str, ObservedObject] = {}
        direct = self.context.owner(self.meta)
        if direct is not None:
            found[direct.ref] = direct
        for pod in self.pods:
            owner = self.context.owner(pod.meta)
            if owner is not None:
                found.setdefault(owner.ref, owner)
        return list(found.values())


def _needed(group: SubGroupSet) -> int:
    parts = sorted([*(_needed(child) for child in group.groups), *(leaf.min_available for leaf in group.pod_sets)])
    return sum(parts[: group.minimum])


def gangs_of(context: Context) -> tuple[Gang, ...]:
    """Return every PodGroup of the snapshot as a gang, in the order of namespace and name."""
    if not context.gangs:
        podgroups = sorted(context.snapshot.podgroups, key=lambda group: group.key)
        context.gangs = tuple(Gang(context, podgroup) for podgroup in podgroups)
    return context.gangs
