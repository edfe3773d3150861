"""The types of document one (cycle) and document two (explanation), in the field order in which they are printed.

Times are RFC 3339 in UTC, cpu in millicores, memory in bytes, GPUs in GPUs. ``None`` stands for "does not apply" or
"could not be told"; an empty list means that there are none.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from gangdash.engine.identifiers import ConstraintId, NodeReason, Unit
from gangdash.engine.model.cycle import GangOutcome, PodOutcome
from gangdash.engine.verdict import Certainty, Match, ReasonCode, Verdict, Who

Number = int | float
ChangeValue = str | int | float | bool | list[str] | None
Helps = Literal["yes", "no", "unknown"]


class Amounts(msgspec.Struct, frozen=True):
    cpu: Number
    memory: Number
    gpu: Number


class CyclePod(msgspec.Struct, frozen=True):
    name: str
    outcome: PodOutcome
    node: str | None
    action: str | None


class CycleError(msgspec.Struct, frozen=True):
    reason: str
    message: str


class CycleGang(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    shard: str
    queue: str
    ready: bool
    outcome: GangOutcome
    action: str | None
    pods: list[CyclePod]
    errors: list[CycleError]
    one_of_several: bool = False


class CycleQueue(msgspec.Struct, frozen=True):
    name: str
    shard: str
    fair_share: Amounts | None
    allocated_before: Amounts
    allocated_after: Amounts


class Cycle(msgspec.Struct, frozen=True):
    gangs: list[CycleGang]
    queues: list[CycleQueue]


class NotReadEntry(msgspec.Struct, frozen=True):
    kind: str
    reason: str
    matters_to: int


class NotModelledEntry(msgspec.Struct, frozen=True):
    what: str
    why: str
    matters_to: int


class OddityEntry(msgspec.Struct, frozen=True):
    object: str
    field: str
    problem: str


class GangEntry(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str
    kind: str
    owner: str | None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class BindingEntry(msgspec.Struct, frozen=True):
    """One constraint with what it needs and what there is; ``have`` is null when it could not be read."""

    id: ConstraintId
    scope: str
    need: Number | str
    have: Number | str | None
    unit: Unit
    source: str


class MembersEntry(msgspec.Struct, frozen=True):
    needed: int
    fit: int
    unfit: int
    not_evaluated: int


class NodeEntry(msgspec.Struct, frozen=True):
    reason: NodeReason
    count: int
    examples: list[str]


class HolderEntry(msgspec.Struct, frozen=True):
    gang: str
    gpus: Number
    evictable: str


class FixEntry(msgspec.Struct, frozen=True):
    """A change that starts the gang; ``change`` has its ``kind`` (see the closed set) and that kind's own keys."""

    change: dict[str, ChangeValue]
    sentence: str
    verified: bool
    starts: list[str]
    moves: list[str]
    delays: list[str]
    sets_back: list[str]
    evicts: list[str]
    who: Who
    cost: int


class WaitingEntry(msgspec.Struct, frozen=True):
    helps: Helps
    until: str | None
    on: list[str]


class OtherCause(msgspec.Struct, frozen=True):
    verdict: Verdict
    code: ReasonCode
    sentence: str


class SchedulerEntry(msgspec.Struct, frozen=True):
    """The cluster's own words on this gang beside ours."""

    text: str | None
    at: str | None
    match: Match


class ExplanationDocument(msgspec.Struct, frozen=True):
    """Document two: why this gang waits and what would start it.

    ``fixes_refused`` counts changes that were re-run and did not start it, ``fixes_untried`` those that were not re-run
    because the budget of re-runs had ended.
    """

    gang: GangEntry
    verdict: Verdict
    code: ReasonCode
    who: Who
    certainty: Certainty
    sentence: str
    shard: str
    stage: str | None
    waiting_since: str | None
    binding: list[BindingEntry]
    slack: list[BindingEntry]
    members: MembersEntry
    nodes: list[NodeEntry]
    holders: list[HolderEntry]
    fixes: list[FixEntry]
    fixes_refused: int
    waiting: WaitingEntry
    also: list[OtherCause]
    scheduler: SchedulerEntry
    as_of: str
    digest: str
    engine: str
    not_read: list[str]
    not_modelled: list[str]
    fixes_untried: int = 0


class Diagnosis(msgspec.Struct, frozen=True):
    """Document one with the explanations inside: what one file or one poll of a cluster tells."""

    snapshot: str
    digest: str
    as_of: str
    engine: str
    cycle: Cycle
    explanations: list[ExplanationDocument]
    not_read: list[NotReadEntry]
    not_modelled: list[NotModelledEntry]
    oddities: list[OddityEntry]

    def explanation(self, gang: str) -> ExplanationDocument | None:
        """Return the explanation of ``namespace/name``; a PodGroup comes before other kinds of that name."""
        same = [entry for entry in self.explanations if entry.gang.key == gang]
        return min(same, key=lambda entry: entry.gang.kind != "PodGroup", default=None)
