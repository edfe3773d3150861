"""Which resource claims belong to a pod, how many GPUs they ask for, and what is allocated for them.

Mirrors pkg/scheduler/api/resource_info/dra_resource_utils.go and pkg/common/resources/dra.go
(KAI d5bc503a). A claim counts as one for GPUs by the name of its device class alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from gangdash.engine.model.dra import AllocatedDevice, ResourceClaim
from gangdash.engine.model.pod import Pod
from gangdash.engine.statement.claims import Claims, is_gpu_name

SYNTHETIC_CLAIM_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
"""Claims made for an extended resource: their GPUs are in the pod's own request already."""


_MOST = 2**63 - 1
"""Counts are the users' own numbers; the scheduler lets their sum go no further."""


class PodClaims:
    """Claims by pod: owned by it, reserved for it first, or named in its spec."""

    def __init__(self, claims: Iterable[ResourceClaim]) -> None:
        self._by_key = {claim.meta.key: claim for claim in claims}
        self._by_pod: dict[str, dict[str, ResourceClaim]] = defaultdict(dict)
        for key in sorted(self._by_key):
            claim = self._by_key[key]
            owner = next((ref.uid for ref in claim.meta.owners if ref.kind == "Pod"), None)
            uid = owner if owner is not None else next(iter(claim.reserved_uids), None)
            if uid:
                self._by_pod[uid][key] = claim

    def of(self, pod: Pod) -> Sequence[ResourceClaim]:
        """Return the claims whose devices count as the pod's request."""
        if not self._by_key:
            return ()
        found = dict(self._by_pod.get(pod.meta.uid, {}))
        for reference in pod.claims:
            key = f"{pod.meta.namespace}/{reference.claim}"
            if reference.claim and key in self._by_key:
                found[key] = self._by_key[key]
        return list(found.values())

    def allocated(self, pod: Pod) -> Claims:
        """Return what is allocated for the claims the pod refers to; claims not made yet are left out."""
        allocations: dict[str, tuple[AllocatedDevice, ...] | None] = {}
        for reference in pod.claims:
            claim = self._by_key.get(f"{pod.meta.namespace}/{reference.claim or reference.resolved}")
            if claim is not None:
                allocations[reference.name] = claim.allocated
        return Claims.of(allocations)


def claimed_gpus(claims: Iterable[ResourceClaim]) -> dict[str, int]:
    """Return GPU devices asked for, by device class; a claim's devices all count under its first class."""
    counts: dict[str, int] = {}
    for claim in claims:
        if claim.meta.annotations.get(SYNTHETIC_CLAIM_ANNOTATION) == "true":
            continue
        asked = [request for request in claim.requests if request.device_class and is_gpu_name(request.device_class)]
        total = sum(1 if request.mode == "All" else max(request.count or 1, 1) for request in asked)
        if total:
            name = asked[0].device_class
            counts[name] = min(counts.get(name, 0) + total, _MOST)
    return counts
