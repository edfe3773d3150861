"""What the gang page says, made from one explanation document: every field has its place, none is reworded.

Pure: the document and the store's rows in, values for the template out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import Any

from django.urls import reverse

from apps.accounts.scope import Scope
from apps.dashboard import marks, nodesets, numbers
from apps.dashboard.constraints import Shortfall, shortfall
from apps.dashboard.gang_figures import DomainRow, ReasonRow
from apps.dashboard.names import short_path
from apps.dashboard.whatif_links import try_url
from apps.diagnosis.models import ReasonTimeline
from apps.inventory.models import Domain
from apps.workloads.models import Gang, Pod
from gangdash.engine.identifiers import ConstraintId, NodeReason, Unit
from gangdash.reasons.identifiers import MEANINGS

MARKS_MAX = 60
"""More members than this are numbers only: nobody counts squares."""
EFFECTS = (
    ("starts", "Starts", "start"),
    ("moves", "Moves", "move"),
    ("delays", "Delays", "wait"),
    ("sets_back", "Sets back", "dn"),
    ("evicts", "Evicts", "evicted"),
)
DOMAIN_CONSTRAINTS = "domain."


@dataclass(frozen=True, slots=True)
class NodeRow:
    reason: str
    words: str
    count: int
    examples: str
    rest: int
    fits: bool


@dataclass(frozen=True, slots=True)
class Other:
    """Another gang that the document names; ``url`` is empty where the reader may not see it."""

    name: str
    url: str

    @property
    def short(self) -> str:
        return short_path(self.name)


@dataclass(frozen=True, slots=True)
class Holder:
    gang: Other
    gpus: float
    evictable: str


@dataclass(frozen=True, slots=True)
class Effect:
    word: str
    icon: str
    gangs: tuple[Other, ...]


@dataclass(frozen=True, slots=True)
class Fix:
    """``try_url`` asks what the change does as a what-if; empty for one that no replay can show."""

    sentence: str
    who: str
    is_verified: bool
    kind: str
    effects: tuple[Effect, ...]
    try_url: str = ""


@dataclass(frozen=True, slots=True)
class MemberGroup:
    """Pods of one subgroup as they are now."""

    name: str
    pods: int
    gpus_each: str
    placed: int
    waiting: int
    gated: int


@dataclass(frozen=True, slots=True)
class Panels:
    """Everything below the headline."""

    binding: tuple[Shortfall, ...]
    slack: tuple[Shortfall, ...]
    pips: Shortfall | None
    nodes: tuple[NodeRow, ...]
    node_total: int
    holders: tuple[Holder, ...]
    fixes: tuple[Fix, ...]
    fixes_refused: int
    match: marks.Mark
    match_means: str
    waiting: Mapping[str, Any]
    until: datetime | None
    also: Sequence[Mapping[str, Any]]


def panels(document: Mapping[str, Any], *, cluster: str, scope: Scope) -> Panels:
    """Return the panels of one document."""
    binding = tuple(shortfall(entry) for entry in document["binding"])
    match = document["scheduler"]["match"]
    return Panels(
        binding=binding,
        slack=tuple(shortfall(entry) for entry in document["slack"]),
        pips=binding[0] if binding and binding[0].pips_miss else None,
        nodes=tuple(node_row(entry) for entry in document["nodes"]),
        node_total=sum(entry["count"] for entry in document["nodes"]),
        holders=tuple(
            Holder(other(entry["gang"], cluster, scope), entry["gpus"], entry["evictable"])
            for entry in document["holders"]
        ),
        fixes=tuple(fix_of(entry, cluster, scope) for entry in document["fixes"]),
        fixes_refused=document["fixes_refused"],
        match=marks.MATCHES[match],
        match_means=_sentence(MEANINGS["Match"][match]),
        waiting=document["waiting"],
        until=numbers.parse_time(document["waiting"]["until"]),
        also=document["also"],
    )


def node_row(entry: Mapping[str, Any]) -> NodeRow:
    reason = str(entry["reason"])
    examples = list(entry["examples"])
    return NodeRow(
        reason=reason,
        words=MEANINGS["NodeReason"].get(reason, reason),
        count=entry["count"],
        examples=nodesets.fold(examples),
        rest=entry["count"] - len(examples),
        fits=reason == NodeReason.FITS,
    )


def other(name: str, cluster: str, scope: Scope) -> Other:
    """Return a named gang with its address, where the reader may open it."""
    namespace, slash, short = name.partition("/")
    gang = short.split(" ", 1)[0]
    if not slash or not gang or not scope.allows(cluster=cluster, namespace=namespace):
        return Other(name, "")
    return Other(name, reverse("dashboard:gang", args=[cluster, namespace, gang]))


def fix_of(entry: Mapping[str, Any], cluster: str, scope: Scope) -> Fix:
    effects = tuple(
        Effect(word, icon, tuple(other(name, cluster, scope) for name in entry[key])) for key, word, icon in EFFECTS
    )
    kind = str(entry["change"].get("kind", ""))
    return Fix(entry["sentence"], entry["who"], entry["verified"], kind, effects, try_url(cluster, entry["change"]))


def member_groups(pods: Iterable[Pod]) -> list[MemberGroup]:
    """Count pods by subgroup; a gang without subgroups has one unnamed group."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        found.setdefault(pod.sub_group, []).append(pod)
    return [_member_group(name, members) for name, members in sorted(found.items())]


