"""The scheduler chose a node, and the pod is not bound: does the binder fail, loop, or not answer at all?

Trust only ``spec.nodeName`` and the BindRequest: the binder sends Bound events and PodBound conditions for binds that
failed, and remakes the request each second, so the request's age says nothing in a loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from gangdash.engine.chain.index import last_seen
from gangdash.engine.explain.build import named, names
from gangdash.engine.explain.components import binder, restart
from gangdash.engine.explain.gang import Gang
from gangdash.engine.identifiers import ConstraintId
from gangdash.engine.model.observed import Event
from gangdash.engine.model.pod import Pod
from gangdash.engine.session.build import APP_LABEL, SCALING_APP
from gangdash.engine.verdict import FactValue, Finding, Fix, FixKind, ReasonCode, Waiting, Who

LOOP_TIMES = 3
RECENT = 600.0
"""Seconds: a binding error older than this says nothing about now."""
GROUP_LABEL = "runai-gpu-group"
KUBELET_REFUSALS = ("OutOf", "UnexpectedAdmissionError", "TopologyAffinityError", "NodeAffinity", "InvalidNodeInfo")
"""Reasons of pods that a kubelet refused on arrival."""
_DENIED = re.compile(r"denied the request|is forbidden|exceeded quota")
_PATIENCE = 30.0
_PERIODS = 3


class Failure(NamedTuple):
    """The last failed bind of one pod; ``times`` counts attempts as far as events and the request tell."""

    pod: Pod
    node: str
    text: str
    times: int
    last: float


def patience(gang: Gang) -> float:
    """Return how long the live system may take: three scheduling periods and half a minute."""
    return _PERIODS * gang.params.schedule_period + _PATIENCE


def bind_trouble(gang: Gang) -> Iterator[Finding]:
    """Yield why pods that the scheduler assigned are not bound."""
    failures = [failure for pod in gang.pods if not pod.node_name and (failure := _failure(gang, pod)) is not None]
    if failures:
        yield _failing(gang, max(failures, key=lambda failure: (failure.times, failure.pod.key)))
        return
    waiting = [pod for pod in gang.binding if _age(gang, pod) > patience(gang)]
    if waiting:
        yield _silent(gang, waiting)


def _age(gang: Gang, pod: Pod) -> float:
    request = gang.bind_request(pod)
    return gang.as_of - (request.meta.created or gang.as_of) if request is not None else 0.0


def _failure(gang: Gang, pod: Pod) -> Failure | None:
    events = gang.context.events("Pod", pod.meta.namespace, pod.meta.name)
    errors = [event for event in events if event.reason in {"BindingError", "FailedBinding"}]
    recent = [event for event in errors if last_seen(event) >= gang.as_of - RECENT]
    request = gang.bind_request(pod)
    failed = request is not None and (request.phase == "Failed" or request.failed_attempts > 0)
    if not recent and not failed:
        return None
    text = request.reason if request is not None and request.reason else recent[-1].message if recent else ""
    attempts = request.failed_attempts if request is not None else 0
    times = max(attempts, sum(event.count for event in errors))
    last = last_seen(recent[-1]) if recent else gang.as_of
    return Failure(pod, request.node if request is not None else _node_in(recent), text, times, last)


def _node_in(events: list[Event]) -> str:
    """Return the node that a binding error names: ``... to node NAME: ...``."""
    text = events[-1].message if events else ""
    return text.partition(" to node ")[2].partition(":")[0].strip().rstrip(".")


def _failing(gang: Gang, failure: Failure) -> Finding:
    refused = _refused_helper(gang, failure)
    if refused is not None:
        return refused
    code = ReasonCode.BIND_LOOP if failure.times >= LOOP_TIMES else ReasonCode.BIND_FAILING
    helper = _scaling_pod(gang) if "scaling up" in failure.text else None
    facts: dict[str, FactValue] = {
        "node": failure.node,
        "times": failure.times,
        "problem": _short(failure.text),
        "examples": (failure.pod.meta.name,),
    }
    form = ""
    if helper is not None:
        form = "helper"
        facts |= {
            "helper": helper.meta.name,
            "helper_node": helper.node_name or "no node",
            "since": max(gang.as_of - (helper.meta.deleted or gang.as_of), 0.0),
        }
    return Finding(
        code,
        form=form,
        facts=facts,
        binding=(
            named(
                ConstraintId.BINDER_BINDS,
                f"{failure.pod.meta.name} on {failure.node}",
                "bound",
                _short(failure.text),
                f"BindRequest/{failure.pod.key}",
            ),
        ),
        waiting=Waiting(helps="unknown"),
        fixes=_fixes(gang, helper),
    )


def _refused_helper(gang: Gang, failure: Failure) -> Finding | None:
    """Return that the reservation pod of the shared GPU is refused, by the API server or by the node's kubelet."""
    failed = sorted(
        (
            pod
            for pod in gang.context.snapshot.pods
            if pod.meta.labels.get(APP_LABEL) == gang.params.reservation_app_label
            and pod.node_name == failure.node
            and pod.phase == "Failed"
            and pod.reason.startswith(KUBELET_REFUSALS)
        ),
        key=lambda pod: pod.key,
    )
    denied = "reservation" in failure.text and _DENIED.search(failure.text) is not None
    if not failed and not denied:
        return None
    name = failed[-1].meta.name if failed else gang.params.reservation_app_label
    problem = failed[-1].reason if failed else _short(failure.text)
    source = f"Pod/{failed[-1].key}" if failed else f"BindRequest/{failure.pod.key}"
    return Finding(
        ReasonCode.HELPER_POD_REFUSED,
        form="kubelet" if failed else "",
        facts={"node": failure.node, "helper": name, "problem": problem, "times": failure.times},
        binding=(named(ConstraintId.HELPER_POD, f"{name} on {failure.node}", "admitted", problem, source),),
        waiting=Waiting(helps="unknown"),
        fixes=_fixes(gang, None),
    )


