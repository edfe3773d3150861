"""Which gangs of the demo cluster get nodes in one scheduling cycle.

A small stand-in for the scheduler: strict order, all or nothing, binpack, queue limits and quotas, one topology level.
It never evicts; the demo is laid out so that no eviction would help anybody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gangdash.engine.model.cycle import FitError
from gangdash.simulator.gangs import Gang, Member, Shape
from gangdash.simulator.plant import PRIORITIES, TOPOLOGY, UNLIMITED, Node, ancestors


@dataclass(frozen=True, slots=True)
class Decision:
    """What one cycle means for one gang; pods are named, nodes are for bound and promised ones."""

    gang: Gang
    bound: Mapping[str, str] = field(default_factory=dict)
    promised: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[FitError, ...] = ()


@dataclass(slots=True)
class _Room:
    """What is left on a node: now, and in all once leaving pods are gone."""

    node: Node
    idle: list[int]
    later: list[int]

    def take(self, shape: Shape) -> bool:
        """Take a pod's share; tell whether it can start at once."""
        wanted = (shape.gpus, shape.cpu, shape.memory)
        at_once = _holds(self.idle, shape)
        self.later = [have - want for have, want in zip(self.later, wanted, strict=True)]
        if at_once:
            self.idle = [have - want for have, want in zip(self.idle, wanted, strict=True)]
        return at_once

    def fits(self, shape: Shape) -> bool:
        return _holds(self.later, shape)

    def rank(self, shape: Shape) -> tuple[bool, int, int, str]:
        """Order rooms for a pod: where it can start at once, then tight on GPUs, so that whole machines stay whole."""
        return not _holds(self.idle, shape), self.later[0], self.later[1], self.node.name


