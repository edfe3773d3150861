"""The form and the answer of the what-if page: rows of changes in, the difference of two cycles out.

The address holds the changes in the form of the command line, so that it is a link to the same question.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from shlex import quote
from typing import Any

from django.http import QueryDict

from apps.accounts.scope import Scope
from apps.dashboard import numbers
from apps.dashboard.gang_page import EFFECTS, Effect, other
from gangdash.engine.changes import (
    Change,
    change_from_text,
)
from gangdash.engine.verdict import FixKind

BLANK_ROWS = 2
MINUS = "\u2212"
TOTALS = (("gpus_waiting", "GPUs waiting"), ("gangs_waiting", "Gangs waiting"), ("gpus_placed", "GPUs placed"))


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of change as the form offers it: what it touches and which values it takes."""

    kind: FixKind
    title: str
    object: str
    values: str = ""


GANG = "namespace/gang"
KINDS = (
    Kind(FixKind.RAISE_LIMIT, "Set a queue's limit", "queue", "gpu=64"),
    Kind(FixKind.RAISE_QUOTA, "Set a queue's quota", "queue", "gpu=64"),
    Kind(FixKind.ADD_NODES, "Add nodes like one", "node to copy", "count=4"),
    Kind(FixKind.UNCORDON, "Uncordon a node", "node"),
    Kind(FixKind.CORDON, "Cordon a node", "node"),
    Kind(FixKind.REPAIR_DEVICE, "Repair a node and its devices", "node"),
    Kind(FixKind.REMOVE_TAINT, "Remove a taint", "node", "key=maintenance"),
    Kind(FixKind.FREE_NODE, "Free a node", "node"),
    Kind(FixKind.EVICT_GANG, "Stop a gang", GANG, "ends=true"),
    Kind(FixKind.RELAX_TOPOLOGY, "Change a topology constraint", GANG, "required=none"),
    Kind(FixKind.SHRINK_GANG, "Lower a minimum", GANG, "pods=4"),
    Kind(FixKind.SHRINK_POD, "Shrink the pods", GANG, "gpu=4"),
    Kind(FixKind.RAISE_PRIORITY, "Change a priority", GANG, "value=100"),
    Kind(FixKind.MAKE_PREEMPTIBLE, "Make preemptible", GANG),
    Kind(FixKind.MOVE_QUEUE, "Move to another queue", GANG, "queue=team-a"),
    Kind(FixKind.ADD_TOLERATION, "Tolerate a taint", GANG, "key=maintenance"),
    Kind(FixKind.CHANGE_SELECTOR, "Change a selector", GANG, "remove=disktype"),
    Kind(FixKind.FIX_REFERENCE, "Correct a reference", GANG, "queue=team-a"),
    Kind(FixKind.SET_LABEL, "Set a label", "Node/name", "rack=r1"),
    Kind(FixKind.CREATE_OBJECT, "Create a queue, class or topology", "Queue/name", "parent=dept,gpu=8"),
    Kind(FixKind.WAIT_FOR, "Let time pass", "", "seconds=600"),
    Kind(FixKind.SUBMIT, "Submit a gang", "namespace/new-name", "queue=team-a,pods=4,gpu=8"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the form as it was filled in."""

    kind: str = ""
    object: str = ""
    values: str = ""


@dataclass(frozen=True, slots=True)
class TotalRow:
    title: str
    before: float
    after: float

    @property
    def difference(self) -> str:
        change = self.after - self.before
        sign = "+" if change > 0 else MINUS if change < 0 else ""
        return f"{sign}{numbers.number(abs(change))}"


@dataclass(frozen=True, slots=True)
class Answer:
    """``rest`` names what the answer leaves open."""

    sentence: str
    effects: tuple[Effect, ...]
    totals: tuple[TotalRow, ...]
    digest: str
    as_of: str
    rest: tuple[str, ...]


def texts_of_rows(query: QueryDict) -> list[str] | None:
    """Return the changes that a filled-in form sends; None where the address has them already."""
    if "kind" not in query:
        return None
    rows = zip_longest(query.getlist("kind"), query.getlist("object"), query.getlist("values"), fillvalue="")
    return [_text(Row(kind, name.strip(), values.strip())) for kind, name, values in rows if kind]


def _text(row: Row) -> str:
    return f"{row.kind}:{row.object}:{row.values}" if row.values else f"{row.kind}:{row.object}"


def row_of(text: str) -> Row:
    kind, _, rest = text.partition(":")
    name, _, values = rest.partition(":")
    return Row(kind, name, values)


def rows_of(texts: Iterable[str]) -> list[Row]:
    """Return the rows to show: what was asked, and some to add to it."""
    return [*map(row_of, texts), *[Row()] * BLANK_ROWS]


def read(texts: Sequence[str]) -> list[Change]:
    """Read the changes of an address; raises ``ChangeError`` for one that is none."""
    return [change_from_text(text) for text in texts]


def command(file_name: str, texts: Iterable[str]) -> str:
    """Return the command that gives the same answer from the downloaded snapshot."""
    return " ".join(["python3 manage.py whatif", quote(file_name), *(f"--change {quote(text)}" for text in texts)])


def answer_of(document: Mapping[str, Any], *, cluster: str, scope: Scope) -> Answer:
    """Lay the difference out; every list is there, empty ones too."""
    return Answer(
        sentence=document["sentence"],
        effects=tuple(
            Effect(word, icon, tuple(other(name, cluster, scope) for name in document[key]))
            for key, word, icon in EFFECTS
        ),
        totals=tuple(
            TotalRow(title, float(document["before"][key]), float(document["after"][key])) for key, title in TOTALS
        ),
        digest=document["digest"],
        as_of=document["as_of"],
        rest=(
            *(f"The scheduler picks among equals for {name}." for name in document["one_of_several"]),
            *(f"Not replayed: {part}." for part in document["not_modelled"]),
        ),
    )
