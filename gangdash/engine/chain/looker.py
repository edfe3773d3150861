"""What every look at the chain has: the snapshot's joins, how long a step may take, and one way to state a finding.

The controller that owes a step, and which part of the platform runs it, follow from the stage.
"""

from __future__ import annotations

from collections.abc import Mapping

from gangdash.engine.chain.joins import Chain
from gangdash.engine.chain.platform import DYNAMO_OPERATOR, GROVE_OPERATOR, KAI_GROUPER, KAI_SCHEDULER, Part
from gangdash.engine.chain.result import Standing
from gangdash.engine.chain.stages import STAGES
from gangdash.engine.model.observed import ObservedObject

PARTS: Mapping[str, Part] = {
    **dict.fromkeys(("S2", "S3"), DYNAMO_OPERATOR),
    **dict.fromkeys(("S5", "S6", "S7", "S8", "S9", "S12", "S13", "S14"), GROVE_OPERATOR),
    **dict.fromkeys(("S24", "S25", "S29"), GROVE_OPERATOR),
    "S10": KAI_SCHEDULER,
    "S15": KAI_GROUPER,
}
"""Who has to be up for a stage to be passed; a stage that is nobody's of the platform is left out."""


class Looker:
    """Looks at one object on behalf of ``subject``."""

    def __init__(self, chain: Chain, subject: ObservedObject) -> None:
        self._chain, self._subject = chain, subject
        self._deadlines = chain.snapshot.deadlines

    def _at(
        self,
        stage: str,
        proof: str,
        field: str,
        problem: str,
        *,
        since: float | None = None,
        deadline: float | None = None,
        wanted: str = "",
        found: str = "",
        has_answered: bool = False,
    ) -> Standing:
        """State a finding; without a deadline the step may take any time."""
        age = max(self._chain.as_of - since, 0.0) if since is not None else 0.0
        part = PARTS.get(stage)
        return Standing(
            stage=stage,
            subject=self._subject.ref,
            proof=proof,
            field=field,
            problem=problem,
            wanted=wanted,
            found=found,
            since=since,
            age=age,
            overdue=deadline is not None and age > deadline,
            has_answered=has_answered,
            controller=STAGES[stage].controller,
            controller_state=self._chain.platform.state(part) if part else "",
        )
