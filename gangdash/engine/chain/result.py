"""What a look at the chain finds: a stage that is not passed.

Facts only: verdict, code and words are made of them above. Leaves out what the scheduler does with a whole gang.
"""

from __future__ import annotations

from dataclasses import dataclass

_OWED = frozenset({"S2", "S3", "S5", "S6", "S7", "S8", "S9", "S14", "S15"})


@dataclass(frozen=True, slots=True)
class Standing:
    """The first stage that something has not passed: who owes the next step, and the field that proves it.

    ``since`` is None where no object tells; ``overdue`` says that the step takes longer than it should.
    """

    stage: str
    subject: str
    proof: str
    field: str
    problem: str
    wanted: str = ""
    found: str = ""
    since: float | None = None
    age: float = 0.0
    overdue: bool = False
    has_answered: bool = False
    """Whether the controller has acted and says what is wrong: then it is not silent, whatever time passes."""
    controller: str = ""
    controller_state: str = ""
    """What is wrong with that controller, empty where it is up or nobody can tell."""

    @property
    def is_silent(self) -> bool:
        """Whether a controller owes the step, has had its time and has said nothing."""
        return self.overdue and not self.has_answered and self.stage in _OWED
