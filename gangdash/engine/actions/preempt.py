"""The action ``preempt``: let a gang take the place of less important ones in its own queue.

Victims are preemptible gangs of the same leaf queue with a strictly lower priority that have run for their
minimum time. Mirrors pkg/scheduler/actions/preempt (KAI d5bc503a). The queue's limit is looked at again in
the simulation, where the victims are gone.
"""

from __future__ import annotations

from gangdash.engine.actions import solver_run
from gangdash.engine.actions.solver_trial import Ask
from gangdash.engine.rules.scenario import LossLimit, Scenario
from gangdash.engine.rules.steps import next_tasks
from gangdash.engine.session import JobState, Session

NAME = "preempt"


def execute(session: Session) -> None:
    solver_run.run(session, _Preempt(session), solver_run.waiting_jobs(session, NAME))


class _Preempt:
    name = NAME
    failures_per_queue = True

    def __init__(self, session: Session) -> None:
        self._session = session

    def may_try(self, job: JobState) -> bool:
        return True

    def may_search(self, job: JobState) -> bool:
        """Whether a non-preemptible gang stays within its quota; nobody is told when it does not."""
        tasks = next_tasks(self._session, job, real=False)
        return all(check(job, tasks) is None for check in self._session.hooks.non_preemptible_over_quota)

    def validator(self, scenario: Scenario) -> bool:
        return all(hook(scenario) for hook in self._session.hooks.preempt_scenarios)

    def victims(self, job: JobState) -> solver_run.VictimSource:
        return solver_run.VictimSource(self._session, lambda: self._candidates(job))

    def limit_for(self, ask: Ask) -> LossLimit | None:
        return None

    def _candidates(self, job: JobState) -> list[JobState]:
        filters = self._session.hooks.preempt_victims
        return [
            other
            for other in self._session.jobs.values()
            if other.priority < job.priority
            and other.queue == job.queue
            and all(allows(job, other) for allows in filters)
        ]
