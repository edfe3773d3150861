"""Objects and labels that the pods need and that are missing: ConfigMaps, claims, volume claims, labels on nodes.

The scheduler says some of these in a pod's text and some nowhere; here they are read off the references. A kind that
was not read is never taken as empty.
"""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.explain.build import first, named, names
from gangdash.engine.explain.devices import offered_gpus
from gangdash.engine.explain.gang import Gang
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.model.dra import ResourceClaim
from gangdash.engine.model.pod import Pod
from gangdash.engine.rules.dra import is_gpu_claim
from gangdash.engine.session.nodes import GPU_MEMORY_LABEL
from gangdash.engine.session.requests import GPU_FRACTION, GPU_MEMORY
from gangdash.engine.verdict import Finding, Fix, FixKind, ReasonCode, Waiting, Who

_NO_WAIT = Waiting(helps="no")


def references(gang: Gang) -> Iterator[Finding]:
    """Yield every missing object or label that keeps the waiting pods from being placed."""
    yield from _missing_objects(gang)
    yield from _unlabelled_claims(gang)
    yield from _unlabelled_gpu_nodes(gang)


def priority_class(gang: Gang) -> Iterator[Finding]:
    """Yield that the PriorityClass does not exist. It never keeps a gang waiting: the default takes its place."""
    name, snapshot = gang.podgroup.priority_class_name, gang.context.snapshot
    if not name or not snapshot.was_read("PriorityClass"):
        return
    if any(item.meta.name == name for item in snapshot.priority_classes):
        return
    source = f"PodGroup/{gang.podgroup.key} spec.priorityClassName"
    yield Finding(
        ReasonCode.PRIORITY_CLASS_MISSING,
        facts={"priority_class": name, "default": gang.priority},
        binding=(named(ConstraintId.GANG_PRIORITY, name, "an existing class", f"priority {gang.priority}", source),),
    )


def _missing_objects(gang: Gang) -> Iterator[Finding]:
    snapshot = gang.context.snapshot
    volume_claims = {claim.meta.key for claim in snapshot.volume_claims}
    claims = {claim.meta.key for claim in snapshot.resource_claims}
    known = {
        "ConfigMap": (snapshot.config_maps, _config_maps),
        "PersistentVolumeClaim": (volume_claims, lambda pod: pod.volumes.claims),
        "ResourceClaim": (claims, lambda pod: tuple(c.claim for c in pod.claims if c.claim)),
    }
    for kind, (existing, wanted) in known.items():
        if not snapshot.was_read(kind):
            continue
        missing: dict[str, list[Pod]] = {}
        for pod in gang.pending:
            for name in wanted(pod):
                if f"{pod.meta.namespace}/{name}" not in existing:
                    missing.setdefault(name, []).append(pod)
        for name in sorted(missing)[:1]:
            yield _missing(kind, name, missing[name])


def _config_maps(pod: Pod) -> tuple[str, ...]:
    return (*pod.volumes.config_maps, *(name for container in pod.containers for name in container.config_maps))


def _missing(kind: str, name: str, pods: list[Pod]) -> Finding:
    namespace = pods[0].meta.namespace
    return Finding(
        ReasonCode.OBJECT_MISSING,
        facts={"kind": kind, "name": name, "namespace": namespace, "pods": len(pods), "examples": names(pods)},
        binding=(
            named(ConstraintId.OBJECT_EXISTS, f"{kind}/{namespace}/{name}", name, "missing", f"Pod/{pods[0].key}"),
        ),
        waiting=_NO_WAIT,
        fixes=(
            Fix(
                FixKind.CREATE_OBJECT,
                {"object": f"{kind}/{namespace}/{name}"},
                {"kind": kind, "name": f"{namespace}/{name}"},
            ),
        ),
    )


def _unlabelled_claims(gang: Gang) -> Iterator[Finding]:
    """Yield shared GPU claims, named by pods, that lack the label of the pods' queue."""
    key = gang.params.queue_label_key
    claims = {claim.meta.key: claim for claim in gang.context.snapshot.resource_claims}
    shared = {
        claim.meta.key: claim
        for pod in gang.pending
        for pod_claim in pod.claims
        if pod_claim.claim and (claim := claims.get(f"{pod.meta.namespace}/{pod_claim.claim}")) is not None
    }
    for claim in shared.values():
        if is_gpu_claim(claim) and claim.meta.labels.get(key) != gang.podgroup.queue:
            yield _unlabelled_claim(gang, claim, key)


def _unlabelled_claim(gang: Gang, claim: ResourceClaim, key: str) -> Finding:
    found = claim.meta.labels.get(key)
    label = f"{key}={gang.podgroup.queue}"
    return Finding(
        ReasonCode.LABEL_MISSING,
        form="claim" if found is None else "claim_other",
        facts={"claim": claim.meta.name, "label": key, "queue": gang.podgroup.queue, "found": found or ""},
        binding=(
            named(
                ConstraintId.OBJECT_LABEL,
                f"ResourceClaim/{claim.meta.key}",
                label,
                found or "no such label",
                f"ResourceClaim/{claim.meta.key}",
            ),
        ),
        waiting=_NO_WAIT,
        fixes=(
            Fix(
                FixKind.SET_LABEL,
                {"object": f"ResourceClaim/{claim.meta.key}", "key": key, "value": gang.podgroup.queue},
                {"label": label},
            ),
        ),
        who=Who.OWNER,
    )


def _unlabelled_gpu_nodes(gang: Gang) -> Iterator[Finding]:
    """Yield that no GPU node says how much memory a GPU has, while the pods ask in MiB."""
    asking = [
        pod for pod in gang.pending if GPU_MEMORY in pod.meta.annotations and GPU_FRACTION not in pod.meta.annotations
    ]
    if not asking or gang.shard is None:
        return
    states = gang.context.session(gang.shard).nodes.values()
    gpu_nodes = [state for state in states if offered_gpus(state.node) > 0]
    if not gpu_nodes or any(state.has_gpu_memory for state in gpu_nodes):
        return
    nodes = first(state.name for state in gpu_nodes)
    yield Finding(
        ReasonCode.LABEL_MISSING,
        form="gpu_memory",
        facts={
            "examples": nodes,
            "count": len(gpu_nodes),
            "label": GPU_MEMORY_LABEL,
            "asked": asking[0].meta.annotations[GPU_MEMORY],
        },
        binding=(
            named(
                ConstraintId.OBJECT_LABEL,
                f"Node/{nodes[0]}",
                GPU_MEMORY_LABEL,
                "no such label",
                f"Pod/{asking[0].key} {GPU_MEMORY}",
            ),
        ),
        waiting=_NO_WAIT,
        fixes=(
            Fix(
                FixKind.CREATE_OBJECT,
                {"object": f"Node/{nodes[0]}", "label": GPU_MEMORY_LABEL},
                {"kind": "Node", "name": nodes[0], "label": GPU_MEMORY_LABEL},
                form="label",
                who=Who.CLUSTER_ADMIN,
            ),
        ),
    )
