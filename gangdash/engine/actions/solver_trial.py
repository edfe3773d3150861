"""One trial of the search: the pods that ask and the victims that would make room, batch by batch.

``recorded`` are batches kept from an easier trial that worked; ``batches`` are those added since. Mirrors
pkg/scheduler/actions/common/solvers/scenario (KAI d5bc503a).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gangdash.engine.rules.scenario import Demand, Scenario, Victim, demand_of
from gangdash.engine.rules.steps import next_tasks
from gangdash.engine.session import JobState, Session, TaskState

Fingerprint = tuple[int, frozenset[str], frozenset[str]]


class Batch(NamedTuple):
    """Victim pods of one gang that are taken together."""

    job: JobState
    tasks: tuple[TaskState, ...]


class Ask(NamedTuple):
    """The part of a gang for which room is sought: ``view`` holds it beside what runs of the gang."""

    job: JobState
    view: JobState
    pending: tuple[TaskState, ...]
    demand: Demand

    @classmethod
    def of(cls, session: Session, job: JobState, view: JobState) -> Ask:
        """Settle what is asked now: once its tasks are placed in a simulation, it could not be told any more."""
        pending = tuple(next_tasks(session, view, real=False))
        return cls(job, view, pending, demand_of(session, view))


class Trial:
    """Grows by ``add``; everything else reads it."""

    __slots__ = ("ask", "batches", "recorded")

    def __init__(self, ask: Ask, recorded: Sequence[Batch], batches: Iterable[Batch] = ()) -> None:
        self.ask = ask
        self.recorded = tuple(recorded)
        self.batches = list(batches)

    def add(self, batch: Batch) -> None:
        self.batches.append(batch)

    def recorded_tasks(self) -> Iterator[TaskState]:
        return (task for batch in self.recorded for task in batch.tasks)

    def potential_tasks(self) -> Iterator[TaskState]:
        return (task for batch in self.batches for task in batch.tasks)

    def victims(self) -> list[TaskState]:
        """Return every victim once, recorded ones first."""
        tasks = {task.uid: task for batch in (*self.recorded, *self.batches) for task in batch.tasks}
        return list(tasks.values())

    def fingerprint(self) -> Fingerprint:
        """Return what tells equivalent trials of one gang apart."""
        return (
            len(self.ask.pending),
            frozenset(task.uid for task in self.recorded_tasks()),
            frozenset(task.uid for task in self.potential_tasks()),
        )

    def scenario(self) -> Scenario:
        """Return the trial as the rules judge it; a pod that is in two batches counts twice there."""
        by_job: dict[str, list[TaskState]] = {}
        jobs: dict[str, JobState] = {}
        for batch in (*self.recorded, *self.batches):
            jobs[batch.job.key] = batch.job
            by_job.setdefault(batch.job.key, []).extend(batch.tasks)
        victims = [Victim(jobs[key], tasks) for key, tasks in by_job.items()]
        return Scenario(self.ask.job, self.ask.demand, victims)

    def batches_holding(self, tasks: Iterable[TaskState]) -> list[Batch]:
        """Return the first batch of each task, each once: what an accepted trial hands on to the next."""
        of_task: dict[str, Batch] = {}
        for batch in (*self.recorded, *self.batches):
            for task in batch.tasks:
                of_task.setdefault(task.uid, batch)
        kept: list[Batch] = []
        for task in tasks:
            batch = of_task[task.uid]
            if not any(batch is other for other in kept):
                kept.append(batch)
        return kept
