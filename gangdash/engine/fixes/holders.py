"""Gangs that hold what is needed: stop the fewest, wait for their end, or let the scheduler evict them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gangdash.engine.changes import Change
from gangdash.engine.explain.build import spoken
from gangdash.engine.explain.gang import Gang
from gangdash.engine.fixes.candidate import Candidate, Case
from gangdash.engine.fixes.spare import SpareRoom, without_gang
from gangdash.engine.session import JobState
from gangdash.engine.verdict import FactValue, FixKind, Who

ENDLESS = frozenset({
    "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet", "LeaderWorkerSet", "DynamoGraphDeployment", "PodCliqueSet",
    "InferenceService", "Service", "RayService", "RayCluster", "Notebook",
})  # fmt: skip
"""Kinds of owner whose pods run until somebody stops them."""
_ASKED = 16
_MOST_SETS = 2


def stopped(case: Case, room: SpareRoom) -> Iterator[Candidate]:
    """Yield small sets of gangs without which the step has room, those of least importance and size first."""
    ranked = sorted(room.held_by, key=lambda key: _importance(case, room, key))[:_ASKED]
    for chosen in room.sets_that_help([without_gang(key) for key in ranked], most=_MOST_SETS):
        yield from stop(case, [case.session.jobs[lift.what] for lift in chosen])


def _importance(case: Case, room: SpareRoom, key: str) -> tuple[bool, int, float, str]:
    job = case.session.jobs[key]
    return not job.is_preemptible, job.priority, -room.held_by[key], key


def ahead(case: Case) -> Iterator[Candidate]:
    """Yield the gangs that the finding names as going first, one by one, the least important first."""
    keys = [holder.gang for finding in case.findings for holder in finding.holders]
    by_name = {job.full_name: job for job in case.session.jobs.values() if job.pending}
    jobs = [by_name[key] for key in dict.fromkeys(keys) if key in by_name]
    for job in sorted(jobs, key=lambda job: (job.priority, job.full_name))[:_MOST_SETS]:
        change = Change(FixKind.EVICT_GANG, job.full_name, {"ends": "true"})
        facts: dict[str, FactValue] = {"gang": spoken(job.name)}
        yield Candidate(FixKind.EVICT_GANG, (change,), facts, form="plain", who=Who.CLUSTER_ADMIN)


def own_queue(case: Case) -> Iterator[Candidate]:
    """Yield one gang of a queue at its limit that would leave enough of it, the least important first."""
    limits = [item for item in case.broken if item.is_limit]
    if not limits:
        return
    below = [
        job
        for job in case.session.jobs.values()
        if job is not case.job and job.active_allocated and job.queue in case.session.queues
    ]
    enough = [job for job in below if all(_leaves_enough(case, job, item.queue.name) for item in limits)]
    for job in sorted(enough, key=lambda job: (not job.is_preemptible, job.priority, job.key))[:_MOST_SETS]:
        yield from stop(case, [job])


def _leaves_enough(case: Case, job: JobState, queue: str) -> bool:
    """Whether the queue's limits hold with the gang gone and the step added."""
    member = case.session.queues[queue]
    if member not in case.session.queues[job.queue].ancestors:
        return False
    held = [sum(task.accepted_amounts[slot] for task in job.tasks.values()) for slot in range(3)]
    return all(
        limit < 0 or not need or member.allocated[slot] - held[slot] + need <= limit
        for slot, (limit, need) in enumerate(zip(member.limit, case.asked, strict=True))
    )


def stop(case: Case, jobs: Sequence[JobState]) -> Iterator[Candidate]:
    """Yield waiting for the gangs' end, where they may have one, and stopping them."""
    keys = [job.full_name for job in jobs]
    names = tuple(spoken(job.name) for job in jobs)
    gpus = sum(task.accepted_amounts[2] for job in jobs for task in job.tasks.values())
    facts: dict[str, FactValue] = {"gang": names[0], "gangs": names, "gpus": gpus}
    if all(_may_end(case, job) for job in jobs):
        changes = tuple(Change(FixKind.WAIT_FOR, f"PodGroup/{key}", {"state": "ended"}) for key in keys)
        what = " and ".join(names) if len(names) < 3 else f"{names[0]} and {len(names) - 1} more gangs"
        yield Candidate(FixKind.WAIT_FOR, changes, {"what": f"{what} to end"}, who=Who.WAIT)
    changes = tuple(Change(FixKind.EVICT_GANG, key, {"ends": "true"}) for key in keys)
    form = "several" if len(keys) > 1 else "" if gpus else "plain"
    yield Candidate(FixKind.EVICT_GANG, changes, facts, form=form, who=Who.CLUSTER_ADMIN)


def _may_end(case: Case, job: JobState) -> bool:
    holder = Gang(case.gang.context, job.podgroup)
    return not any(owner.kind in ENDLESS for owner in (*holder.makers, *holder.owners))


def unprotected(case: Case, room: SpareRoom) -> Iterator[Candidate]:
    """Yield non-preemptible holders that, made preemptible, the scheduler could evict: of other queues, or lesser."""
    keys = [key for key in room.held_by if _is_protected(case, case.session.jobs[key])]
    ranked = sorted(keys, key=lambda key: _importance(case, room, key))[:_ASKED]
    for chosen in room.sets_that_help([without_gang(key) for key in ranked], most=1):
        jobs = [case.session.jobs[lift.what] for lift in chosen]
        changes = tuple(Change(FixKind.MAKE_PREEMPTIBLE, job.full_name) for job in jobs)
        names = tuple(spoken(job.name) for job in jobs)
        form = "several" if len(names) > 1 else ""
        facts: dict[str, FactValue] = {"gang": names[0], "gangs": names}
        yield Candidate(FixKind.MAKE_PREEMPTIBLE, changes, facts, form=form, who=Who.OWNER)


def _is_protected(case: Case, job: JobState) -> bool:
    return not job.is_preemptible and (job.queue != case.job.queue or job.priority < case.job.priority)
