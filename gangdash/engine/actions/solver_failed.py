"""Which gangs need not be tried because an easier one of their kind has just failed?

A gang that failed stands for all gangs with the same scheduling constraints; another is tried only if it is
easier in some respect. Mirrors pkg/scheduler/actions/common/minimal_job_comparison.go and the signatures of
pods, pod sets and gangs (KAI d5bc503a), which leave out labels, device claims and the kind of GPU request.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangdash.engine.model.digest import text
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.podgroup import TopologyConstraint
from gangdash.engine.session import ACTIVE_ALLOCATED, JobState, PodSet, Session, Status, TaskState, Vector
from gangdash.engine.statement.vectors import fits


class FailedJobs:
    """The gangs that stand for what failed so far, by signature."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._representatives: dict[str, JobState] = {}

    def no_harder(self, job: JobState) -> JobState | None:
        """Return a gang that failed although it is no harder: the gang need not be tried then."""
        other = self._representatives.get(signature(self._session, job))
        return None if other is None or is_easier(job, other) else other

    def add(self, job: JobState) -> None:
        key = signature(self._session, job)
        other = self._representatives.get(key)
        if other is None or is_smaller(job, other):
            self._representatives[key] = job


def signature(session: Session, job: JobState) -> str:
    """Return what the gang's pods demand of nodes, as it was when the cycle began."""
    if job.signature is None:
        job.signature = "\n".join(sorted(_of_pod_set(session, pod_set) for pod_set in job.pod_sets.values()))
    return job.signature


def _of_pod_set(session: Session, pod_set: PodSet) -> str:
    waiting = [task for task in pod_set.tasks if not task.start_status & ACTIVE_ALLOCATED]
    if not waiting:
        return ""
    constraints = [_of_constraint(pod_set.constraint)]
    parent = pod_set.parent
    while parent is not None:
        constraints.append(_of_constraint(parent.constraint))
        parent = parent.parent
    pods = sorted(_of_pod(session, task.pod) for task in waiting)
    return "|".join(constraints) + "\t" + "\t".join(pods)


def _of_constraint(constraint: TopologyConstraint | None) -> str:
    if constraint is None:
        return ""
    return f"{constraint.topology}:{constraint.required_level}:{constraint.preferred_level}"


def _of_pod(session: Session, pod: Pod) -> str:
    parts = (
        _storage(session, pod),
        pod.node_selector,
        pod.affinity,
        tuple((t.key, t.operator, t.value, t.effect) for t in pod.tolerations),
        pod.priority_class_name,
        str(pod.priority),
        pod.spread,
        tuple(port.port for container in pod.containers for port in container.host_ports),
    )
    return text(parts)


def _storage(session: Session, pod: Pod) -> tuple[object, ...]:
    """Known claims by class, size and phase; others by their name."""
    if not pod.volumes.claims:
        return pod.volumes.ephemeral
    namespace = pod.meta.namespace
    known = {c.meta.key: c for c in session.snapshot.volume_claims if c.meta.namespace == namespace}
    found: list[object] = list(pod.volumes.ephemeral)
    for name in pod.volumes.claims:
        claim = known.get(f"{namespace}/{name}") if session.params.schedule_csi_storage else None
        found.append(name if claim is None else (claim.storage_class, claim.requested_bytes, claim.phase))
    return tuple(found)


def is_easier(job: JobState, other: JobState) -> bool:
    """Whether the gang asks for fewer pods, or a smaller one at some place of the two sorted lists."""
    mine, theirs = _pending(job), _pending(other)
    if not mine or not theirs:
        return False
    if len(theirs) > len(mine):
        return True
    for left, right in zip(_sorted(mine), _sorted(theirs), strict=False):
        if fits(left, right) and not fits(right, left):
            return True
    return False


def is_smaller(job: JobState, other: JobState) -> bool:
    """Whether each pod of the gang has its match of at least its size in the other."""
    mine, theirs = _pending(job), _pending(other)
    if not mine or not theirs or len(mine) > len(theirs):
        return False
    return all(fits(left, right) for left, right in zip(_sorted(mine), _sorted(theirs), strict=False))


def _pending(job: JobState) -> list[TaskState]:
    return [task for task in job.tasks.values() if task.status is Status.PENDING]


def _sorted(tasks: Sequence[TaskState]) -> list[Vector]:
    """Sort requests by "fits into": an insertion sort, since not any two requests can be compared."""
    out: list[Vector] = []
    for vector in sorted(task.request for task in tasks):
        at = len(out)
        while at and fits(vector, out[at - 1]):
            at -= 1
        out.insert(at, vector)
    return out
