"""Which victims make room for a gang? Tries victim sets in a simulation until one works and is allowed.

For 1, 2, 4, ... pods of the step and then by halves, each time starting from what worked before, and at
last for all of them. A trial evicts its victims, then places the gang and the victims again in queue order
over what is released; the gang must be placed whole. Mirrors pkg/scheduler/actions/common/solvers
(job_solver.go, by_pod_solver.go) at KAI d5bc503a.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import NamedTuple

from gangdash.engine.actions.ordering import JobsByQueue, Selection, rank_of_job
from gangdash.engine.actions.placement import allocate_job
from gangdash.engine.actions.solver_bounds import Bounds, SlotCache, is_plain
from gangdash.engine.actions.solver_budget import ActionBudget, Clock, probe_seconds, trial_seconds
from gangdash.engine.actions.solver_capacity import Capacities
from gangdash.engine.actions.solver_generators import GENERATORS, Ground, Trials, VictimQueue
from gangdash.engine.actions.solver_trial import Ask, Batch, Fingerprint, Trial
from gangdash.engine.actions.solver_views import part_of
from gangdash.engine.rules.scenario import LossLimit, Scenario
from gangdash.engine.rules.steps import next_tasks
from gangdash.engine.session import (
    ACTIVE_ALLOCATED,
    JobState,
    NodeState,
    Session,
    Statement,
    Status,
    SubGroup,
    SubGroupSet,
    TaskState,
)

Validator = Callable[[Scenario], bool]
LimitFor = Callable[[Ask], LossLimit | None]
"""For what is asked: the most GPUs that victims may lose under the action's rules, None where none bounds it."""


class End(Enum):
    """Why the search for one gang ended."""

    SOLVED = "solved"
    EXHAUSTED = "generators_exhausted"
    BUDGET = "deadline_exhausted"


@dataclass(frozen=True, slots=True)
class Means:
    """What the searches of one action share."""

    budget: ActionBudget
    capacities: Capacities
    slots: SlotCache


@dataclass(frozen=True, slots=True)
class Outcome:
    end: End
    statement: Statement | None = None
    """The operations of a solution, to be committed."""
    cut: str = ""
    """The generator whose time ran out, if one did and no other found a solution."""


@dataclass(frozen=True, slots=True)
class _Solution:
    statement: Statement
    victims: tuple[TaskState, ...]
    """Evicted and moved pods."""
    batches: tuple[Batch, ...]


@dataclass(slots=True)
class _Search:
    """One generator at work on one gang: its clock, and what the last successful probe needed."""

    trials: Trials
    clock: Clock
    batches: tuple[Batch, ...] = ()
    victims: tuple[TaskState, ...] = ()


class _Replay(NamedTuple):
    """A simulation under way, its victims evicted."""

    ask: Ask
    statement: Statement
    victims: Sequence[TaskState]
    nodes: list[NodeState]


