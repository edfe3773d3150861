"""What a rule is and what it finds.

A rule is a pure function of facts and parameters. It says since when its condition holds as far as the rows tell, so
that waiting for a while is measured on what happened and not on how often somebody looked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from apps.alerts.rules.facts import Facts, Stretch
from apps.delivery.messages import Severity
from gangdash.reasons.wording import counted


class Source(StrEnum):
    """What a rule needs of the past; each is kept for its own time."""

    REASONS = "reasons"
    ATTEMPTS = "attempts"
    CAPACITY = "capacity"
    STATES = "states"
    STANCES = "stances"
    QUEUES = "queues"
    READINGS = "readings"


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause that a rule found; gangs are the keys of those it holds up, longest waiting first.

    ``since`` is when the condition began. A severity is given where it is not the rule's own.
    """

    signature: str
    since: datetime
    title: str
    text: str
    verdict: str = ""
    code: str = ""
    subject: str = ""
    who: str = ""
    queue: str = ""
    gangs: tuple[int, ...] = ()
    gpus: float = 0.0
    severity: Severity | None = None


Values = Mapping[str, float]
Find = Callable[[Facts, Values], list[Finding]]


@dataclass(frozen=True, slots=True)
class Param:
    """A number that an admin may set, between bounds. ``unit`` is written beside it."""

    name: str
    title: str
    default: float
    least: float
    most: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the list with the settings it starts with; times are in seconds.

    A finding fires once it has lasted ``for_seconds`` and goes on for ``keep_seconds`` after it was last seen.
    """

    key: str
    number: int
    title: str
    meaning: str
    severity: Severity
    for_seconds: int
    keep_seconds: int
    needs: tuple[Source, ...]
    find: Find
    helps: tuple[Source, ...] = ()
    """Without these it finds less, without one of ``needs`` nothing."""
    params: tuple[Param, ...] = ()
    note: str = ""
    """What a look back cannot know."""
    ending: str = "It is not found any more"
    """What it means that a finding without gangs ended."""

    def defaults(self) -> dict[str, float]:
        return {param.name: param.default for param in self.params}


SIGNATURE_LENGTH = 700
"""Room for a verdict, a code and the longest object; only paths of domains can be longer."""


def bounded(signature: str) -> str:
    """Return a signature as it is stored: a very long one ends in its hash, so that it stays as telling as it was."""
    if len(signature) <= SIGNATURE_LENGTH:
        return signature
    return f"{signature[: SIGNATURE_LENGTH - 65]}-{hashlib.sha256(signature.encode()).hexdigest()}"


def by_cause(rows: Sequence[Stretch]) -> dict[str, list[Stretch]]:
    """Return reasons by their cause."""
    found: dict[str, list[Stretch]] = {}
    for row in rows:
        found.setdefault(row.cause, []).append(row)
    return found


def cause_finding(
    facts: Facts, rows: Sequence[Stretch], *, text: str, since: datetime | None = None, severity: Severity | None = None
) -> Finding:
    """Return the finding of gangs that share one cause."""
    ordered = facts.oldest_first(rows)
    first = ordered[0]
    gpus = sum(row.gpus for row in ordered)
    return Finding(
        signature=first.cause,
        since=since or min(row.opened for row in ordered),
        title=waiting_title(ordered, gpus),
        text=text,
        verdict=first.verdict,
        code=first.code,
        subject=first.subject,
        who=first.who,
        queue=facts.gangs[first.gang].queue,
        gangs=tuple(row.gang for row in ordered),
        gpus=gpus,
        severity=severity,
    )


def waiting_title(rows: Sequence[Stretch], gpus: float) -> str:
    """Say how many gangs wait, for how many GPUs."""
    does = "waits" if len(rows) == 1 else "wait"
    if not any(row.waits for row in rows):
        return f"{counted(len(rows), 'gang', 'gangs')} with something to tell"
    return f"{counted(len(rows), 'gang', 'gangs')} {does}" + (f" for {counted(gpus, 'GPU', 'GPUs')}" if gpus else "")
