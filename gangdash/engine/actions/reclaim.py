"""The action ``reclaim``: let a gang take back from other queues what its own queue is entitled to.

Victims are preemptible gangs of other leaf queues that fair share and minimum run time leave open. Mirrors
pkg/scheduler/actions/reclaim (KAI d5bc503a); the shares are judged in ``rules.reclaimable``.
"""

from __future__ import annotations

from gangdash.engine.actions import solver_run
from gangdash.engine.actions.solver_trial import Ask
from gangdash.engine.rules.scenario import LossLimit, Scenario
from gangdash.engine.session import JobState, Session

NAME = "reclaim"


def execute(session: Session) -> None:
    solver_run.run(session, _Reclaim(session), solver_run.waiting_jobs(session, NAME))


class _Reclaim:
    name = NAME
    failures_per_queue = True

    def __init__(self, session: Session) -> None:
        self._session = session

    def may_try(self, job: JobState) -> bool:
        """Without a rule that says who may reclaim, nobody may."""
        hooks = self._session.hooks.can_reclaim
        return bool(hooks) and all(hook(job) for hook in hooks)

    def may_search(self, job: JobState) -> bool:
        return True

    def validator(self, scenario: Scenario) -> bool:
        return all(hook(scenario) for hook in self._session.hooks.reclaim_scenarios)

    def victims(self, job: JobState) -> solver_run.VictimSource:
        return solver_run.VictimSource(self._session, lambda: self._candidates(job))

    def limit_for(self, ask: Ask) -> LossLimit | None:
        limits = [limit(ask.job, ask.demand) for limit in self._session.hooks.reclaim_limits]
        return (lambda some, victims: min(limit(some, victims) for limit in limits)) if limits else None

    def _candidates(self, job: JobState) -> list[JobState]:
        filters = self._session.hooks.reclaim_victims
        return [
            other
            for other in self._session.jobs.values()
            if other.queue != job.queue and all(allows(job, other) for allows in filters)
        ]