def _member_group(name: str, pods: Sequence[Pod]) -> MemberGroup:
    each = {pod.gpus for pod in pods}
    placed = sum(1 for pod in pods if pod.node)
    gated = sum(1 for pod in pods if pod.is_gated)
    words = "different GPUs"
    if len(each) == 1:
        amount = each.pop()
        words = f"{numbers.counted(amount, 'GPU')} each" if amount else "no GPU"
    return MemberGroup(name, len(pods), words, placed, len(pods) - placed, gated)


def member_marks(members: Mapping[str, int]) -> list[str]:
    """Return one mark per member of the minimum: fits, does not, was not tried; empty for very large gangs."""
    if members["needed"] > MARKS_MAX:
        return []
    return ["f"] * members["fit"] + ["u"] * members["unfit"] + ["e"] * members["not_evaluated"]


def domain_rows(
    domains: Iterable[Domain], document: Mapping[str, Any], barred: Mapping[str, float] | None
) -> list[DomainRow]:
    """Return the bars of the domain chart; the domain that the verdict names is marked.

    ``barred`` are free GPUs by path on nodes that the gang may never use. Where that is not known, what the verdict
    found free in the best domain bounds every other one.
    """
    first = document["binding"][0] if document["binding"] else None
    best = first["have"] if first and first["id"] == ConstraintId.DOMAIN_GPU else None
    bound = float("inf") if best is None or barred is not None else float(best)
    subject = str(first["scope"]) if first else ""
    rows = []
    for domain in domains:
        free = max(0.0, min(domain.gpus_free - (barred or {}).get(domain.path, 0.0), bound))
        rows.append(
            DomainRow(
                name=domain.path if domain.level else domain.name,
                free=free,
                barred=domain.gpus_free - free,
                gpus=domain.gpus,
                is_subject=subject in {domain.name, domain.path},
            )
        )
    return rows


def needed_gpus(document: Mapping[str, Any], gang: Gang) -> float:
    """Return how many GPUs the gang needs in one place: as a GPU constraint says, else all it waits for."""
    for entry in [*document["binding"], *document["slack"]]:
        if entry["unit"] == Unit.GPU and str(entry["id"]).startswith(DOMAIN_CONSTRAINTS):
            return float(entry["need"])
    return gang.gpus_waiting or gang.gpus or 0.0


def reason_rows(timeline: Iterable[ReasonTimeline]) -> list[ReasonRow]:
    return [ReasonRow(row.verdict, row.code, row.sentence, row.opened_at, row.closed_at) for row in timeline]


def held_at(timeline: Iterable[ReasonTimeline], at: datetime | None) -> ReasonTimeline | None:
    """Return the reason that held at a pinned moment; None where the page is not pinned, or none held."""
    if at is None:
        return None
    return next(
        (row for row in timeline if row.opened_at <= at and (row.closed_at is None or row.closed_at > at)), None
    )


def command(gang: Gang, file_name: str) -> str:
    """Return the command that gives the same answer from the downloaded snapshot."""
    return f"python3 manage.py diagnose {quote(file_name)} --gang {quote(f'{gang.namespace}/{gang.name}')}"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
