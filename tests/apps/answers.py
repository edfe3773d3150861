"""Documents as an engine would hand them over, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gangdash import __version__
from gangdash.documents import (
    BindingEntry,
    Cycle,
    CycleQueue,
    Diagnosis,
    ExplanationDocument,
    GangEntry,
    MembersEntry,
    SchedulerEntry,
    WaitingEntry,
)
from gangdash.engine.identifiers import ConstraintId, Unit
from gangdash.engine.verdict import VERDICT_OF, Certainty, Match, ReasonCode, Who


def document(
    name: str, code: str = "GPUS_BUSY", *, namespace: str = "team-a", kind: str = "PodGroup", **more: Any
) -> ExplanationDocument:
    """Return the explanation of a gang whose uid is made of its names, as in ``facts`` and ``raw``."""
    binding = [BindingEntry(next(iter(ConstraintId)), "all", 8, 3, next(iter(Unit)), more.pop("source", "Node/all"))]
    fields: dict[str, Any] = {
        "gang": GangEntry(namespace, name, more.pop("uid", f"gang-{namespace}-{name}"), kind, None),
        "verdict": VERDICT_OF[ReasonCode(code)],
        "code": ReasonCode(code),
        "who": Who.CLUSTER_ADMIN,
        "certainty": Certainty.PROVED,
        "sentence": f"{name} is {code}.",
        "shard": "default",
        "stage": "S18",
        "waiting_since": "2026-11-30T08:10:00Z",
        "binding": binding,
        "slack": [],
        "members": MembersEntry(1, 0, 1, 0),
        "nodes": [],
        "holders": [],
        "fixes": [],
        "fixes_refused": 0,
        "waiting": WaitingEntry("unknown", None, []),
        "also": [],
        "scheduler": SchedulerEntry(None, None, Match.SILENT),
        "as_of": "2026-11-30T09:00:00Z",
        "digest": "sha256:" + "0" * 64,
        "engine": __version__,
        "not_read": [],
        "not_modelled": [],
    }
    return ExplanationDocument(**fields | more)


def diagnosis(*documents: ExplanationDocument, queues: Sequence[CycleQueue] = ()) -> Diagnosis:
    """Return document one around these explanations."""
    return Diagnosis(
        snapshot="east",
        digest="sha256:" + "0" * 64,
        as_of="2026-11-30T09:00:00Z",
        engine=__version__,
        cycle=Cycle(gangs=[], queues=list(queues)),
        explanations=list(documents),
        not_read=[],
        not_modelled=[],
        oddities=[],
    )
