"""A pod as the API serves it, reduced to the fields that some rule reads.

Never holds environment values, commands, images' pull secrets or volume contents. Requests are kept
per container because the scheduler's sum over init containers and sidecars is one of the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gangdash.engine.model.meta import Condition, Meta
from gangdash.engine.model.selectors import Affinity, SpreadConstraint, Toleration


@dataclass(frozen=True, slots=True)
class HostPort:
    port: int
    protocol: str = "TCP"
    host_ip: str = ""


@dataclass(frozen=True, slots=True)
class Container:
    """``role`` is ``main``, ``init`` or ``sidecar`` (an init container that restarts always), in spec order."""

    name: str
    role: str = "main"
    requests: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    host_ports: tuple[HostPort, ...] = ()
    config_maps: tuple[str, ...] = ()
    """Names of non-optional ConfigMaps that env or envFrom refers to."""
    claims: tuple[str, ...] = ()
    """Names of the pod's resource claims that this container uses."""
    wait_for: tuple[str, ...] = ()
    """``--podcliques=NAME:COUNT`` arguments of Grove's start-order init container; no other argument is kept."""


@dataclass(frozen=True, slots=True)
class ContainerState:
    """The state of one container: ``state`` is ``waiting``, ``running``, ``terminated`` or empty (not reported)."""

    name: str
    role: str = "main"
    ready: bool = False
    restarts: int = 0
    state: str = ""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    since: float | None = None
    last_reason: str = ""
    last_exit_code: int | None = None
    last_message: str = ""


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A resource claim of a pod: by name, or from a template; ``resolved`` is the claim made from it, if any."""

    name: str
    claim: str | None = None
    template: str | None = None
    resolved: str | None = None


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """Volumes that placement depends on. ``ephemeral`` are the names of generated claims (``pod-volume``)."""

    claims: tuple[str, ...] = ()
    ephemeral: tuple[str, ...] = ()
    config_maps: tuple[str, ...] = ()
    """Names of non-optional ConfigMaps, projected ones included."""


@dataclass(frozen=True, slots=True)
class Pod:
    """``priority`` is the admission-resolved number, ``None`` if unset. ``node_name`` is empty until bound."""

    meta: Meta
    phase: str = "Pending"
    scheduler_name: str = ""
    node_name: str = ""
    nominated_node: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    gates: tuple[str, ...] = ()
    containers: tuple[Container, ...] = ()
    overhead: Mapping[str, int] = field(default_factory=dict)
    volumes: PodVolumes = PodVolumes()
    claims: tuple[PodClaim, ...] = ()
    runtime_class: str = ""
    host_network: bool = False
    restart_policy: str = ""
    grace_seconds: int | None = None
    started: float | None = None
    """status.startTime: when the kubelet accepted the pod."""
    reason: str = ""
    """status.reason, such as Evicted or UnexpectedAdmissionError."""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_states: tuple[ContainerState, ...] = ()

    @property
    def key(self) -> str:
        return self.meta.key

    def condition(self, type_: str) -> Condition | None:
        return next((c for c in self.conditions if c.type == type_), None)
