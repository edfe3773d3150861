"""Can the volumes of a pod be reached, bound or provisioned from a node?

Mirrors the VolumeBinding plugin of Kubernetes 1.35 (prefilter and filter, with its texts) as KAI d5bc503a
runs it (k8s_internal/predicates/volume_binding.go). Bindings are looked up afresh for each pod: as in KAI,
a volume chosen for one pod of a cycle is not taken from the next. CSI migration of in-tree volumes is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.model.node import Node
from gangdash.engine.model.pod import Pod
from gangdash.engine.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from gangdash.engine.rules.matching import any_node_term_matches, selector_matches

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
_NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of one pod, sorted by what binding still has to do; ``error`` ends the matter."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    error: str = ""
    unresolvable: bool = True


class VolumeRules:
    def __init__(self, snapshot: ClusterSnapshot, *, ignore_space: bool = False) -> None:
        self._claims = {c.meta.key: c for c in snapshot.volume_claims}
        self._volumes = {v.meta.name: v for v in snapshot.volumes}
        self._classes = {c.meta.name: c for c in snapshot.storage_classes}
        self._capacity_drivers = {d.meta.name for d in snapshot.csi_drivers if d.storage_capacity}
        self._capacities = snapshot.csi_capacities
        self._ignore_space = ignore_space
        self._claims_by_pod: dict[str, PodClaims | None] = {}

    def pod_claims(self, pod: Pod) -> PodClaims | None:
        """Return the pod's claims or what is wrong with them, None when it has none."""
        if pod.key not in self._claims_by_pod:
            self._claims_by_pod[pod.key] = self._resolve(pod)
        return self._claims_by_pod[pod.key]

    def _resolve(self, pod: Pod) -> PodClaims | None:
        names = [(name, False) for name in pod.volumes.claims] + [(name, True) for name in pod.volumes.ephemeral]
        if not names:
            return None
        bound: list[PersistentVolumeClaim] = []
        delayed: list[PersistentVolumeClaim] = []
        immediate = False
        for name, is_ephemeral in names:
            claim = self._claims.get(f"{pod.meta.namespace}/{name}")
            error = _claim_error(pod, name, claim, is_ephemeral)
            if error or claim is None:
                return PodClaims(error=error)
            if _is_bound(claim):
                bound.append(claim)
            elif self._is_delayed(claim):
                delayed.append(claim)
            else:
                immediate = True
        return PodClaims(tuple(bound), tuple(delayed), UNBOUND_IMMEDIATE if immediate else "")

    def _is_delayed(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self._classes.get(claim.storage_class or "")
        return (
            storage_class is not None
            and storage_class.binding_mode == "WaitForFirstConsumer"
            and (not claim.volume_name)
        )

    def failures(self, pod: Pod, node: Node) -> tuple[str, ...]:
        """Return why the node cannot serve the pod's volumes, in upstream's order of reasons."""
        claims = self.pod_claims(pod)
        if claims is None:
            return ()
        reasons = []
        gone = any(c.volume_name not in self._volumes for c in claims.bound)
        if self._bound_elsewhere(claims.bound, node):
            reasons.append(NODE_CONFLICT)
            gone = False
        reasons.extend(self._binding_reasons(claims.delayed, node))
        if gone:
            reasons.append(VOLUME_GONE)
        if self._ignore_space and reasons == [NOT_ENOUGH_SPACE]:
            return ()
        return tuple(reasons)

    def _bound_elsewhere(self, claims: tuple[PersistentVolumeClaim, ...], node: Node) -> bool:
        """Claims are looked at in order: a missing volume ends the search before a later conflict is seen."""
        for claim in claims:
            volume = self._volumes.get(claim.volume_name)
            if volume is None:
                return False
            if not _reaches(volume, node):
                return True
        return False

    def _binding_reasons(self, claims: tuple[PersistentVolumeClaim, ...], node: Node) -> list[str]:
        to_provision: list[PersistentVolumeClaim] = []
        to_match: list[PersistentVolumeClaim] = []
        for claim in claims:
            selected = claim.meta.annotations.get(SELECTED_NODE)
            if selected is not None and selected != node.name:
                return [BIND_CONFLICT]
            (to_match if selected is None else to_provision).append(claim)
        to_provision.extend(self._unmatched(to_match, node))
        return self._provision_reasons(to_provision, node)

    def _unmatched(self, claims: list[PersistentVolumeClaim], node: Node) -> list[PersistentVolumeClaim]:
        """Return the claims that no existing volume serves, smallest requests being matched first."""
        chosen: set[str] = set()
        left = []
        for claim in sorted(claims, key=lambda c: c.requested_bytes or 0):
            volume = self._find_volume(claim, node, chosen)
            if volume is None:
                left.append(claim)
            else:
                chosen.add(volume.meta.name)
        return left

    def _find_volume(self, claim: PersistentVolumeClaim, node: Node, chosen: set[str]) -> PersistentVolume | None:
        best: PersistentVolume | None = None
        for volume in self._volumes.values():
            if volume.meta.name in chosen or volume.meta.deleted is not None or not _suits(volume, claim, node):
                continue
            if volume.claim_key:
                if volume.claim_key == claim.meta.key and volume.claim_uid in ("", claim.meta.uid):
                    return volume
                continue
            if volume.phase != "Available" or not _labels_suit(volume, claim):
                continue
            if best is None or (volume.capacity_bytes or 0) < (best.capacity_bytes or 0):
                best = volume
        return best

    def _provision_reasons(self, claims: list[PersistentVolumeClaim], node: Node) -> list[str]:
        for claim in claims:
            storage_class = self._classes.get(claim.storage_class or "")
            if storage_class is None or storage_class.provisioner in _NO_PROVISIONER:
                return [BIND_CONFLICT]
            topologies = storage_class.allowed_topologies
            if topologies and not any_node_term_matches(topologies, node):
                return [BIND_CONFLICT]
            if not self._has_space(storage_class, claim, node):
                return [NOT_ENOUGH_SPACE]
        return []

    def _has_space(self, storage_class: StorageClass, claim: PersistentVolumeClaim, node: Node) -> bool:
        wanted = claim.requested_bytes
        if wanted is None or storage_class.provisioner not in self._capacity_drivers:
            return True
        for capacity in self._capacities:
            limit = capacity.maximum_volume_bytes
            limit = capacity.capacity_bytes if limit is None else limit
            if capacity.storage_class != storage_class.meta.name or limit is None or limit < wanted:
                continue
            if capacity.node_selector is not None and selector_matches(capacity.node_selector, node.meta.labels):
                return True
        return False


def _claim_error(pod: Pod, name: str, claim: PersistentVolumeClaim | None, is_ephemeral: bool) -> str:
    if claim is None:
        if is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if claim.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.volume_name}"'
    if claim.meta.deleted is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if is_ephemeral and not any(o.uid == pod.meta.uid and o.controller for o in claim.meta.owners):
        return f"PVC {claim.meta.key} was not created for pod {pod.key} (pod is not owner)"
    return ""


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    """A claim is bound once binding was completed; its phase says so where the annotation was not kept."""
    return bool(claim.volume_name) and (BIND_COMPLETED in claim.meta.annotations or claim.phase == "Bound")


def _reaches(volume: PersistentVolume, node: Node) -> bool:
    return volume.node_terms is None or any_node_term_matches(volume.node_terms, node)


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim, node: Node) -> bool:
    return (
        volume.storage_class == (claim.storage_class or "")
        and (volume.capacity_bytes or 0) >= (claim.requested_bytes or 0)
        and (volume.volume_mode or "Filesystem") == (claim.volume_mode or "Filesystem")
        and set(claim.access_modes) <= set(volume.access_modes)
        and _reaches(volume, node)
    )


def _labels_suit(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return claim.selector is None or selector_matches(claim.selector, volume.meta.labels)
