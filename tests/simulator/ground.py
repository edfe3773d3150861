"""The truth about a cluster, counted from its objects alone: who holds what, and why each gang waits.

Written apart from the simulator's own state, so that a wrong object is seen. Gangs of equal pods only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

Object = Mapping[str, Any]
RACK = "topology.example.com/rack"
POOL = "kai.scheduler/node-pool"
GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Gang:
    group: Object
    pods: tuple[Object, ...]

    @property
    def name(self) -> str:
        return f"{self.group['metadata']['namespace']}/{self.group['metadata']['name']}"

    @cached_property
    def waiting(self) -> list[Object]:
        return [pod for pod in self.pods if not pod["spec"].get("nodeName") and not deleted(pod)]

    @property
    def protected(self) -> bool:
        return any(pod["spec"]["priority"] >= 100 for pod in self.pods)

    @property
    def selector(self) -> dict[str, str]:
        return dict(self.pods[0]["spec"].get("nodeSelector", {})) if self.pods else {}

    @property
    def minimum(self) -> int:
        return int(self.group["spec"]["minMember"])

    @cached_property
    def pod_gpus(self) -> int:
        return max((gpus(pod) for pod in self.pods), default=0)

    @property
    def level(self) -> str | None:
        constraint = self.group["spec"].get("topologyConstraint") or {}
        level = constraint.get("requiredTopologyLevel")
        return str(level) if level else None


def gpus(pod: Object) -> int:
    resources = (container["resources"] for container in pod["spec"]["containers"])
    return sum(int(part["requests"].get(GPU, 0)) for part in resources)


def deleted(pod: Object) -> bool:
    return "deletionTimestamp" in pod["metadata"]


class Truth:
    """One moment of a cluster."""

    def __init__(self, objects: Iterable[Object]) -> None:
        self.by_kind: dict[str, list[Object]] = defaultdict(list)
        for obj in objects:
            self.by_kind[obj["kind"]].append(obj)

    @cached_property
    def promised(self) -> dict[tuple[str, str], str]:
        """Return the nodes that BindRequests name, by pod."""
        return {
            (request["metadata"]["namespace"], request["spec"]["podName"]): request["spec"]["selectedNode"]
            for request in self.by_kind["BindRequest"]
        }

    def node_of(self, pod: Object) -> str | None:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        node = pod["spec"].get("nodeName") or self.promised.get(key)
        return str(node) if node else None

    @cached_property
    def used(self) -> dict[str, dict[str, int]]:
        """Return what each node's pods hold: GPUs, millicores, MiB, pods."""
        used: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for pod in self.by_kind["Pod"]:
            node = self.node_of(pod)
            if node is None or pod["status"]["phase"] == "Succeeded":
                continue
            for container in pod["spec"]["containers"]:
                requests = container["resources"]["requests"]
                used[node]["gpu"] += int(requests.get(GPU, 0))
                used[node]["cpu"] += int(requests["cpu"].removesuffix("m"))
                used[node]["memory"] += int(requests["memory"].removesuffix("Mi"))
            used[node]["pods"] += 1
        return used

    @cached_property
    def gangs(self) -> list[Gang]:
        pods: dict[tuple[str, str], list[Object]] = defaultdict(list)
        for pod in self.by_kind["Pod"]:
            name = pod["metadata"].get("annotations", {}).get("pod-group-name")
            if name:
                pods[pod["metadata"]["namespace"], name].append(pod)
        return [
            Gang(group, tuple(pods[group["metadata"]["namespace"], group["metadata"]["name"]]))
            for group in self.by_kind["PodGroup"]
        ]

    @cached_property
    def queues(self) -> dict[str, Object]:
        return {queue["metadata"]["name"]: queue for queue in self.by_kind["Queue"]}

    def chain(self, name: str | None) -> list[Object]:
        chain = []
        while name in self.queues:
            chain.append(self.queues[name])
            name = self.queues[name]["spec"].get("parentQueue")
        return chain

    def allocated(self, queue: str, *, protected_only: bool = False) -> int:
        """Return the GPUs that a queue's gangs hold, children included."""
        return self._allocated[queue, protected_only]

    @cached_property
    def _allocated(self) -> dict[tuple[str, bool], int]:
        total: dict[tuple[str, bool], int] = defaultdict(int)
        for gang in self.gangs:
            counted = [pod for pod in gang.pods if self.node_of(pod) and not deleted(pod)]
            held = sum(gpus(pod) for pod in counted if pod["status"]["phase"] != "Succeeded")
            for queue in self.chain(gang.group["spec"]["queue"]):
                name = queue["metadata"]["name"]
                total[name, False] += held
                total[name, True] += held if gang.protected else 0
        return total

    def slots(self, gang: Gang, free: Callable[[Object], int], nodes: Iterable[Object] | None = None) -> int:
        """Return how many of a gang's pods the nodes would hold with so many free GPUs."""
        chosen = self.by_kind["Node"] if nodes is None else nodes
        selector = gang.selector
        fitting = [
            node
            for node in chosen
            if selector.items() <= node["metadata"]["labels"].items() and POOL not in node["metadata"]["labels"]
        ]
        return sum(free(node) // gang.pod_gpus for node in fitting)

    def size(self, node: Object) -> int:
        return int(node["status"]["allocatable"].get(GPU, 0))

    def idle(self, node: Object) -> int:
        return 0 if node["spec"].get("unschedulable") else self.repaired(node)

    def repaired(self, node: Object) -> int:
        """Return the free GPUs of a node as if it were not cordoned."""
        return self.size(node) - self.used[node["metadata"]["name"]]["gpu"]

    def racks(self) -> list[list[Object]]:
        racks: dict[str, list[Object]] = defaultdict(list)
        for node in self.by_kind["Node"]:
            racks[node["metadata"]["labels"][RACK]].append(node)
        return list(racks.values())

    @cached_property
    def causes(self) -> dict[str, str | None]:
        """Return why each gang waits, by name."""
        return {gang.name: self.cause(gang) for gang in self.gangs if gang.waiting}

    def cause(self, gang: Gang) -> str | None:
        """Return why a gang waits, None where it could start now or is not of equal pods."""
        pool = gang.group["metadata"]["labels"].get(POOL)
        if pool:
            return "scheduler down" if self._is_down(f"kai-scheduler-{pool}") else None
        if not self.chain(gang.group["spec"]["queue"]):
            return "queue missing"
        if len(gang.pods) < gang.minimum:
            return "members missing"
        gates = {gate["name"] for pod in gang.pods for gate in pod["spec"].get("schedulingGates", ())}
        if gates:
            return "base gang" if gates == {"grove.io/podgang-pending-creation"} else "gated"
        return self._policy(gang) or self._room(gang)

    def _is_down(self, deployment: str) -> bool:
        found = [item for item in self.by_kind["Deployment"] if item["metadata"]["name"] == deployment]
        return not found[0]["status"].get("availableReplicas")

    def _policy(self, gang: Gang) -> str | None:
        wanted = sum(gpus(pod) for pod in gang.waiting)
        protected = gang.protected
        for queue in self.chain(gang.group["spec"]["queue"]):
            terms, name = queue["spec"]["resources"]["gpu"], queue["metadata"]["name"]
            if terms["limit"] != -1 and self.allocated(name) + wanted > terms["limit"]:
                return "queue limit"
            if protected and self.allocated(name, protected_only=True) + wanted > terms["quota"]:
                return "over quota"
        return None

    def _room(self, gang: Gang) -> str | None:
        needed = len([pod for pod in gang.waiting if gpus(pod)])
        if not needed:
            return None
        matching = self.slots(gang, lambda _node: gang.pod_gpus)
        if not matching:
            return "no such node"
        if self.slots(gang, self.size) == 0:
            return "node too small"
        if gang.level == RACK:
            return self._in_one_rack(gang, needed)
        if self.slots(gang, self.idle) >= needed:
            return None
        if self.slots(gang, self.repaired) >= needed:
            return "cordoned"
        free = self.slots(gang, lambda node: self.idle(node) * gang.pod_gpus)
        return "fragmented" if free >= needed * gang.pod_gpus else "busy"

    def _in_one_rack(self, gang: Gang, needed: int) -> str | None:
        if max(self.slots(gang, self.size, rack) for rack in self.racks()) < needed:
            return "domain too small"
        if max(self.slots(gang, self.idle, rack) for rack in self.racks()) >= needed:
            return None
        return "domain busy" if self.slots(gang, self.idle) >= needed else "busy"
