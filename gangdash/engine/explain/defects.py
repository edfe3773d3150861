"""Known faults of scheduler versions that fit a gang which the replay places and the scheduler does not.

Each names the version that mended it and the signs that must be there. A sign is no proof, so a fault stands beside
the verdict and never in its place. Sources: the scheduler's changelog and the reports that the scenes re-create.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gangdash.engine.explain import components
from gangdash.engine.explain.build import named
from gangdash.engine.explain.gang import Gang, gangs_of
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.model.version import Version, parsed
from gangdash.engine.model.version import named as release
from gangdash.engine.verdict import Finding, ReasonCode

_MIG_KEY = "nvidia.com/mig-"


class Defect(NamedTuple):
    """``form`` is the wording; ``fits`` looks for the signs in the objects and in what the replay does."""

    form: str
    mended: Version
    fits: Callable[[Gang], bool]


def defects(gang: Gang) -> Iterator[Finding]:
    """Yield the first known fault of the running version whose signs are there."""
    text = _running(gang)
    version = parsed(text)
    if version is None:
        return
    for defect in _KNOWN:
        if version < defect.mended and defect.fits(gang):
            yield _finding(gang, defect, text)
            return


def _finding(gang: Gang, defect: Defect, version: str) -> Finding:
    mended = release(defect.mended)
    scheduler = gang.params.scheduler_name
    return Finding(
        ReasonCode.SCHEDULER_DEFECT,
        form=defect.form,
        facts={"version": version, "mended": mended},
        binding=(named(ConstraintId.SCHEDULER_VERSION, scheduler, mended, version, "image of the scheduler"),),
    )


def _running(gang: Gang) -> str:
    if gang.shard is None:
        return ""
    part = components.scheduler_of(gang.context, gang.shard)
    return gang.shard.version or (part.version if part is not None else "")


def _by_reclaim(gang: Gang) -> bool:
    return gang.result is not None and gang.result.action == "reclaim"


def _given(gang: Gang) -> set[str]:
    return {pod.node for pod in gang.result.pods if pod.node and pod.action} if gang.result is not None else set()


def _on_mig_keys(gang: Gang) -> bool:
    """Whether a node that it fits on names MIG profiles and has none of them."""
    nodes = (gang.context.nodes[name] for name in _given(gang) if name in gang.context.nodes)
    return any(key.startswith(_MIG_KEY) and not amount for node in nodes for key, amount in node.allocatable.items())


def _taken_for_another(gang: Gang) -> bool:
    """Whether another waiting gang of its queue asks for the same and has another topology constraint."""
    own = gang.podgroup
    return any(
        other.podgroup.queue == own.queue and other.podgroup.topology != own.topology and other.pending
        for other in gangs_of(gang.context)
        if other.podgroup is not own and len(other.pending) == len(gang.pending)
    )


_KNOWN = (
    Defect("signature", (0, 12, 0), _taken_for_another),
    Defect("mig_keys", (0, 14, 0), _on_mig_keys),
    Defect("reclaim_order", (0, 17, 0), _by_reclaim),
)
"""The most specific signs first."""