def _short(text: str) -> str:
    """Return the end of a chain of error texts: what comes first repeats pod and node."""
    for prefix in ("Failed to bind pod ", "failed to reserve GPUs resources: "):
        if text.startswith(prefix):
            text = text.partition(": ")[2] or text
    return text


def _scaling_pod(gang: Gang) -> Pod | None:
    """Return a scaling pod that is still there, a terminating one first."""
    found = [pod for pod in gang.context.snapshot.pods if pod.meta.labels.get(APP_LABEL) == SCALING_APP]
    return min(found, key=lambda pod: (pod.meta.deleted is None, pod.key), default=None)


def _fixes(gang: Gang, helper: Pod | None) -> tuple[Fix, ...]:
    if helper is not None:
        return (
            Fix(
                FixKind.RECREATE_WORKLOAD,
                {"object": f"Pod/{helper.key}"},
                {"object": f"Pod {helper.key} by force"},
                form="remove",
                who=Who.CLUSTER_ADMIN,
            ),
        )
    return (restart(binder(gang.context), "the binder"),)


def _silent(gang: Gang, pods: list[Pod]) -> Finding:
    request = gang.bind_request(pods[0])
    node = request.node if request is not None else ""
    part = binder(gang.context)
    down = part is not None and not part.is_ready
    facts: dict[str, FactValue] = {
        "node": node,
        "examples": names(pods),
        "since": _age(gang, pods[0]),
        "component": part.name if part is not None else "binder",
        "state": part.state if part is not None else "",
    }
    return Finding(
        ReasonCode.BIND_FAILING,
        form="down" if down else "silent",
        facts=facts,
        binding=(
            named(
                ConstraintId.BINDER_BINDS,
                f"{pods[0].meta.name} on {node}",
                "bound",
                "no answer",
                f"BindRequest/{pods[0].key}",
            ),
        ),
        waiting=Waiting(helps="unknown"),
        fixes=(restart(part, "the binder"),),
    )
