"""Kinds that could not be read and that a gang depends on: what may not be taken as empty.

A kind that cannot matter to the gang is not mentioned. PriorityClass decides only where no pod says its own priority,
which tells the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.chain.index import controller
from gangdash.engine.explain import capacity
from gangdash.engine.explain.build import named
from gangdash.engine.explain.context import Context
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.topology import constraints
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.verdict import Constraint, Finding, ReasonCode, Waiting

_BASICS = ("Node", "Pod", "PodGroup", "Queue")
_RUN_TO_THEIR_END = frozenset({"Job", "JobSet", "MPIJob", "PyTorchJob", "RayJob", "TFJob", "XGBoostJob"})
CLOCKS_APART = 300.0
"""Seconds by which clocks of one cluster may differ without its objects being of different moments."""
_CLAIMS = ("DeviceClass", "ResourceClaim", "ResourceSlice")


def basics(gang: Gang) -> Iterator[Finding]:
    """Yield that a kind without which no gang can be judged was not read."""
    yield from _finding(gang, [kind for kind in _BASICS if not gang.context.snapshot.was_read(kind)])


def pods(gang: Gang) -> Iterator[Finding]:
    """Yield that pods were not read, without which nothing at all is known of a gang."""
    if not gang.context.snapshot.was_read("Pod"):
        yield from basics(gang)


def other_moment(gang: Gang) -> Iterator[Finding]:
    """Yield that the gang's objects were made after the moment that the answer is for: nothing holds of both."""
    made = [(pod.meta.created, f"Pod {pod.meta.name}") for pod in gang.pods]
    made.append((gang.meta.created, f"PodGroup {gang.meta.name}"))
    created, name = max((created or 0.0, name) for created, name in made)
    ahead = created - gang.as_of
    if ahead > CLOCKS_APART:
        yield Finding(
            ReasonCode.STALE_DATA,
            facts={"object": name, "ahead": ahead},
            binding=(named(ConstraintId.SNAPSHOT_READ, name, "of one moment", "made later", "creationTimestamp"),),
            waiting=Waiting(),
        )


def shards(gang: Gang) -> Iterator[Finding]:
    """Yield that the scheduler of the gang's node pool is not known because shards were not read."""
    if not gang.context.snapshot.was_read("SchedulingShard"):
        yield from _finding(gang, ["SchedulingShard"])


def owner(gang: Gang) -> Iterator[Finding]:
    """Yield that a gang without pods belongs to something that may have run to its end and was not read."""
    ref = controller(gang.meta)
    if gang.pods or ref is None or ref.kind not in _RUN_TO_THEIR_END:
        return
    if not gang.context.snapshot.was_read(ref.kind):
        yield from _finding(gang, [ref.kind])


def placement(gang: Gang) -> Iterator[Finding]:
    """Yield that a kind which decides where the gang's pods may go, or who may be evicted for it, was not read."""
    kinds = [kind for kind in _placement_kinds(gang) if not gang.context.snapshot.was_read(kind)]
    priorities = gang.context.snapshot.was_read("PriorityClass") or not gang.context.has_unknown_priorities
    if not priorities and not capacity.never_fits(gang):
        kinds.append("PriorityClass")
    yield from _finding(gang, kinds)


def podgroups(context: Context) -> Iterator[Finding]:
    """Yield that nobody can say which pods are in no PodGroup because PodGroups were not read."""
    if not context.snapshot.was_read("PodGroup"):
        yield _not_read(context, ["PodGroup"])


def _placement_kinds(gang: Gang) -> list[str]:
    kinds = []
    if any(True for _ in constraints(gang)):
        kinds.append("Topology")
    if any(pod.claims for pod in gang.pending):
        kinds.extend(_CLAIMS)
    if any(pod.volumes.claims or pod.volumes.ephemeral for pod in gang.pending):
        kinds.append("PersistentVolumeClaim")
    return kinds


def _finding(gang: Gang, kinds: list[str]) -> Iterator[Finding]:
    if kinds:
        yield _not_read(gang.context, kinds)


def _not_read(context: Context, kinds: list[str]) -> Finding:
    reasons = {gap.kind: gap.reason for gap in context.snapshot.not_read}
    why = reasons.get(kinds[0], "not in the file")
    return Finding(
        ReasonCode.NOT_READ,
        facts={"kinds": tuple(kinds), "reason": why, "count": len(kinds)},
        binding=tuple(_constraint(kind, reasons) for kind in kinds),
        waiting=Waiting(),
    )


def _constraint(kind: str, reasons: dict[str, str]) -> Constraint:
    return named(ConstraintId.SNAPSHOT_READ, kind, "read", reasons.get(kind, "not in the file"), f"kind {kind}")


def unread_kinds(gang: Gang) -> tuple[str, ...]:
    """Return the kinds that were not read and touch the gang, whether or not its verdict hangs on them."""
    kinds = [*_BASICS, *_placement_kinds(gang), "BindRequest"]
    if gang.podgroup.priority_class_name:
        kinds.append("PriorityClass")
    return tuple(sorted(kind for kind in kinds if not gang.context.snapshot.was_read(kind)))
