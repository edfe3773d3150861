"""At which stage between submission and running a cause keeps the gang (S0 to S31, see the documentation of stages)."""

from __future__ import annotations

from collections.abc import Mapping

from gangdash.engine.verdict import ReasonCode, Verdict

_BY_CODE: Mapping[ReasonCode, str] = {
    ReasonCode.KIND_NOT_SERVED: "S0",
    ReasonCode.ADMISSION_DOWN: "S8",
    ReasonCode.NAMESPACE_QUOTA: "S8",
    ReasonCode.MEMBERS_MISSING: "S8",
    ReasonCode.SUSPENDED: "S4",
    ReasonCode.UPSTREAM_STAGE: "S6",
    ReasonCode.SCHEDULING_GATE: "S11",
    ReasonCode.WAITS_FOR_BASE_GANG: "S10",
    ReasonCode.NO_PODGROUP: "S15",
    ReasonCode.WRONG_SCHEDULER: "S15",
    ReasonCode.EMPTY_PODGROUP: "S16",
    ReasonCode.QUEUE_MISSING: "S17",
    ReasonCode.QUEUE_NOT_LEAF: "S17",
    ReasonCode.QUEUE_ORPHANED: "S17",
    ReasonCode.NOT_IN_SHARD: "S17",
    ReasonCode.BIND_FAILING: "S20",
    ReasonCode.BIND_LOOP: "S20",
    ReasonCode.HELPER_POD_REFUSED: "S20",
    ReasonCode.PROBE_FAILING: "S22",
    ReasonCode.CRASH_LOOP: "S22",
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


def stage_of(code: ReasonCode, verdict: Verdict) -> str:
    """Return the stage; empty for gangs that run and for those without a verdict."""
    return _BY_CODE.get(code) or _BY_VERDICT.get(verdict, "")
