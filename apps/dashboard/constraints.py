"""One constraint as a row: what it needs, what there is, the margin, and a bar where both are amounts.

Works on entries of the explanation document. Three kinds of nothing stay apart: ``have`` of null was not readable,
a name is no amount, and zero is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.dashboard import numbers
from gangdash.engine.identifiers import Unit
from gangdash.reasons.identifiers import MEANINGS

METER_UNITS = frozenset({Unit.GPU, Unit.GPU_MEMORY, Unit.MILLICORES, Unit.BYTES, Unit.PODS, Unit.NODES, Unit.COUNT})
PIPS_MAX = 24
COARSE_LEAST = 2
"""Below this need a bar says nothing that the words do not."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """``have`` is None where it could not be read; ``percent`` is None where a bar would say nothing."""

    id: str
    title: str
    scope: str
    source: str
    unit: str
    unit_word: str
    need: str
    have: str | None
    margin: str
    percent: int | None
    is_met: bool
    pips_have: int
    pips_miss: int

    @property
    def anchor(self) -> str:
        """Return the id of its row in the page: ``c-domain-gpu``."""
        return f"c-{self.id.replace('.', '-').replace('_', '-')}"

    @property
    def pips(self) -> range:
        return range(self.pips_have)

    @property
    def holes(self) -> range:
        return range(self.pips_miss)

    @property
    def words(self) -> str:
        """Say the bar for those who do not see it."""
        return f"has {self.have}, needs {self.need} {self.unit_word}".strip()


def title_of(constraint_id: str) -> str:
    """Return the registry's words for a constraint; an id of an older version speaks for itself."""
    words = MEANINGS["ConstraintId"].get(constraint_id, constraint_id)
    return words[:1].upper() + words[1:]


def shortfall(entry: Mapping[str, Any]) -> Shortfall:
    """Return one entry of ``binding`` or ``slack`` as a row."""
    unit, need, have = str(entry["unit"]), entry["need"], entry["have"]
    is_amount = isinstance(need, int | float) and isinstance(have, int | float)
    is_pips = is_amount and unit in {Unit.GPU, Unit.NODES, Unit.PODS} and _is_countable(need, have)
    return Shortfall(
        id=str(entry["id"]),
        title=title_of(str(entry["id"])),
        scope=str(entry["scope"]),
        source=str(entry["source"]),
        unit=unit,
        unit_word=numbers.UNIT_WORDS.get(unit, unit),
        need=_amount(need, unit),
        have=None if have is None else _amount(have, unit),
        margin=numbers.signed(have - need, unit) if is_amount else "",
        percent=_percent(need, have, unit) if is_amount else None,
        is_met=is_amount and (have < 0 or have >= need),
        pips_have=int(have) if is_pips else 0,
        pips_miss=int(need - have) if is_pips else 0,
    )


def _amount(value: float | str, unit: str) -> str:
    if value == numbers.UNLIMITED and unit != Unit.PRIORITY:
        return "none"
    return numbers.amount(value, unit)


def _is_countable(need: float, have: float) -> bool:
    whole = float(need).is_integer() and float(have).is_integer()
    return whole and 0 <= have < need and COARSE_LEAST <= need <= PIPS_MAX


def _percent(need: float, have: float, unit: str) -> int | None:
    """Return how much of the larger of both is covered by the smaller, as the width of the bar's solid part."""
    if unit not in METER_UNITS or max(need, have) < COARSE_LEAST or min(need, have) < 0:
        return None
    return round(100 * min(need, have) / max(need, have))
