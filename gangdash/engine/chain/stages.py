"""The stages S0 to S31 between submission and a model that answers: what each means and which controller owes the step.

A stage is a place in a path, a reason code is a cause; ``stage_of`` says where a cause holds a gang up. What proves a
stage is in ``standing`` for what comes before the scheduler, and in the explanation for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gangdash.engine.verdict import ReasonCode, Verdict

_DYNAMO, _GROVE, _KAI, _KUBELET = "Dynamo's operator", "Grove's operator", "KAI", "kubelet"


@dataclass(frozen=True, slots=True)
class Stage:
    """``title`` is what has not happened, or what is wrong, at this stage."""

    id: str
    title: str
    controller: str


STAGES: Mapping[str, Stage] = {
    stage.id: stage
    for stage in (
        Stage("S0", "Kinds are not installed", "who installs the add-on"),
        Stage("S1", "Refused at admission", "an admission webhook"),
        Stage("S2", "Operator has not looked at it", _DYNAMO),
        Stage("S3", "Operator cannot carry it out", _DYNAMO),
        Stage("S4", "Waits by design", "its owner"),
        Stage("S5", "PodCliqueSet not taken up", _GROVE),
        Stage("S6", "Children not created", _GROVE),
        Stage("S7", "Migration of gangs unfinished", _GROVE),
        Stage("S8", "Pods not created", _GROVE),
        Stage("S9", "Gated: the gang is not complete", _GROVE),
        Stage("S10", "Gated: the base gang is not placed", f"{_KAI}'s scheduler"),
        Stage("S11", "Gated by another controller", "the owner of the gate"),
        Stage("S12", "Gated: what it depends on does not exist", _GROVE),
        Stage("S13", "Gate removed late", _GROVE),
        Stage("S14", "Gated: a race or a deadlock", _GROVE),
        Stage("S15", "No PodGroup", "KAI's pod grouper"),
        Stage("S16", "PodGroup waits for pods", "the pods' controller"),
        Stage("S17", "Queue problem", "the queue's administrator"),
        Stage("S18", "Not scheduled", f"{_KAI}'s scheduler"),
        Stage("S19", "Grouped wrongly", "KAI's pod grouper"),
        Stage("S20", "Binding fails", f"{_KAI}'s binder"),
        Stage("S21", "Containers not started", _KUBELET),
        Stage("S22", "Running, not ready", "the workload"),
        Stage("S23", "Evicted by KAI", f"{_KAI}'s scheduler"),
        Stage("S24", "Gang terminated by Grove", _GROVE),
        Stage("S25", "Rollout unfinished", _GROVE),
        Stage("S26", "Only extra replicas wait", f"{_KAI}'s scheduler"),
        Stage("S27", "Old pods do not end", _KUBELET),
        Stage("S28", "Status does not follow", _DYNAMO),
        Stage("S29", "Topology not honoured", _GROVE),
        Stage("S30", "Nodes of one replica are one machine", _KAI),
        Stage("S31", "Running, and the model is not found", "the workload"),
    )
}
_BY_CODE: Mapping[ReasonCode, str] = {
    ReasonCode.KIND_NOT_SERVED: "S0",
    ReasonCode.SUSPENDED: "S4",
    ReasonCode.UPSTREAM_STAGE: "S6",
    ReasonCode.ADMISSION_DOWN: "S8",
    ReasonCode.NAMESPACE_QUOTA: "S8",
    ReasonCode.MEMBERS_MISSING: "S8",
    ReasonCode.SCHEDULING_GATE: "S11",
    ReasonCode.WAITS_FOR_BASE_GANG: "S10",
    ReasonCode.NO_PODGROUP: "S15",
    ReasonCode.WRONG_SCHEDULER: "S15",
    ReasonCode.EMPTY_PODGROUP: "S16",
    ReasonCode.QUEUE_MISSING: "S17",
    ReasonCode.QUEUE_NOT_LEAF: "S17",
    ReasonCode.QUEUE_ORPHANED: "S17",
    ReasonCode.NOT_IN_SHARD: "S17",
    ReasonCode.GANG_NOT_ENFORCED: "S19",
    ReasonCode.BIND_FAILING: "S20",
    ReasonCode.BIND_LOOP: "S20",
    ReasonCode.HELPER_POD_REFUSED: "S20",
    ReasonCode.PROBE_FAILING: "S22",
    ReasonCode.CRASH_LOOP: "S22",
    ReasonCode.SIBLING_GANG_WAITS: "S26",
    ReasonCode.TERMINATING_PODS_HOLD: "S27",
    ReasonCode.STATUS_STALE: "S28",
    ReasonCode.TOPOLOGY_NOT_KEPT: "S29",
}
_BY_VERDICT: Mapping[Verdict, str] = {
    Verdict.WILL_START: "S18",
    Verdict.NO_FIT: "S18",
    Verdict.POLICY: "S18",
    Verdict.CONFIG: "S18",
    Verdict.NODE: "S18",
    Verdict.STUCK: "S18",
    Verdict.PARTIAL: "S18",
    Verdict.EVICTED: "S23",
    Verdict.STARTING: "S21",
}
UNSCHEDULED, ONLY_EXTRA = "S18", "S26"


def stage_of(code: ReasonCode, verdict: Verdict) -> str:
    """Return the stage; empty for gangs that run and for those without a verdict."""
    return _BY_CODE.get(code) or _BY_VERDICT.get(verdict, "")
