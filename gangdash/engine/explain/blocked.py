"""A gang with room in sight that some queue rule keeps waiting, as all findings about rules need it."""

from __future__ import annotations

from typing import NamedTuple

from gangdash.engine.explain.caps import Violation
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.queues import RESOURCES, Resource
from gangdash.engine.explain.room import Room
from gangdash.engine.explain.trial import Trials
from gangdash.engine.identifiers import Unit
from gangdash.engine.rules.steps import step_amounts
from gangdash.engine.verdict import Amount


class Blocked(NamedTuple):
    """``broken`` are the limits and quotas that the next step would pass."""

    gang: Gang
    room: Room
    trials: Trials
    broken: list[Violation]

    @property
    def need(self) -> Amount:
        """What the next step asks of its queue: GPUs, or CPU for a step without GPUs."""
        asked = step_amounts(self.room.session, self.room.job, real=True)
        return Amount(asked[2], Unit.GPU) if asked[2] else Amount(asked[0], Unit.MILLICORES)

    @property
    def resource(self) -> Resource:
        return next(item for item in RESOURCES if item.unit is self.need.unit)