class Cycle:
    """One pass over the waiting gangs, best priority first, then the oldest."""

    def __init__(self, nodes: Iterable[Node], gangs: Sequence[Gang], agents: Shape) -> None:
        """Count what is taken; `agents` is what each node's own pods use."""
        self._rooms = {node.name: _room(node, agents) for node in nodes}
        self._gangs = gangs
        self._used: Counter[str] = Counter()
        self._protected: Counter[str] = Counter()
        for gang in gangs:
            for member in gang.members:
                self._count(gang, member)

    def run(self) -> list[Decision]:
        """Decide on every gang that waits in the default shard."""
        waiting = [gang for gang in self._gangs if gang.waits and not gang.pool]
        waiting.sort(key=lambda gang: (-PRIORITIES[gang.priority].value, gang.created, gang.name))
        return [self._decide(gang) for gang in waiting]

    def _count(self, gang: Gang, member: Member) -> None:
        if member.node is None or not member.holds:
            return
        room = self._rooms[member.node]
        for index, amount in enumerate((member.shape.gpus, member.shape.cpu, member.shape.memory)):
            room.idle[index] -= amount
            room.later[index] -= 0 if member.deleted else amount
        if member.counts:
            self._charge(gang, member.shape.gpus)

    def _charge(self, gang: Gang, gpus: int) -> None:
        for queue in ancestors(gang.queue):
            self._used[queue.name] += gpus
            self._protected[queue.name] += 0 if gang.preemptible else gpus

    def _decide(self, gang: Gang) -> Decision:
        tasks = [member for member in gang.members if member.waits and not member.gates]
        refusal = self._refusal(gang, sum(member.shape.gpus for member in tasks))
        if refusal or not gang.ready():
            return Decision(gang, errors=(refusal,) if refusal else ())
        for domain in self._domains(gang):
            placed = self._place(tasks, domain)
            if placed is not None:
                return self._settle(gang, placed)
        return Decision(gang, errors=self._no_room(gang, tasks))

    def _refusal(self, gang: Gang, gpus: int) -> FitError | None:
        """Return what the queue has against the gang, if anything."""
        chain = ancestors(gang.queue)
        if not chain:
            return FitError("QueueDoesNotExist", f"Queue '{gang.queue}' does not exist")
        if not gang.ready():
            return None
        for queue in chain:
            name, used = queue.display_name or queue.name, self._used[queue.name]
            if gpus and queue.limit != UNLIMITED and used + gpus > queue.limit:
                text = (
                    f"Limit is {queue.limit} GPUs, currently {used} GPUs allocated and workload requested {gpus} GPUs"
                )
                return FitError("OverLimit", f"{name} quota has reached the allowable limit of GPUs. {text}")
        for queue in chain:
            name, used = queue.display_name or queue.name, self._protected[queue.name]
            if gpus and not gang.preemptible and queue.quota != UNLIMITED and used + gpus > queue.quota:
                text = f"Workload requested {gpus} GPUs, but {name} quota is {queue.quota} GPUs, while {used} GPUs are"
                text = f"Non-preemptible workload is over quota. {text} already allocated for non-preemptible pods."
                return FitError("NonPreemptibleOverQuota", f"{text} Use a preemptible workload to go over quota.")
        return None

    def _domains(self, gang: Gang) -> list[list[_Room]]:
        """Return the node sets to try: one for each domain of a required level, tightest first."""
        rooms = [room for room in self._rooms.values() if _eligible(gang, room.node)]
        if gang.required_level is None:
            return [rooms]
        domains: dict[str, list[_Room]] = {}
        for room in rooms:
            domains.setdefault(room.node.labels[gang.required_level], []).append(room)
        return sorted(domains.values(), key=lambda rooms: sum(room.later[0] for room in rooms))

    def _place(self, tasks: Sequence[Member], rooms: Sequence[_Room]) -> list[tuple[Member, _Room, bool]] | None:
        """Put every task somewhere, or nothing anywhere."""
        before = {room.node.name: (room.idle, room.later) for room in rooms}
        placed: list[tuple[Member, _Room, bool]] = []
        for task in tasks:
            fitting = [room for room in rooms if room.fits(task.shape)]
            if not fitting:
                for room in rooms:
                    room.idle, room.later = before[room.node.name]
                return None
            best = min(fitting, key=lambda room: room.rank(task.shape))
            placed.append((task, best, best.take(task.shape)))
        return placed

    def _settle(self, gang: Gang, placed: Sequence[tuple[Member, _Room, bool]]) -> Decision:
        """Bind the whole gang, or promise it the nodes where any part still waits for leaving pods."""
        nodes = {task.name: room.node.name for task, room, _at_once in placed}
        self._charge(gang, sum(task.shape.gpus for task, _room, _at_once in placed))
        if all(at_once for _task, _room, at_once in placed):
            return Decision(gang, bound=nodes)
        return Decision(gang, promised=nodes)

    def _no_room(self, gang: Gang, tasks: Sequence[Member]) -> tuple[FitError, ...]:
        if gang.required_level is not None:
            words = f"topology {TOPOLOGY}, requirement {gang.required_level} couldn't be satisfied for job"
            domain = FitError(
                "Not enough resources for the workload", "node-group(s) didn't have enough resources: GPUs"
            )
            last = FitError("PodSchedulingErrors", f"{words} <{gang.namespace}/{gang.name}>")
            return (*[domain] * max(1, len(self._domains(gang))), last)
        found, wanted = self._found(tasks, self._domains(gang)[0]), gang.minimum
        words = f"Resources were found for {found} pods while {wanted} are required for gang scheduling."
        why = f"no nodes with enough resources were found: {self._histogram(gang)}."
        words = f"{words} Additional pods cannot be scheduled due to: {why}"
        if gang.minimum <= 1:
            words = f"Resources were not found for pod {gang.namespace}/{tasks[0].name} due to: {why}"
        return (FitError("PodSchedulingErrors", words),)

    def _found(self, tasks: Sequence[Member], rooms: Sequence[_Room]) -> int:
        """Return how many tasks would have found room."""
        return max(count for count in range(len(tasks)) if self._fits(tasks[:count], rooms))

    def _fits(self, tasks: Sequence[Member], rooms: Sequence[_Room]) -> bool:
        before = [(room, room.idle, room.later) for room in rooms]
        placed = self._place(tasks, rooms)
        for room, idle, later in before:
            room.idle, room.later = idle, later
        return placed is not None

    def _histogram(self, gang: Gang) -> str:
        reasons: Counter[str] = Counter()
        for room in self._rooms.values():
            if room.node.pool:
                continue
            reasons[_node_reason(gang, room.node)] += 1
        return ". \n".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))


def _holds(amounts: Sequence[int], shape: Shape) -> bool:
    return all(have >= want for have, want in zip(amounts, (shape.gpus, shape.cpu, shape.memory), strict=True))


def _room(node: Node, agents: Shape) -> _Room:
    amounts = [node.gpus - agents.gpus, node.cpu - agents.cpu, node.memory - agents.memory]
    return _Room(node, list(amounts), list(amounts))


def _selected(gang: Gang, node: Node) -> bool:
    labels = node.labels
    return all(labels.get(key) == value for key, value in gang.selector.items())


def _eligible(gang: Gang, node: Node) -> bool:
    return not node.pool and not node.cordoned and _selected(gang, node)


def _node_reason(gang: Gang, node: Node) -> str:
    if not _selected(gang, node):
        return "node(s) didn't match Pod's node affinity/selector"
    if node.cordoned:
        return "node(s) were unschedulable"
    return "node(s) didn't have enough resources: GPUs"
