"""The loop that the evicting actions share: which waiting gangs are tried, and what happens to the answer.

Relies on the job order, on the record of what failed, and on ``solver`` for the search itself. Mirrors the
Execute methods of pkg/scheduler/actions/{consolidation,reclaim,preempt} and actions/common (KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from gangdash.engine.actions.ordering import JobsByQueue, Selection
from gangdash.engine.actions.placement import SCHEDULING_ERRORS
from gangdash.engine.actions.solver import End, JobSolver, Means, Outcome
from gangdash.engine.actions.solver_bounds import SlotCache
from gangdash.engine.actions.solver_budget import ActionBudget
from gangdash.engine.actions.solver_capacity import Capacities
from gangdash.engine.actions.solver_failed import FailedJobs
from gangdash.engine.actions.solver_trial import Ask
from gangdash.engine.rules.scenario import LossLimit, Scenario
from gangdash.engine.rules.steps import next_tasks
from gangdash.engine.session import JobState, Session


class Action(Protocol):
    """What tells one evicting action from another."""

    @property
    def name(self) -> str: ...

    @property
    def failures_per_queue(self) -> bool:
        """Whether what failed in one queue says nothing about another."""
        ...

    def may_try(self, job: JobState) -> bool:
        """Whether the gang is considered at all; a gang passed over here does not count as failed."""
        ...

    def may_search(self, job: JobState) -> bool:
        """Whether a search makes sense; a gang refused here counts as failed."""
        ...

    def validator(self, scenario: Scenario) -> bool:
        """Whether the rules accept a scenario that worked in the simulation."""
        ...

    def victims(self, job: JobState) -> VictimSource: ...

    def limit_for(self, ask: Ask) -> LossLimit | None:
        """Return the most GPUs that victims may lose under the action's rules, None where no rule bounds it."""
        ...


def run(session: Session, action: Action, jobs: JobsByQueue) -> None:
    """Try the gangs in order until none is left or the budget ends."""
    budget = ActionBudget(session.config.search_budgets, action.name)
    means = Means(budget, Capacities(session), SlotCache())
    failed: dict[str, FailedJobs] = {}
    while not jobs.is_empty:
        job = jobs.pop()
        for look in session.hooks.before_turn:
            look(action.name, job)
        if not action.may_try(job):
            continue
        record = failed.setdefault(job.queue if action.failures_per_queue else "", FailedJobs(session))
        failed_before = record.no_harder(job) if session.params.use_scheduling_signatures else None
        if failed_before is not None:
            _share_cut(session, job, failed_before)
            continue
        if _is_beyond_help(session, job):
            continue
        outcome = _search(session, action, job, means)
        if outcome.end is End.BUDGET:
            _give_up(session, action, [job, *_rest(jobs)])
            return
        if outcome.statement is not None:
            session.commit(action.name, outcome.statement)
            continue
        if outcome.cut:
            session.budget_hits[job.key] = outcome.cut
        record.add(job)


def _share_cut(session: Session, job: JobState, failed_before: JobState) -> None:
    """Mark a gang that is not tried because of one whose search was cut short."""
    cut = session.budget_hits.get(failed_before.key)
    if cut:
        session.budget_hits.setdefault(job.key, cut)


def _rest(jobs: JobsByQueue) -> Iterator[JobState]:
    while not jobs.is_empty:
        yield jobs.pop()


def _give_up(session: Session, action: Action, jobs: Iterable[JobState]) -> None:
    """Mark the gangs that the action would still have tried."""
    for job in jobs:
        if action.may_try(job):
            session.budget_hits[job.key] = action.name


def _search(session: Session, action: Action, job: JobState, means: Means) -> Outcome:
    if not action.may_search(job):
        return Outcome(End.EXHAUSTED)
    for hook in session.hooks.solution_start:
        hook()
    means.capacities.refresh()
    source = action.victims(job)
    solver = JobSolver(
        session,
        job,
        means=means,
        validator=action.validator,
        victims=source.queue,
        candidates=source.candidates,
        limit_for=action.limit_for,
    )
    return solver.solve()


def _is_beyond_help(session: Session, job: JobState) -> bool:
    """Note and tell that some task fails a check that no eviction changes; noted once per action."""
    for task in next_tasks(session, job, real=False):
        for invariant in session.hooks.victim_invariants:
            error = invariant(task)
            if error:
                notes = job.note_task(task)
                notes.error = notes.error or error
                job.add_error(
                    SCHEDULING_ERRORS,
                    f"Resources were not found for pod {task.namespace}/{task.name} due to: {error}",
                )
                return True
    return False


class VictimSource:
    """The gangs that may be victims of one gang, looked for once, when first needed; makes fresh queues of them.

    Of what an action finds, only preemptible gangs with pods that hold something are victims.
    """

    def __init__(self, session: Session, find: Callable[[], list[JobState]]) -> None:
        self._session = session
        self._find = find
        self._found: list[JobState] | None = None

    def candidates(self) -> list[JobState]:
        if self._found is None:
            self._found = [job for job in self._find() if job.is_preemptible and job.active_allocated > 0]
        return self._found

    def queue(self) -> JobsByQueue:
        queue = JobsByQueue(self._session, victims=True)
        queue.add(self.drawn(), Selection())
        return queue

    def drawn(self) -> list[JobState]:
        """Return the candidates that the next queue holds."""
        return self.candidates()


def waiting_jobs(session: Session, action: str, *, only_preemptible: bool = False) -> JobsByQueue:
    """Return the gangs that an evicting action may try: ready, with pods pending, outside their preemption delay."""
    queue = JobsByQueue(session, depth=session.config.queue_depth.get(action))
    selection = Selection(
        only_ready=True, only_pending=True, only_preemptible=only_preemptible, outside_preemption_delay=True
    )
    queue.add(session.jobs.values(), selection)
    return queue
