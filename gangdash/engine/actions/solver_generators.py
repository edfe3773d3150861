"""In which order are victims tried? Two ways of growing trials from one queue of victim gangs.

``NodeLocalGreedy`` looks at the nodes of the latest victim one by one; ``MultiNodeGang`` takes the fewest
nodes that could suffice and then more of them. Both add victims gang by gang (surplus pods one by one) and
leave out what the filters rule out. Mirrors pkg/scheduler/plugins/nodelocalgreedy, multinodegang and
actions/common/solvers (pod_scenario_builder.go, sub_scenario_emitter.go) at KAI d5bc503a.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from gangdash.engine.actions.ordering import JobsByQueue
from gangdash.engine.actions.solver_capacity import future_gpus
from gangdash.engine.actions.solver_filters import filters_for
from gangdash.engine.actions.solver_trial import Ask, Batch, Trial
from gangdash.engine.actions.solver_views import next_to_evict, view_of
from gangdash.engine.session import NodeState, Session, TaskState

VictimQueue = Callable[[], JobsByQueue]
Nodes = Mapping[str, NodeState]
Generator = Callable[[Session, Ask, Sequence[Batch], VictimQueue, Nodes], Iterator[Trial]]


class Accumulation:
    """A trial that takes one more unit of the victim queue at each step."""

    def __init__(
        self, session: Session, ask: Ask, recorded: Sequence[Batch], victims: JobsByQueue, feasible: Nodes
    ) -> None:
        self._session = session
        self._victims = victims
        self._recorded_uids = {task.uid for batch in recorded for task in batch.tasks}
        self.trial = Trial(ask, recorded)
        self._filters = filters_for(session, self.trial, feasible)

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


def node_local_greedy(
    session: Session, ask: Ask, recorded: Sequence[Batch], victims: VictimQueue, feasible: Nodes
) -> Iterator[Trial]:
    """Yield for each new victim one trial per node of its gang: all victims that have a pod there."""
    for state in Accumulation(session, ask, recorded, victims(), feasible).states():
        if state.batches:
            yield from _per_node(state)
        elif any(True for _ in state.recorded_tasks()):
            yield state


def _per_node(state: Trial) -> Iterator[Trial]:
    latest = state.batches[-1].job
    by_job: dict[str, list[Batch]] = {}
    for batch in (*state.recorded, *state.batches):
        by_job.setdefault(batch.job.key, []).append(batch)
    seen: set[frozenset[str]] = set()
    for node in sorted({task.node_name for task in latest.tasks.values() if task.node_name}):
        keys = dict.fromkeys(b.job.key for b in state.batches if any(t.node_name == node for t in b.tasks))
        trial = Trial(state.ask, state.recorded)
        for key in keys:
            batches = by_job[key]
            trial.add(Batch(batches[0].job, tuple(task for batch in batches for task in batch.tasks)))
        uids = frozenset(task.uid for task in trial.potential_tasks())
        if uids and uids not in seen:
            seen.add(uids)
            yield trial


def multi_node_gang(
    session: Session, ask: Ask, recorded: Sequence[Batch], victims: VictimQueue, feasible: Nodes
) -> Iterator[Trial]:
    """Yield for each new victim trials over a growing number of nodes, those with the least room first."""
    for state in Accumulation(session, ask, recorded, victims(), feasible).states():
        if state.batches:
            yield from _by_growing_nodes(session, state, feasible)
        else:
            yield state


def _by_growing_nodes(session: Session, state: Trial, feasible: Nodes) -> Iterator[Trial]:
    recorded_freed = _freed_by_node(state.recorded_tasks())
    on_node: dict[str, list[Batch]] = {}
    freed: dict[str, float] = {}
    for batch in state.batches:
        for task in batch.tasks:
            batches = on_node.setdefault(task.node_name, [])
            if not batches or batches[-1] is not batch:
                batches.append(batch)
            freed[task.node_name] = freed.get(task.node_name, 0.0) + task.accepted_gpu.quota_gpus
    room = {name: recorded_freed.get(name, 0.0) + _future(session, name) + freed[name] for name in on_node}
    wanted = [task.gpu.quota_gpus for task in state.ask.pending]
    smallest = min(wanted)
    candidates = sorted((n for n in on_node if smallest <= 0 or room[n] >= smallest), key=lambda n: room[n])
    baseline = sum(
        future_gpus(node) + recorded_freed.get(name, 0.0) for name, node in feasible.items() if name not in on_node
    )
    first = _fewest_covering([room[name] for name in candidates], sum(wanted) - baseline)
    for count in _growing(first, len(candidates)):
        picked = {id(batch) for name in candidates[:count] for batch in on_node[name]}
        yield Trial(state.ask, state.recorded, (batch for batch in state.batches if id(batch) in picked))


def _future(session: Session, name: str) -> float:
    node = session.nodes.get(name)
    return future_gpus(node) if node is not None else 0.0


def _freed_by_node(tasks: Iterator[TaskState]) -> dict[str, float]:
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
    "sg-nodelocalgreedy": node_local_greedy,
    "sg-multinodegang": multi_node_gang,
}
"""By the name of the plugin that registers it."""