class JobSolver:
    """Searches victims for one gang."""

    def __init__(
        self,
        session: Session,
        job: JobState,
        *,
        means: Means,
        validator: Validator,
        victims: VictimQueue,
        candidates: Callable[[], Sequence[JobState]],
        limit_for: LimitFor,
    ) -> None:
        self._session = session
        self._job = job
        self._means = means
        self._feasible = means.capacities.feasible_for(job)
        self._validator = validator
        self._victims = victims
        self._candidates = candidates
        self._limit_for = limit_for
        self._clock = means.budget.for_job()
        self._failed: set[Fingerprint] = set()
        self._waiting = _waiting_by_queue(session)
        by_rank = partial(rank_of_job, session)
        self._in_order = {queue: sorted(jobs, key=by_rank) for queue, jobs in self._waiting.items()}
        """Sorted before any trial: a victim that waits too would be out of its place during one."""
        self._choiceless: dict[str, bool] = {}
        self._waiting_count = sum(map(len, self._waiting.values()))

    def solve(self) -> Outcome:
        """Return the way it ended; ``SOLVED`` without a statement means that the gang's minimum was not met.

        In that case the scheduler leaves the operations of the solution standing in its session without
        acting on them, and so does this.
        """
        tasks = list(next_tasks(self._session, self._job, real=False))
        if self._clock.is_over():
            return Outcome(End.BUDGET)
        if not tasks or self._is_hopeless(tasks):
            return Outcome(End.EXHAUSTED)
        active_before = self._job.active_used
        cut = ""
        for plugin in self._session.config.plugins:
            generator = GENERATORS.get(plugin.name)
            if generator is None:
                continue
            clock = self._means.budget.for_generator(self._clock, generator.name)
            solution = self._solve_with(_Search(generator.trials, clock), tasks)
            if solution is not None:
                is_met = self._job.is_gang_satisfied and self._job.active_used > active_before
                return Outcome(End.SOLVED, solution.statement if is_met else None)
            if self._clock.is_over():
                return Outcome(End.BUDGET)
            cut = cut or (generator.name if clock.is_over() else "")
        return Outcome(End.EXHAUSTED, cut=cut)

    def _is_hopeless(self, tasks: Sequence[TaskState]) -> bool:
        """Whether all candidates together could not make room for all tasks of the step."""
        session = self._session
        if not session.shortcuts:
            return False
        ask = Ask.of(session, self._job, part_of(self._job, tasks))
        if not ask.pending:
            return True
        bounds = self._bounds(ask, self._feasible)
        everybody = [
            task
            for job in self._candidates()
            for task in job.tasks.values()
            if task.status & ACTIVE_ALLOCATED and task.node_name in session.nodes
        ]
        return self._is_short(bounds, everybody)

    def _bounds(self, ask: Ask, feasible: Mapping[str, NodeState]) -> Bounds:
        return Bounds(self._session, ask, feasible, self._limit_for(ask), self._means.slots)

    @staticmethod
    def _is_short(bounds: Bounds, victims: Sequence[TaskState]) -> bool:
        """Tell whether a simulation is hopeless; never where it could leave an error on a victim that also waits.

        A victim that finds no place in a simulation is told so, and a gang with pods waiting shows what it was told.
        """
        jobs = {task.job for task in victims}
        return not any(job is not None and _waits(job) for job in jobs) and bounds.are_short(victims)

    def _solve_with(self, search: _Search, tasks: Sequence[TaskState]) -> _Solution | None:
        if self._most_solvable(search, tasks) == 0 or self._clock.is_over():
            return None
        return self._probe(search, tasks)

    def _most_solvable(self, search: _Search, tasks: Sequence[TaskState]) -> int:
        """Return the largest number of tasks that a probe succeeds for, leaving its victims in the hints."""
        low, count = 0, 1
        while True:
            if not self._try(search, tasks[:count]):
                break
            low = count
            if count == len(tasks):
                return count
            count = min(count * 2, len(tasks))
        high = count
        while high - low > 1 and not self._clock.is_over():
            middle = (low + high) // 2
            if self._try(search, tasks[:middle]):
                low = middle
            else:
                high = middle
        return low

    def _try(self, search: _Search, tasks: Sequence[TaskState]) -> bool:
        solution = self._probe(search, tasks)
        if solution is None:
            return False
        search.batches, search.victims = solution.batches, solution.victims
        solution.statement.discard()
        return True

    def _probe(self, search: _Search, tasks: Sequence[TaskState]) -> _Solution | None:
        """Search victims for some tasks; a solution leaves its operations in place.

        There is nothing to search for if none of the tasks waits: an unmet solution may have left them evicted.
        """
        session = self._session
        ask = Ask.of(session, self._job, part_of(self._job, tasks))
        if not ask.pending:
            return None
        feasible = dict(self._feasible)
        feasible.update((t.node_name, session.nodes[t.node_name]) for t in search.victims)
        bounds = self._bounds(ask, feasible) if session.shortcuts else None
        search.clock.spend(probe_seconds(len(session.nodes)))
        for trial in search.trials(
            Ground(session, feasible, self._means.capacities, self._victims), ask, search.batches
        ):
            if search.clock.is_over():
                return None
            fingerprint = trial.fingerprint()
            if fingerprint in self._failed:
                continue
            victims = trial.victims()
            search.clock.spend(self._cost(ask, victims, feasible))
            is_possible = victims and all(task.node_name in session.nodes for task in victims)
            if is_possible and not (bounds is not None and self._is_short(bounds, victims)):
                solution = self._simulate(trial, victims, feasible, bounds)
                if solution is not None:
                    return solution
            self._failed.add(fingerprint)
        return None

    def _cost(self, ask: Ask, victims: Sequence[TaskState], feasible: Mapping[str, NodeState]) -> float:
        nodes = len(feasible) + len({task.node_name for task in victims} - feasible.keys())
        return trial_seconds(pods=len(victims) + len(ask.pending), nodes=nodes, waiting=self._waiting_count)

    def _simulate(
        self, trial: Trial, victims: Sequence[TaskState], feasible: Mapping[str, NodeState], bounds: Bounds | None
    ) -> _Solution | None:
        session = self._session
        statement = session.statement()
        for task in victims:
            statement.evict(task)
        touched = {task.node_name: session.nodes[task.node_name] for task in victims}
        nodes = sorted({**feasible, **touched}.values(), key=lambda node: node.index)
        replay = _Replay(trial.ask, statement, victims, nodes)
        if not self._place_again(replay, bounds) or not self._validator(trial.scenario()):
            statement.discard()
            return None
        gone = [task for task in victims if task.status is Status.RELEASING]
        moved = [task for task in victims if task.status is Status.PIPELINED]
        return _Solution(statement, (*gone, *moved), tuple(trial.batches_holding([*gone, *moved])))

    def _needs_no_choice(self, job: JobState) -> bool:
        """Whether the gang needs only whole GPUs and no topology: nodes without GPUs to give make no difference to it.

        Such a gang is offered all nodes, whose groups need not be made anew for each simulation.
        """
        known = self._choiceless.get(job.key)
        if known is None:
            known = self._choiceless[job.key] = _needs_no_choice(self._session.jobs[job.key])
        return known

    def _place_again(self, replay: _Replay, bounds: Bounds | None) -> bool:
        """Place the gang and, as far as it goes, the victims' gangs, in the order of queues and gangs.

        What is told to a gang of which no pod waits is forgotten: nobody is shown it.
        """
        session, view = self._session, replay.ask.view
        by_job: dict[str, list[TaskState]] = {}
        for task in replay.victims:
            if task.job is not None:
                by_job.setdefault(task.job.key, []).append(task)
        involved = {key: session.jobs[key] for key in by_job} | {view.key: view}
        tells = any(map(_waits, involved.values()))
        if bounds is not None and not tells and _is_over_limit(session, replay.ask):
            return False
        order = self._order(involved)
        lost: list[TaskState] = []
        is_placed = False
        while involved and not order.is_empty:
            job = order.pop()
            if involved.pop(job.key, None) is None:
                continue
            nodes = session.all_nodes if session.shortcuts and self._needs_no_choice(job) else replay.nodes
            told = len(job.errors)
            success = allocate_job(session, replay.statement, job, nodes, pipeline_only=True)
            if not _waits(job):
                del job.errors[told:]
            if job is view:
                if not success:
                    return False
                is_placed = True
                continue
            gone = [task for task in by_job[job.key] if task.status is Status.RELEASING]
            lost.extend(gone)
            if gone and bounds is not None and not tells and bounds.loses_too_much(lost, replay.victims):
                return False
        return is_placed

    def _order(self, involved: Mapping[str, JobState]) -> JobsByQueue:
        """Return the gangs involved, and those that wait beside them, in the order in which they are served."""
        order = JobsByQueue(self._session)
        for queue in self._queues_that_matter(involved.values()):
            others = [job for job in self._waiting[queue] if job.key not in involved]
            if others and self._session.shortcuts:
                order.seed([job for job in self._in_order[queue] if job.key not in involved], others[0])
            else:
                order.add(others, Selection())
        order.add(involved.values(), Selection())
        return order

    def _queues_that_matter(self, involved: Iterable[JobState]) -> list[str]:
        """Return the queues whose waiting gangs can change the order of those involved.

        Only queues below one that has involved gangs below it and beside it: gangs of others are taken in between
        and left alone, which changes nothing.
        """
        queues = self._session.queues
        if not self._session.shortcuts:
            return list(self._waiting)
        below: dict[str, set[str]] = {}
        for name in {job.queue for job in involved}:
            for queue in queues[name].ancestors if name in queues else ():
                below.setdefault(queue.parent, set()).add(queue.name)
        split = {name for children in below.values() if len(children) > 1 for name in children}
        return [name for name in self._waiting if any(queue.name in split for queue in queues[name].ancestors)]


def _waiting_by_queue(session: Session) -> dict[str, list[JobState]]:
    waiting: dict[str, list[JobState]] = {}
    for job in session.jobs.values():
        if session.is_queue_usable(job) and job.count(Status.PENDING):
            waiting.setdefault(job.queue, []).append(job)
    return waiting


def _waits(job: JobState) -> bool:
    return bool(job.count(Status.PENDING) or job.count(Status.GATED))


def _is_over_limit(session: Session, ask: Ask) -> bool:
    """Whether the queues refuse the gang even while none of the victims is back."""
    return any(check(ask.view, ask.pending) is not None for check in session.hooks.over_capacity)


def _needs_no_choice(job: JobState) -> bool:
    return all(map(is_plain, job.tasks.values())) and all(member.constraint is None for member in _tree(job.root))


def _tree(group: SubGroupSet) -> Iterator[SubGroup]:
    yield group
    yield from group.pod_sets
    for child in group.groups:
        yield from _tree(child)
