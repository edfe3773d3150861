"""Pods as facts (core API v1): what they ask, where they are, how their containers do."""

from __future__ import annotations

from collections.abc import Iterator

from gangdash.engine.model import selectors
from gangdash.engine.model.pod import Container, ContainerState, HostPort, Pod, PodClaim, PodVolumes
from gangdash.kube.records import base, core
from gangdash.snapshot.adapters.common import amounts, conditions, label_selector, meta, node_term, node_terms, time


def pod(record: core.Pod) -> Pod:
    spec = record.spec or core.PodSpec()
    status = record.status or core.PodStatus()
    return Pod(
        meta=meta(record.metadata),
        phase=status.phase or "Pending",
        scheduler_name=spec.scheduler_name or "",
        node_name=spec.node_name or "",
        nominated_node=status.nominated_node_name or "",
        priority=spec.priority,
        priority_class_name=spec.priority_class_name or "",
        preemption_policy=spec.preemption_policy or "",
        node_selector=spec.node_selector or {},
        affinity=_affinity(spec.affinity),
        tolerations=tuple(_toleration(t) for t in spec.tolerations or ()),
        spread=tuple(_spread(s) for s in spec.topology_spread_constraints or ()),
        gates=tuple(g.name for g in spec.scheduling_gates or ()),
        containers=tuple(_containers(spec)),
        overhead=amounts(spec.overhead, "spec.overhead"),
        volumes=_volumes(record.metadata.name, spec.volumes or ()),
        claims=_claims(spec, status),
        runtime_class=spec.runtime_class_name or "",
        host_network=bool(spec.host_network),
        restart_policy=spec.restart_policy or "",
        grace_seconds=spec.termination_grace_period_seconds,
        started=time(status.start_time),
        reason=status.reason or "",
        message=status.message or "",
        conditions=conditions(status.conditions),
        container_states=tuple(_states(spec, status)),
    )


def _containers(spec: core.PodSpec) -> Iterator[Container]:
    for i, record in enumerate(spec.init_containers or ()):
        yield _container(record, _init_role(record), f"spec.initContainers[{i}]")
    for i, record in enumerate(spec.containers or ()):
        yield _container(record, "main", f"spec.containers[{i}]")


def _init_role(record: core.Container) -> str:
    return "sidecar" if record.restart_policy == "Always" else "init"


def _container(record: core.Container, role: str, field: str) -> Container:
    resources = record.resources or core.Resources()
    return Container(
        name=record.name,
        role=role,
        requests=amounts(resources.requests, f"{field}.resources.requests"),
        limits=amounts(resources.limits, f"{field}.resources.limits"),
        host_ports=tuple(
            HostPort(p.host_port, p.protocol or "TCP", p.host_ip or "") for p in record.ports or () if p.host_port
        ),
        config_maps=_needed(_env_refs(record)),
        claims=tuple(c.name for c in resources.claims or ()),
        wait_for=record.args or (),
    )


def _env_refs(record: core.Container) -> Iterator[core.ConfigMapRef | None]:
    for variable in record.env or ():
        yield variable.value_from.config_map_key_ref if variable.value_from else None
    for source in record.env_from or ():
        yield source.config_map_ref


def _needed(refs: Iterator[core.ConfigMapRef | None]) -> tuple[str, ...]:
    """Return the names of the ConfigMaps that have to exist, each once, in order."""
    return tuple(dict.fromkeys(r.name for r in refs if r and r.name and not r.optional))


def _volumes(pod_name: str, volumes: tuple[core.Volume, ...]) -> PodVolumes:
    return PodVolumes(
        claims=tuple(v.persistent_volume_claim.claim_name for v in volumes if v.persistent_volume_claim),
        ephemeral=tuple(f"{pod_name}-{v.name}" for v in volumes if v.ephemeral is not None),
        config_maps=_needed(_volume_refs(volumes)),
    )


def _volume_refs(volumes: tuple[core.Volume, ...]) -> Iterator[core.ConfigMapRef | None]:
    for volume in volumes:
        yield volume.config_map
        for source in (volume.projected.sources if volume.projected else None) or ():
            yield source.config_map


