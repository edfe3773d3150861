"""Pods that were bound and that the node's kubelet refused on arrival, and who took the room in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gangdash.engine.explain.binding import KUBELET_REFUSALS
from gangdash.engine.explain.build import names
from gangdash.engine.explain.gang import Gang
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.model.pod import Pod
from gangdash.engine.verdict import Constraint, FactValue, Finding, Holder, ReasonCode, Waiting

_AROUND = 120.0
"""Seconds: a pod of another scheduler that came to the node this close before is the likely taker."""


def refused(gang: Gang) -> Iterator[Finding]:
    """Yield that a kubelet refused pods that the gang lacks now."""
    pods = [pod for pod in gang.failed if pod.reason.startswith(KUBELET_REFUSALS)]
    if not pods or gang.is_satisfied:
        return
    node = Counter(pod.node_name for pod in pods).most_common(1)[0][0]
    here = [pod for pod in pods if pod.node_name == node]
    takers = _takers(gang, node, here)
    facts: dict[str, FactValue] = {
        "fit": len(gang.placed),
        "needed": gang.needed,
        "node": node,
        "refused": len(here),
        "reason": here[-1].reason,
        "taker": takers[0].meta.name if takers else "",
        "scheduler": takers[0].scheduler_name if takers else "",
        "examples": names(here),
    }
    yield Finding(
        ReasonCode.ADMISSION_REFUSED,
        form="taker" if takers else "",
        facts=facts,
        binding=(
            Constraint(
                ConstraintId.NODE_ADMISSION, node, len(here), 0, Unit.PODS, f"Pod/{here[-1].key} {here[-1].reason}"
            ),
            Constraint(
                ConstraintId.GANG_MIN_MEMBER,
                gang.meta.name,
                gang.needed,
                len(gang.placed),
                Unit.PODS,
                f"PodGroup/{gang.podgroup.key}",
            ),
        ),
        holders=tuple(Holder(pod.key, gang.gpus(pod), f"no: placed by {pod.scheduler_name}") for pod in takers[:3]),
        waiting=Waiting(helps="unknown"),
    )


def _takers(gang: Gang, node: str, pods: list[Pod]) -> list[Pod]:
    """Return pods of other schedulers that came to the node shortly before the refused ones, the latest first."""
    moment = max(pod.meta.created or 0.0 for pod in pods)
    found = [
        pod
        for pod in gang.context.pods_on.get(node, ())
        if pod.scheduler_name not in gang.context.scheduler_names and abs((pod.meta.created or 0.0) - moment) <= _AROUND
    ]
    return sorted(found, key=lambda pod: (-(pod.meta.created or 0.0), pod.key))
