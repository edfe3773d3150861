"""The two documents that every surface shows: the cycle and the explanation.

Types and their JSON form only; what fills them is ``gangdash.replay``. Field names, order and meanings are the
contract; the JSON Schema in ``schema`` is generated from these types.
"""

from __future__ import annotations

from gangdash.documents.model import (
    Amounts,
    BindingEntry,
    Cycle,
    CycleError,
    CycleGang,
    CyclePod,
    CycleQueue,
    Diagnosis,
    ExplanationDocument,
    FixEntry,
    GangEntry,
    HolderEntry,
    MembersEntry,
    NodeEntry,
    NotModelledEntry,
    NotReadEntry,
    OddityEntry,
    OtherCause,
    SchedulerEntry,
    WaitingEntry,
)

__all__ = [
    "Amounts",
    "BindingEntry",
    "Cycle",
    "CycleError",
    "CycleGang",
    "CyclePod",
    "CycleQueue",
    "Diagnosis",
    "ExplanationDocument",
    "FixEntry",
    "GangEntry",
    "HolderEntry",
    "MembersEntry",
    "NodeEntry",
    "NotModelledEntry",
    "NotReadEntry",
    "OddityEntry",
    "OtherCause",
    "SchedulerEntry",
    "WaitingEntry",
]
