"""In which order are victims tried? Two ways of growing trials from one queue of victim gangs.

``NodeLocalGreedy`` looks at the nodes of the latest victim one by one; ``MultiNodeGang`` takes the fewest
nodes that could suffice and then more of them. Both add victims gang by gang (surplus pods one by one) and
leave out what the filters rule out. Mirrors pkg/scheduler/plugins/nodelocalgreedy, multinodegang and
actions/common/solvers (pod_scenario_builder.go, sub_scenario_emitter.go) at KAI d5bc503a.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gangdash.engine.actions.ordering import JobsByQueue
from gangdash.engine.actions.solver_capacity import Capacities
from gangdash.engine.actions.solver_filters import filters_for
from gangdash.engine.actions.solver_trial import Ask, Batch, Trial
from gangdash.engine.actions.solver_views import next_to_evict, view_of
from gangdash.engine.session import NodeState, Session, TaskState

VictimQueue = Callable[[], JobsByQueue]


class Ground(NamedTuple):
    """Where a search takes place."""

    session: Session
    feasible: Mapping[str, NodeState]
    capacities: Capacities
    victims: VictimQueue


Trials = Callable[[Ground, Ask, Sequence[Batch]], Iterator[Trial]]


class Generator(NamedTuple):
    name: str
    """As the scheduler's budgets name it."""
    trials: Trials


class Accumulation:
    """A trial that takes one more unit of the victim queue at each step."""

    def __init__(self, ground: Ground, ask: Ask, recorded: Sequence[Batch]) -> None:
        self._session = ground.session
        self._victims = ground.victims()
        self._recorded_uids = {task.uid for batch in recorded for task in batch.tasks}
        self.trial = Trial(ask, recorded)
        self._filters = filters_for(ground.session, self.trial, ground.feasible, ground.capacities)

    def states(self) -> Iterator[Trial]:
        """Yield the growing trial each time that no filter objects to it; it is the same object every time."""
        if not self.trial.ask.pending:
            return
        if self._is_allowed():
            yield self.trial
        while not self._victims.is_empty:
            if self._take_next() and self._is_allowed():
                yield self.trial

    def _is_allowed(self) -> bool:
        return all(f.allows(self.trial) for f in self._filters)

    def _take_next(self) -> bool:
        """Add the next unit; False when it has no pod, or overlaps the recorded victims: then its rest waits."""
        job = self._victims.pop()
        tasks, has_more = next_to_evict(self._session, job)
        if any(task.uid in self._recorded_uids for task in tasks):
            rest = [task for task in job.tasks.values() if task.uid not in self._recorded_uids]
            if rest:
                self._victims.push(view_of(job, rest))
            return False
        if has_more:
            taken = {task.uid for task in tasks}
            self._victims.push(view_of(job, [t for t in job.tasks.values() if t.uid not in taken]))
        if tasks:
            self.trial.add(Batch(self._session.jobs[job.key], tuple(tasks)))
        return bool(tasks)


def node_local_greedy(ground: Ground, ask: Ask, recorded: Sequence[Batch]) -> Iterator[Trial]:
    """Yield for each new victim one trial per node of its gang: all victims that have a pod there."""
    victims = _VictimsByNode(recorded)
    for state in Accumulation(ground, ask, recorded).states():
        if state.batches:
            victims.take_in(state)
            yield from victims.trials(state)
        elif any(True for _ in state.recorded_tasks()):
            yield state


class _VictimsByNode:
    """Which victim gangs have a pod on a node, and all their victim pods, recorded ones first."""

    def __init__(self, recorded: Sequence[Batch]) -> None:
        self._seen = 0
        self._on_node: dict[str, dict[str, None]] = {}
        self._whole: dict[str, Batch] = {}
        for batch in recorded:
            self._join(batch)

    def _join(self, batch: Batch) -> None:
        known = self._whole.get(batch.job.key)
        self._whole[batch.job.key] = batch if known is None else Batch(batch.job, (*known.tasks, *batch.tasks))

    def take_in(self, state: Trial) -> None:
        for batch in state.batches[self._seen :]:
            self._join(batch)
            for task in batch.tasks:
                self._on_node.setdefault(task.node_name, {})[batch.job.key] = None
        self._seen = len(state.batches)

    def trials(self, state: Trial) -> Iterator[Trial]:
        """Yield one trial per node of the latest victim's gang, equal ones once."""
        latest = state.batches[-1].job
        seen: set[tuple[str, ...]] = set()
        for node in sorted({task.node_name for task in latest.tasks.values() if task.node_name}):
            keys = tuple(self._on_node.get(node, ()))
            if keys and keys not in seen:
                seen.add(keys)
                yield Trial(state.ask, state.recorded, [self._whole[key] for key in keys])


