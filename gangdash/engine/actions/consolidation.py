"""The action ``consolidation``: move running pods together so that a waiting gang fits.

Victims are preemptible gangs of any queue and priority; every victim pod must be placed again. Needs enough
free GPUs in sum. Mirrors pkg/scheduler/actions/consolidation (KAI d5bc503a). The scheduler draws a limited
number of victim gangs in map order, anew for each generator and probe; here the draws go round the list of
candidates, and the gang is marked as one that could be served by several sets.
"""

from __future__ import annotations

from gangdash.engine.actions import solver_run
from gangdash.engine.actions.solver_capacity import idle_gpus, releasing_gpus
from gangdash.engine.actions.solver_trial import Ask
from gangdash.engine.rules.scenario import LossLimit, Scenario
from gangdash.engine.rules.steps import next_tasks
from gangdash.engine.session import JobState, Session, Status, TaskState
from gangdash.engine.statement.vectors import mig_gigabytes, mig_slices

NAME = "consolidation"
_NO_MAXIMUM = -1


def execute(session: Session) -> None:
    if session.params.max_consolidation_preemptees == 0:
        return
    jobs = solver_run.waiting_jobs(session, NAME, only_preemptible=True)
    solver_run.run(session, _Consolidation(session), jobs)


class _Consolidation:
    name = NAME
    failures_per_queue = False

    def __init__(self, session: Session) -> None:
        self.session = session
        self._drawn = 0
        """Gangs drawn so far: each draw begins where the last one ended."""

    def may_try(self, job: JobState) -> bool:
        return True

    def may_search(self, job: JobState) -> bool:
        """Whether ready nodes have enough GPUs, and enough GPU memory, free or being released in sum."""
        gpus, memory = 0.0, 0
        for node in self.session.nodes.values():
            if not node.not_ready:
                for part in (idle_gpus(node), releasing_gpus(node)):
                    gpus, memory = gpus + part[0], memory + part[1]
        asked = [_asks(task) for task in next_tasks(self.session, job, real=False)]
        return gpus >= sum(a[0] for a in asked) and memory >= sum(a[1] for a in asked)

    def validator(self, scenario: Scenario) -> bool:
        return all(task.status is not Status.RELEASING for victim in scenario.victims for task in victim.tasks)

    def victims(self, job: JobState) -> solver_run.VictimSource:
        maximum = self.session.params.max_consolidation_preemptees
        if maximum == _NO_MAXIMUM:
            return solver_run.VictimSource(self.session, lambda: self.candidates(job))
        return _Draws(self, job, maximum + 1)

    def limit_for(self, ask: Ask) -> LossLimit | None:
        """Every victim is placed again, so nothing is lost."""
        return lambda some, victims: 0.0  # noqa: ARG005 (the shape of every limit)

    def candidates(self, job: JobState) -> list[JobState]:
        return [other for other in self.session.jobs.values() if other is not job]

    def draw(self, job: JobState, candidates: list[JobState], size: int) -> list[JobState]:
        """Return the next gangs in the round of candidates."""
        if len(candidates) <= size:
            return candidates
        self.session.one_of_several.add(job.key)
        start = self._drawn % len(candidates)
        self._drawn += size
        return [*candidates[start:], *candidates[:start]][:size]


class _Draws(solver_run.VictimSource):
    """Takes some of the candidates for each queue; the scheduler stops counting one gang late."""

    def __init__(self, action: _Consolidation, job: JobState, size: int) -> None:
        super().__init__(action.session, lambda: action.candidates(job))
        self._action = action
        self._job = job
        self._size = size

    def drawn(self) -> list[JobState]:
        return self._action.draw(self._job, self.candidates(), self._size)


def _asks(task: TaskState) -> tuple[float, int]:
    """Return GPUs and GPU memory as this check counts them: a multi-device memory request only once."""
    gpu = task.gpu
    slices = sum(mig_slices(name) * count for name, count in gpu.mig.items())
    memory = sum(mig_gigabytes(name) * count for name, count in gpu.mig.items())
    return gpu.gpus + gpu.claimed_count + slices, gpu.memory + memory
