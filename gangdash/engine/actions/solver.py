"""Which victims make room for a gang? Tries victim sets in a simulation until one works and is allowed.

For 1, 2, 4, ... pods of the step and then by halves, each time starting from what worked before, and at
last for all of them. A trial evicts its victims, then places the gang and the victims again in queue order
over what is released; the gang must be placed whole. Mirrors pkg/scheduler/actions/common/solvers
(job_solver.go, by_pod_solver.go) at KAI d5bc503a. The scheduler's budgets are clocks; here a number of
simulations stands for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from gangdash.engine.actions.ordering import JobsByQueue, Selection
from gangdash.engine.actions.placement import allocate_job
from gangdash.engine.actions.solver_generators import GENERATORS, Generator, VictimQueue
from gangdash.engine.actions.solver_trial import Ask, Batch, Fingerprint, Trial
from gangdash.engine.actions.solver_views import part_of
from gangdash.engine.rules.scenario import Scenario
from gangdash.engine.rules.steps import next_tasks
from gangdash.engine.session import JobState, NodeState, Session, Statement, Status, TaskState

Validator = Callable[[Scenario], bool]


class End(Enum):
    """Why the search for one gang ended."""

    SOLVED = "solved"
    EXHAUSTED = "generators_exhausted"
    BUDGET = "deadline_exhausted"


@dataclass(slots=True)
class Budget:
    """Simulations that an action may still run; a deterministic stand-in for the scheduler's clock."""

    left: int

    def spend(self) -> bool:
        self.left -= 1
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class Outcome:
    end: End
    statement: Statement | None = None
    """The operations of a solution, to be committed."""


@dataclass(frozen=True, slots=True)
class _Solution:
    statement: Statement
    victims: tuple[TaskState, ...]
    """Evicted and moved pods."""
    batches: tuple[Batch, ...]


@dataclass(slots=True)
class _Hints:
    """What the last successful probe needed."""

    batches: tuple[Batch, ...] = ()
    victims: tuple[TaskState, ...] = ()


class JobSolver:
    """Searches victims for one gang."""

    def __init__(
        self,
        session: Session,
        job: JobState,
        *,
        feasible: Sequence[NodeState],
        validator: Validator,
        victims: VictimQueue,
        budget: Budget,
    ) -> None:
        self._session = session
        self._job = job
        self._feasible = feasible
        self._validator = validator
        self._victims = victims
        self._budget = budget
        self._failed: set[Fingerprint] = set()
        self._is_out_of_budget = False

    def solve(self) -> Outcome:
        """Return the way it ended; ``SOLVED`` without a statement means that the gang's minimum was not met.

        In that case the scheduler leaves the operations of the solution standing in its session without
        acting on them, and so does this.
        """
        tasks = list(next_tasks(self._session, self._job, real=False))
        active_before = self._job.active_used
        for plugin in self._session.config.plugins:
            generator = GENERATORS.get(plugin.name)
            if generator is None or not tasks:
                continue
            solution = self._solve_with(generator, tasks)
            if solution is not None:
                is_met = self._job.is_gang_satisfied and self._job.active_used > active_before
                return Outcome(End.SOLVED, solution.statement if is_met else None)
            if self._is_out_of_budget:
                return Outcome(End.BUDGET)
        return Outcome(End.EXHAUSTED)

    def _solve_with(self, generator: Generator, tasks: Sequence[TaskState]) -> _Solution | None:
        hints = _Hints()
        if self._most_solvable(generator, tasks, hints) == 0 or self._is_out_of_budget:
            return None
        return self._probe(generator, tasks, hints)

    def _most_solvable(self, generator: Generator, tasks: Sequence[TaskState], hints: _Hints) -> int:
        """Return the largest number of tasks that a probe succeeds for, leaving its victims in the hints."""
        low, count = 0, 1
        while True:
            if not self._try(generator, tasks[:count], hints):
                break
            low = count
            if count == len(tasks):
                return count
            count = min(count * 2, len(tasks))
        high = count
        while high - low > 1 and not self._is_out_of_budget:
            middle = (low + high) // 2
            if self._try(generator, tasks[:middle], hints):
                low = middle
            else:
                high = middle
        return low

    def _try(self, generator: Generator, tasks: Sequence[TaskState], hints: _Hints) -> bool:
        solution = self._probe(generator, tasks, hints)
        if solution is None:
            return False
        hints.batches, hints.victims = solution.batches, solution.victims
        solution.statement.discard()
        return True

    def _probe(self, generator: Generator, tasks: Sequence[TaskState], hints: _Hints) -> _Solution | None:
        """Search victims for some tasks; a solution leaves its operations in place."""
        session = self._session
        ask = Ask.of(session, self._job, part_of(self._job, tasks))
        feasible = {node.name: node for node in self._feasible}
        feasible.update((t.node_name, session.nodes[t.node_name]) for t in hints.victims)
        for trial in generator(session, ask, hints.batches, self._victims, feasible):
            fingerprint = trial.fingerprint()
            if fingerprint in self._failed:
                continue
            if not self._budget.spend():
                self._is_out_of_budget = True
                return None
            solution = self._simulate(trial, feasible)
            if solution is not None:
                return solution
            self._failed.add(fingerprint)
        return None

    def _simulate(self, trial: Trial, feasible: dict[str, NodeState]) -> _Solution | None:
        session = self._session
        victims = trial.victims()
        if not victims or any(task.node_name not in session.nodes for task in victims):
            return None
        statement = session.statement()
        for task in victims:
            statement.evict(task)
        nodes = {**feasible, **{task.node_name: session.nodes[task.node_name] for task in victims}}
        ordered = sorted(nodes.values(), key=lambda node: node.index)
        if not self._place_again(trial.ask, statement, victims, ordered) or not self._validator(trial.scenario()):
            statement.discard()
            return None
        gone = [task for task in victims if task.status is Status.RELEASING]
        moved = [task for task in victims if task.status is Status.PIPELINED]
        return _Solution(statement, (*gone, *moved), tuple(trial.batches_holding([*gone, *moved])))

    def _place_again(
        self, ask: Ask, statement: Statement, victims: Sequence[TaskState], nodes: list[NodeState]
    ) -> bool:
        """Place the gang and, as far as it goes, the victims' gangs, in the order of queues and gangs."""
        session = self._session
        involved = {task.job.key: task.job for task in victims if task.job is not None}
        involved[ask.job.key] = ask.view
        order = JobsByQueue(session)
        order.add((job for job in session.jobs.values() if job.key not in involved), Selection(only_pending=True))
        order.add(involved.values(), Selection())
        is_placed = False
        while not order.is_empty:
            job = order.pop()
            if job.key not in involved:
                continue
            success = allocate_job(session, statement, job, nodes, pipeline_only=True)
            if job is ask.view:
                if not success:
                    return False
                is_placed = True
        return is_placed
