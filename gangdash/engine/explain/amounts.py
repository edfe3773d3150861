"""Amounts that objects state as text, such as ``15``, ``500m`` or ``30Gi``, in the units of the documents."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gangdash.engine.identifiers import Unit
from gangdash.engine.model.observed import ObservedObject
from gangdash.engine.model.resources import GPU_NAMES
from gangdash.engine.verdict import Amount

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")
_FACTORS = {
    "m": 0.001, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
    "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3, "Ti": 1024**4, "Pi": 1024**5,
}  # fmt: skip
_UNITS = {"cpu": Unit.MILLICORES, "memory": Unit.BYTES, "storage": Unit.BYTES, "pods": Unit.PODS}


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """One resource of a ResourceQuota."""

    resource: str
    hard: Amount
    used: Amount


def amount(resource: str, quantity: object) -> Amount | None:
    """Return a quantity of a resource in the documents' unit; None when the text is no plain quantity."""
    found = _QUANTITY.fullmatch(str(quantity).strip())
    if found is None:
        return None
    name = resource.removeprefix("requests.").removeprefix("limits.")
    value = float(found[1]) * _FACTORS.get(found[2] or "", 1)
    if name in GPU_NAMES:
        return Amount(value, Unit.GPU)
    unit = _UNITS.get(name, Unit.COUNT)
    return Amount(value * 1000 if unit is Unit.MILLICORES else value, unit, "" if name in _UNITS else name)


def quota_lines(quota: ObservedObject) -> list[QuotaLine]:
    """Return what a ResourceQuota allows and has used, by resource name."""
    hard = quota.facts.get("status.hard") or quota.facts.get("spec.hard") or {}
    used = quota.facts.get("status.used") or {}
    lines = []
    for resource in sorted(hard):
        allowed, taken = amount(resource, hard[resource]), amount(resource, used.get(resource, "0"))
        if allowed is not None and taken is not None:
            lines.append(QuotaLine(resource, allowed, taken))
    return lines
