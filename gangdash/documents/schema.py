"""The JSON Schema of both documents, generated from their types, with the meaning of every closed set beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gangdash.documents.model import Diagnosis
from gangdash.documents.whatif import WhatIf
from gangdash.engine.verdict import FixKind
from gangdash.reasons import REGISTRY
from gangdash.reasons.identifiers import MEANINGS


def json_schema() -> dict[str, Any]:
    """Return the schema of document one; document two is its definition ``ExplanationDocument``.

    Members of a closed set carry their meaning under ``x-meanings``; the kinds of fixes, which are keys of a free
    form object, are listed under ``x-fix-kinds``.
    """
    schema = msgspec.json.schema(Diagnosis)
    for name, definition in schema["$defs"].items():
        if "enum" in definition:
            definition["x-meanings"] = _meanings(name, definition["enum"])
    schema["x-fix-kinds"] = {kind.value: MEANINGS["FixKind"][kind] for kind in FixKind}
    return schema


def what_if_schema() -> dict[str, Any]:
    """Return the schema of the difference that changes make."""
    return msgspec.json.schema(WhatIf)


def _meanings(name: str, values: list[str]) -> dict[str, str]:
    meanings: Mapping[str, str] = MEANINGS[name] if name != "ReasonCode" else _codes()
    return {value: meanings[value] for value in sorted(values)}


def _codes() -> dict[str, str]:
    return {code.value: reason.meaning for code, reason in REGISTRY.items()}
