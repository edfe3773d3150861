"""The answer to an uploaded file, as its page shows it: what waits, by cause, with the engine's sentences."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.dashboard import marks, numbers
from apps.dashboard.constraints import Shortfall, shortfall
from gangdash.engine.verdict import Verdict

PLACED = frozenset({Verdict.HEALTHY, Verdict.VIOLATED})


@dataclass(frozen=True, slots=True)
class Told:
    """One gang of the file that waits or has something to tell."""

    document: Mapping[str, Any]
    short: Shortfall | None


@dataclass(frozen=True, slots=True)
class Answer:
    """``told`` is in the order of verdicts, then of names."""

    title: str
    document: Mapping[str, Any]
    told: tuple[Told, ...]


def answer_of(text: str) -> Answer:
    """Read document one as it was stored."""
    document: dict[str, Any] = json.loads(text)
    order = list(marks.VERDICTS)
    entries = sorted(
        document["explanations"],
        key=lambda entry: (order.index(entry["verdict"]), entry["gang"]["namespace"], entry["gang"]["name"]),
    )
    waiting = sum(entry["verdict"] not in PLACED for entry in entries)
    gangs = numbers.counted(len(document["cycle"]["gangs"]), "gang")
    title = f"{numbers.number(waiting)} of {gangs} {'waits' if waiting == 1 else 'wait'} in {document['snapshot']}"
    told = tuple(Told(entry, shortfall(entry["binding"][0]) if entry["binding"] else None) for entry in entries)
    return Answer(title, document, told)