def _claims(spec: core.PodSpec, status: core.PodStatus) -> tuple[PodClaim, ...]:
    made = {s.name: s.resource_claim_name for s in status.resource_claim_statuses or ()}
    return tuple(
        PodClaim(c.name, c.resource_claim_name, c.resource_claim_template_name, made.get(c.name))
        for c in spec.resource_claims or ()
    )


def _states(spec: core.PodSpec, status: core.PodStatus) -> Iterator[ContainerState]:
    roles = {c.name: _init_role(c) for c in spec.init_containers or ()}
    for record in status.init_container_statuses or ():
        yield _state(record, roles.get(record.name, "init"))
    for record in status.container_statuses or ():
        yield _state(record, "main")


def _state(record: core.ContainerStatus, role: str) -> ContainerState:
    now = record.state or core.ContainerState()
    last = (record.last_state.terminated if record.last_state else None) or core.Terminated()
    name, started, reason, message, code = _current(now)
    return ContainerState(
        name=record.name,
        role=role,
        ready=bool(record.ready),
        restarts=record.restart_count or 0,
        state=name,
        reason=reason or "",
        message=message or "",
        exit_code=code,
        since=started,
        last_reason=last.reason or "",
        last_exit_code=last.exit_code,
        last_message=last.message or "",
    )


def _current(state: core.ContainerState) -> tuple[str, float | None, str | None, str | None, int | None]:
    """Return name, since, reason, message and exit code of a container's state."""
    if state.terminated is not None:
        ended = state.terminated
        return "terminated", time(ended.finished_at), ended.reason, ended.message, ended.exit_code
    if state.running is not None:
        return "running", time(state.running.started_at), None, None, None
    if state.waiting is not None:
        return "waiting", None, state.waiting.reason, state.waiting.message, None
    return "", None, None, None, None


def _affinity(record: base.Affinity | None) -> selectors.Affinity | None:
    if record is None:
        return None
    node = record.node_affinity or base.NodeAffinity()
    pods = record.pod_affinity or base.PodAffinity()
    anti = record.pod_anti_affinity or base.PodAffinity()
    return selectors.Affinity(
        node_required=node_terms(node.required_during_scheduling_ignored_during_execution),
        node_preferred=tuple(
            selectors.PreferredNodeTerm(p.weight, node_term(p.preference))
            for p in node.preferred_during_scheduling_ignored_during_execution or ()
        ),
        pod_required=_pod_terms(pods),
        pod_preferred=_preferred_pod_terms(pods),
        anti_required=_pod_terms(anti),
        anti_preferred=_preferred_pod_terms(anti),
    )


def _pod_terms(record: base.PodAffinity) -> tuple[selectors.PodAffinityTerm, ...]:
    return tuple(_pod_term(t) for t in record.required_during_scheduling_ignored_during_execution or ())


def _preferred_pod_terms(record: base.PodAffinity) -> tuple[selectors.PreferredPodTerm, ...]:
    return tuple(
        selectors.PreferredPodTerm(p.weight, _pod_term(p.pod_affinity_term))
        for p in record.preferred_during_scheduling_ignored_during_execution or ()
    )


def _pod_term(record: base.PodAffinityTerm) -> selectors.PodAffinityTerm:
    return selectors.PodAffinityTerm(
        topology_key=record.topology_key,
        selector=label_selector(record.label_selector),
        namespaces=record.namespaces or (),
        namespace_selector=label_selector(record.namespace_selector),
        match_label_keys=record.match_label_keys or (),
        mismatch_label_keys=record.mismatch_label_keys or (),
    )


def _toleration(record: base.Toleration) -> selectors.Toleration:
    return selectors.Toleration(
        record.key or "", record.operator or "", record.value or "", record.effect or "", record.toleration_seconds
    )


def _spread(record: base.SpreadConstraint) -> selectors.SpreadConstraint:
    return selectors.SpreadConstraint(
        record.max_skew,
        record.topology_key,
        record.when_unsatisfiable,
        label_selector(record.label_selector),
        record.min_domains,
    )
