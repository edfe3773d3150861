"""Waiting that ends at a known time: a preemption delay, or the minimum run time of those who hold the room."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gangdash.engine.changes import Change
from gangdash.engine.fixes.candidate import Candidate, Case
from gangdash.engine.verdict import FixKind, ReasonCode, Who


def delay(case: Case) -> Iterator[Candidate]:
    yield from _until(case, ReasonCode.PREEMPTION_DELAY, "the end of its preemption delay")


def protection(case: Case) -> Iterator[Candidate]:
    yield from _until(case, ReasonCode.HOLDERS_PROTECTED, "the holders' minimum run time to end")


def _until(case: Case, code: ReasonCode, what: str) -> Iterator[Candidate]:
    """Yield letting time pass until the finding's time, if it knows one."""
    for finding in case.findings:
        until = finding.waiting.until if finding.waiting is not None else None
        if finding.code is code and until is not None and until > case.gang.as_of:
            seconds = math.floor(until - case.gang.as_of) + 1
            change = Change(FixKind.WAIT_FOR, "time", {"seconds": str(seconds)})
            yield Candidate(FixKind.WAIT_FOR, (change,), {"what": what, "until": until}, form="until", who=Who.WAIT)