def multi_node_gang(ground: Ground, ask: Ask, recorded: Sequence[Batch]) -> Iterator[Trial]:
    """Yield for each new victim trials over a growing number of nodes, those with the least room first."""
    room = _RoomByNode(ground, ask, recorded)
    for state in Accumulation(ground, ask, recorded).states():
        if state.batches:
            room.take_in(state)
            yield from room.trials(state)
        else:
            yield state


class _RoomByNode:
    """The GPUs that nodes with victims would have, in order of the least, and what the other nodes have."""

    def __init__(self, ground: Ground, ask: Ask, recorded: Sequence[Batch]) -> None:
        wanted = [task.gpu.quota_gpus for task in ask.pending]
        self._smallest = min(wanted)
        self._demand = sum(wanted)
        self._future = ground.capacities.future
        self._freed = _freed_by_node(task for batch in recorded for task in batch.tasks)
        self._feasible = ground.feasible
        self._baseline = sum(self._now(name) for name in ground.feasible)
        self._seen = 0
        self._on_node: dict[str, list[Batch]] = {}
        self._rank: dict[str, tuple[float, int, str]] = {}
        """Room, when the node was first met, name: sorts as the nodes are tried."""
        self._ranking: list[tuple[float, int, str]] = []

    def _now(self, name: str) -> float:
        return self._future.get(name, 0.0) + self._freed.get(name, 0.0)

    def take_in(self, state: Trial) -> None:
        for batch in state.batches[self._seen :]:
            for task in batch.tasks:
                self._add(task, batch)
        self._seen = len(state.batches)

    def _add(self, task: TaskState, batch: Batch) -> None:
        name = task.node_name
        batches = self._on_node.get(name)
        if batches is None:
            batches = self._on_node[name] = []
            if name in self._feasible:
                self._baseline -= self._now(name)
            room, first = self._now(name), len(self._rank)
        else:
            room, first, _ = before = self._rank[name]
            del self._ranking[bisect_left(self._ranking, before)]
        if not batches or batches[-1] is not batch:
            batches.append(batch)
        rank = self._rank[name] = (room + task.accepted_gpu.quota_gpus, first, name)
        insort(self._ranking, rank)

    def trials(self, state: Trial) -> Iterator[Trial]:
        start = bisect_left(self._ranking, (self._smallest, -1, "")) if self._smallest > 0 else 0
        candidates = self._ranking[start:]
        first = _fewest_covering([room for room, _, _ in candidates], self._demand - self._baseline)
        for count in _growing(first, len(candidates)):
            picked = {id(batch) for _, _, name in candidates[:count] for batch in self._on_node[name]}
            yield Trial(state.ask, state.recorded, [batch for batch in state.batches if id(batch) in picked])


def _freed_by_node(tasks: Iterable[TaskState]) -> dict[str, float]:
    freed: dict[str, float] = {}
    for task in tasks:
        if task.node_name:
            freed[task.node_name] = freed.get(task.node_name, 0.0) + task.accepted_gpu.quota_gpus
    return freed


def _fewest_covering(room: Sequence[float], demand: float) -> int | None:
    """Return how many of the first nodes cover the demand, None when all of them do not."""
    if demand <= 0:
        return 0
    total = 0.0
    for index, amount in enumerate(room):
        total += amount
        if total >= demand:
            return index + 1
    return None


def _growing(first: int | None, most: int) -> Iterator[int]:
    """Yield the first count, then counts growing by 1, 2, 4, ... up to the most."""
    if first is None:
        return
    count, step = first, 1
    while True:
        yield count
        if count >= most:
            return
        count, step = min(count + step, most), step * 2


GENERATORS: Mapping[str, Generator] = {
    "sg-nodelocalgreedy": Generator("NodeLocalGreedy", node_local_greedy),
    "sg-multinodegang": Generator("MultiNodeGang", multi_node_gang),
}
"""By the name of the plugin that registers it."""
