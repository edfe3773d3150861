"""What could be done for a gang: changes that a replay can see, with the words' facts, who does it and what it costs.

A candidate is a guess from facts. It becomes a fix when the cycle, re-run with the changes, starts the gang.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gangdash.engine.changes import Change
from gangdash.engine.explain.caps import Violation, violations
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.room import NOTHING, Lifts
from gangdash.engine.fixes.spare import SpareRoom
from gangdash.engine.rules.steps import next_tasks, step_amounts
from gangdash.engine.session import Amounts, JobState, Session, TaskState
from gangdash.engine.verdict import Explanation, FactValue, Finding, FixKind, ReasonCode, Who

COSTS: Mapping[FixKind, int] = {
    FixKind.WAIT_FOR: 1,
    FixKind.UNCORDON: 1,
    FixKind.FIX_REFERENCE: 1,
    FixKind.SET_LABEL: 1,
    FixKind.CREATE_OBJECT: 2,
    FixKind.ADD_TOLERATION: 2,
    FixKind.CHANGE_SELECTOR: 2,
    FixKind.RELAX_TOPOLOGY: 2,
    FixKind.RAISE_LIMIT: 2,
    FixKind.RAISE_QUOTA: 2,
    FixKind.REMOVE_TAINT: 2,
    FixKind.RAISE_PRIORITY: 3,
    FixKind.MOVE_QUEUE: 3,
    FixKind.MAKE_PREEMPTIBLE: 3,
    FixKind.REPAIR_DEVICE: 3,
    FixKind.SHRINK_GANG: 4,
    FixKind.SHRINK_POD: 4,
    FixKind.EVICT_GANG: 5,
    FixKind.FREE_NODE: 5,
    FixKind.ADD_NODES: 7,
}
"""How dear a kind is: waiting and a word in a manifest are cheap, other people's work is dear, hardware dearest."""

_CAP_CODES = frozenset({ReasonCode.QUEUE_LIMIT, ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA})


@dataclass(frozen=True, slots=True)
class Candidate:
    """``changes`` of one kind, the first of which is the one that the fix names; ``beside`` are made with it."""

    kind: FixKind
    changes: tuple[Change, ...]
    facts: Mapping[str, FactValue] = field(default_factory=dict)
    form: str = ""
    who: Who = Who.OWNER
    beside: tuple[Candidate, ...] = ()
    lifts: Lifts = NOTHING
    """What the changes take away in terms of the room for the step."""
    weight: int = 0
    """What the size of the change adds to its cost."""
    tasks: tuple[TaskState, ...] = ()
    """The pods of the step as the changes make them; empty where they stay as they are."""

    @property
    def all_changes(self) -> tuple[Change, ...]:
        return (*self.changes, *(change for other in self.beside for change in other.all_changes))

    @property
    def cost(self) -> int:
        """Each further object costs one more, and so does each change of another kind on top of its own cost."""
        own = COSTS[self.kind] + self.weight + len(self.changes) - 1
        return own + sum(other.cost + 1 for other in self.beside)


class Case:
    """One waiting gang with everything that its candidates are guessed from."""

    def __init__(self, gang: Gang, job: JobState, room: SpareRoom | None, explanation: Explanation) -> None:
        self.gang = gang
        self.job = job
        self.room = room
        self.explanation = explanation

    def after(self, candidate: Candidate) -> Case:
        """Return the case as it is once a candidate's changes are made, as far as the room goes."""
        room = self.room
        if room is not None:
            room = SpareRoom.of(room, candidate.tasks or None, room.assumed | candidate.lifts)
        return Case(self.gang, self.job, room, self.explanation)

    @property
    def key(self) -> str:
        return self.gang.podgroup.key

    @property
    def session(self) -> Session:
        assert self.gang.shard is not None
        return self.gang.context.session(self.gang.shard)

    @property
    def findings(self) -> Sequence[Finding]:
        return (self.explanation.finding, *self.explanation.also)

    @property
    def is_capped_only(self) -> bool:
        """Whether limits and quotas are all that is known to be in the way."""
        return all(finding.code in _CAP_CODES for finding in self.findings)

    @cached_property
    def step(self) -> list[TaskState]:
        """The pods that the scheduler would place next."""
        return next_tasks(self.session, self.job, real=True)

    @cached_property
    def asked(self) -> Amounts:
        """What the next step asks of its queue: millicores, bytes, GPUs."""
        return step_amounts(self.session, self.job, real=True)

    @cached_property
    def broken(self) -> list[Violation]:
        """Limits and quotas that the next step would pass."""
        return violations(self.gang)
