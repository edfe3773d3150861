"""From the top object of a workload to its containers: what belongs together, and which step has not been taken.

``joins`` ties objects together, ``components`` reads the top object of each version, ``standing`` says at which of the
stages S0 to S31 something stands and which controller owes the next step, ``ladder`` counts every layer. Relies on the
snapshot alone; what the scheduler does with a whole gang is answered by the replay, not here.
"""

from __future__ import annotations

from gangdash.engine.chain.joins import Chain, Link
from gangdash.engine.chain.remarks import remarks_of
from gangdash.engine.chain.result import Standing
from gangdash.engine.chain.standing import gang_standing_of, standing_of

__all__ = ["Chain", "Link", "Standing", "gang_standing_of", "remarks_of", "standing_of"]
