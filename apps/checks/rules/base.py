"""What every check is made of: one look at the snapshot, and an outcome with its evidence.

A check is a pure function. What was not read is never taken for empty: a kind that is not served does not exist here,
one that was refused or failed makes the outcome "cannot tell".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from gangdash.engine.chain import Chain
from gangdash.engine.chain.platform import NVCA
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.node import Node
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import PodGroup
from gangdash.engine.model.queue import Queue
from gangdash.engine.model.resources import GPU_NAMES, MIG_PREFIX

NOT_SERVED = "not served"
SHOWN = 3
FUNCTION_NAMESPACE = "sr-"
CLIQUE_LABEL = "nvidia.com/gpu.clique"
HOSTNAME = "kubernetes.io/hostname"
_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


class State(StrEnum):
    OK = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    ABSENT = "absent"


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``evidence`` says with names and numbers what was seen, ``objects`` which ones; why not, where it is unknown."""

    state: State
    evidence: str
    objects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One entry of the list: ``remedy`` is what to do where it fails."""

    id: str
    title: str
    severity: Severity
    remedy: str
    rule: Callable[[View], Outcome]


def passed(evidence: str, objects: Iterable[str] = ()) -> Outcome:
    return Outcome(State.OK, evidence, tuple(objects))


def failed(evidence: str, objects: Iterable[str] = ()) -> Outcome:
    return Outcome(State.FAIL, evidence, tuple(objects))


def unknown(evidence: str, objects: Iterable[str] = ()) -> Outcome:
    return Outcome(State.UNKNOWN, evidence, tuple(objects))


def absent(evidence: str) -> Outcome:
    """Return that the check does not apply here."""
    return Outcome(State.ABSENT, evidence)


def verdict(problems: Sequence[str], good: str, objects: Iterable[str] = ()) -> Outcome:
    """Return a failure with the first problems, or that all is as ``good`` says."""
    return failed(some(problems, "; "), objects) if problems else passed(good, objects)


def some(items: Iterable[str], mark: str = ", ") -> str:
    """Join the first items and count the rest."""
    every = list(items)
    shown = mark.join(every[:SHOWN])
    return shown if len(every) <= SHOWN else f"{shown}{mark}and {len(every) - SHOWN} more"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def version(text: str) -> tuple[int, int, int] | None:
    """Read ``v0.16.7`` or ``0.16.7-rc1``; None for anything else."""
    found = _VERSION.match(text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


class View:
    """The snapshot as the checks look at it."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self.snapshot = snapshot
        self.chain = Chain(snapshot)
        self.platform = self.chain.platform
        self.as_of = snapshot.as_of
        self._gaps = {gap.kind: gap.reason for gap in snapshot.not_read}

    def gap(self, *kinds: str) -> str:
        """Say which of the kinds could not be read and why; empty where all were, or are not served."""
        missing = [f"{kind} was not read ({self._gaps.get(kind, 'not in the file')})" for kind in kinds
                   if not self.snapshot.was_read(kind) and not self.is_unserved(kind)]  # fmt: skip
        return some(missing)

    def is_unserved(self, kind: str) -> bool:
        return self._gaps.get(kind) == NOT_SERVED

    def objects(self, kind: str) -> Sequence[ObservedObject]:
        return self.chain.objects(kind)

    @cached_property
    def gpu_nodes(self) -> list[Node]:
        return [node for node in self.snapshot.nodes if gpus_of(node)]

    @cached_property
    def queues(self) -> Mapping[str, Queue]:
        return {queue.name: queue for queue in self.snapshot.queues}

    @cached_property
    def parents(self) -> frozenset[str]:
        return frozenset(queue.parent for queue in self.snapshot.queues)

    @cached_property
    def scheduler_names(self) -> frozenset[str]:
        return frozenset(shard.config.params.scheduler_name for shard in self.snapshot.shards)

    @cached_property
    def members(self) -> Mapping[str, list[Pod]]:
        """Living pods by ``namespace/name`` of the PodGroup that they name."""
        found: dict[str, list[Pod]] = defaultdict(list)
        for pod in self.live_pods:
            name = pod.meta.annotations.get("pod-group-name")
            if name:
                found[f"{pod.meta.namespace}/{name}"].append(pod)
        return found

    @cached_property
    def joined(self) -> frozenset[str]:
        """``namespace/name`` of every PodGroup that some pod names, ended ones too."""
        named = ((pod.meta.namespace, pod.meta.annotations.get("pod-group-name")) for pod in self.chain.pods)
        return frozenset(f"{namespace}/{name}" for namespace, name in named if name)

    @cached_property
    def live_pods(self) -> list[Pod]:
        return [pod for pod in self.chain.pods if pod.phase not in {"Succeeded", "Failed"} and pod.meta.deleted is None]

    @cached_property
    def backend(self) -> ObservedObject | None:
        """The NVCFBackend of this cluster: there is one, or none."""
        return next(iter(self.objects("NVCFBackend")), None)

    @cached_property
    def is_nvcf(self) -> bool:
        named = any(meta.name.startswith(FUNCTION_NAMESPACE) for meta in self.snapshot.namespaces)
        return self.backend is not None or named or self.platform.find(NVCA) is not None

    @property
    def no_nvcf(self) -> Outcome:
        gap = self.gap("NVCFBackend")
        return unknown(gap) if gap else absent("NVCF is not installed in this cluster")

    @cached_property
    def gates(self) -> dict[str, bool] | None:
        """NVCF's feature gates that are named, on or off; None where no NVCFBackend tells."""
        if self.backend is None:
            return None
        facts = self.backend.facts
        own, over = facts.get("spec.featureGate.values"), facts.get("spec.overrides.featureGate.values")
        found: dict[str, bool] = {}
        for text in over if over is not None else own or ():
            name = str(text).lstrip("+-")
            found[name] = found.get(name, True) and not str(text).startswith("-")
        return found

    def waiting_gangs(self) -> list[tuple[PodGroup, list[Pod]]]:
        """Return the PodGroups with living pods that have no node, with those pods."""
        found = []
        for key, group in self.chain.podgroups.items():
            pods = [pod for pod in self.members.get(key, ()) if not pod.node_name]
            if pods:
                found.append((group, pods))
        return found


def gpus_of(node: Node) -> int:
    """Return the whole GPUs and MIG slices that a node offers."""
    return sum(count for name, count in node.allocatable.items() if name in GPU_NAMES or name.startswith(MIG_PREFIX))


def pod_gpus(pod: Pod) -> int:
    """Return the whole GPUs that a pod asks for; parts of GPUs are left to the replay."""
    return sum(part.requests.get(name, 0) for part in pod.containers if part.role != "init" for name in GPU_NAMES)


def age(view: View, moment: float | None) -> float:
    return view.as_of - moment if moment is not None else 0.0
