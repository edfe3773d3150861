"""Bound and not ready: which container, image, volume or probe keeps a placed gang from running?

Relies on container states and, for volumes and start errors, on events. The worst state of any pod is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gangdash.engine.chain.index import last_seen
from gangdash.engine.explain.build import first, named, names
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.gates import is_ready
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.model.observed import Event
from gangdash.engine.model.pod import ContainerState, Pod
from gangdash.engine.verdict import FactValue, Finding, Fix, FixKind, ReasonCode, Waiting, Who

_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"})
_START = frozenset({
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun",
    "PostStartHookError",
})  # fmt: skip
_MOUNT = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_CRASH_RESTARTS = 2


class Trouble(NamedTuple):
    """What keeps one pod from being ready; ``container`` is None where no container is to blame."""

    code: ReasonCode
    pod: Pod
    container: ContainerState | None = None
    event: Event | None = None


_ORDER = (
    ReasonCode.IMAGE_PULL,
    ReasonCode.VOLUME_MOUNT,
    ReasonCode.CRASH_LOOP,
    ReasonCode.CONTAINER_START,
    ReasonCode.INIT_CONTAINER,
    ReasonCode.PROBE_FAILING,
)


def starting(gang: Gang) -> Iterator[Finding]:
    """Yield what keeps bound pods from being ready, the worst first."""
    troubles = [_trouble(gang, pod) for pod in gang.bound if not is_ready(pod)]
    for code in _ORDER:
        same = [trouble for trouble in troubles if trouble.code is code]
        if same:
            yield _finding(code, same)


def _trouble(gang: Gang, pod: Pod) -> Trouble:
    states = pod.container_states
    waiting = next((state for state in states if state.reason in _IMAGE), None)
    if waiting is not None:
        return Trouble(ReasonCode.IMAGE_PULL, pod, waiting)
    mount = _event(gang, pod, _MOUNT.__contains__)
    if mount is not None:
        return Trouble(ReasonCode.VOLUME_MOUNT, pod, event=mount)
    broken = next((state for state in states if state.reason in _START or state.last_reason in _START), None)
    if broken is not None:
        return Trouble(ReasonCode.CONTAINER_START, pod, broken, _event(gang, pod, "Failed".__eq__))
    crashed = next((state for state in states if _crashes(state)), None)
    if crashed is not None:
        return Trouble(ReasonCode.CRASH_LOOP, pod, crashed, _event(gang, pod, "Failed".__eq__))
    init = next((state for state in states if state.role == "init" and not _is_done(state)), None)
    if init is not None:
        return Trouble(ReasonCode.INIT_CONTAINER, pod, init)
    running = next((state for state in states if state.state == "running" and not state.ready), None)
    if running is not None or (pod.phase == "Running" and states):
        return Trouble(ReasonCode.PROBE_FAILING, pod, running)
    return Trouble(ReasonCode.CONTAINER_START, pod, next((s for s in states if s.state == "waiting"), None))


def _crashes(state: ContainerState) -> bool:
    return state.reason == "CrashLoopBackOff" or (state.restarts > _CRASH_RESTARTS and not state.ready)


def _is_done(state: ContainerState) -> bool:
    return state.ready or (state.state == "terminated" and state.exit_code == 0)


def _event(gang: Gang, pod: Pod, wanted: Callable[[str], bool]) -> Event | None:
    """Return the latest event of a pod whose reason is wanted, if it is from after the pod's start."""
    events = gang.context.events("Pod", pod.meta.namespace, pod.meta.name)
    after = pod.meta.created or 0.0
    return next((event for event in reversed(events) if wanted(event.reason) and last_seen(event) >= after), None)


def _finding(code: ReasonCode, troubles: list[Trouble]) -> Finding:
    pods = [trouble.pod for trouble in troubles]
    worst = max(troubles, key=lambda trouble: trouble.container.restarts if trouble.container is not None else 0)
    container = worst.container
    facts: dict[str, FactValue] = {
        "pods": len(pods),
        "nodes": first({pod.node_name for pod in pods}),
        "examples": names(pods),
        "container": container.name if container is not None else "",
        "restarts": container.restarts if container is not None else 0,
        "reason": _reason(worst),
        "wanted": _start_order(worst.pod),
    }
    return Finding(
        code,
        form=_form(code, worst),
        facts=facts,
        binding=(
            named(
                ConstraintId.POD_CONTAINER,
                f"{worst.pod.meta.name} on {worst.pod.node_name}",
                "ready",
                _reason(worst) or "not started",
                f"Pod/{worst.pod.key} status",
            ),
        ),
        waiting=Waiting(helps="unknown"),
        fixes=_fixes(code, worst, facts),
    )


def _fixes(code: ReasonCode, worst: Trouble, facts: dict[str, FactValue]) -> tuple[Fix, ...]:
    """Return what there is to wait for; what is broken in an image, a command or a probe only its owner mends."""
    pod, container = worst.pod, facts["container"]
    if code is ReasonCode.INIT_CONTAINER:
        what = f"{facts['wanted']} to be ready" if facts["wanted"] else f"init container {container} to end"
    elif code is ReasonCode.CONTAINER_START and not _form(code, worst):
        what = "its containers to start"
    elif code is ReasonCode.PROBE_FAILING:
        what = f"container {container} to be ready" if container else "its containers to be ready"
    elif code is ReasonCode.VOLUME_MOUNT:
        what = "its volumes to be mounted"
    else:
        part = "image of container" if code is ReasonCode.IMAGE_PULL else "container"
        change: dict[str, FactValue] = {"object": f"Pod/{pod.key}", "field": f"{part} {container}"}
        return (Fix(FixKind.FIX_REFERENCE, change, {"found": _reason(worst) or "a crash"}, form="choose"),)
    return (Fix(FixKind.WAIT_FOR, {"object": f"Pod/{pod.key}"}, {"what": what}, who=Who.WAIT),)


def _reason(trouble: Trouble) -> str:
    """Return the most telling words: an event's text, else the container's own reason."""
    if trouble.event is not None:
        return trouble.event.message
    container = trouble.container
    if container is None:
        return ""
    return container.message or container.last_message or container.reason or container.last_reason


def _form(code: ReasonCode, trouble: Trouble) -> str:
    container = trouble.container
    if (
        code is ReasonCode.CONTAINER_START
        and container is not None
        and (container.reason in _START or container.last_reason in _START)
    ):
        return "fails"
    if code is ReasonCode.INIT_CONTAINER and _start_order(trouble.pod):
        return "waits_for"
    return ""


def _start_order(pod: Pod) -> str:
    """Return which PodCliques Grove's start-order container waits for, as ``NAME:COUNT``."""
    return ", ".join(part for container in pod.containers for part in container.wait_for)
