"""Icon, word and colour family of each closed set: a verdict, who acts, how sure, whether the scheduler agrees.

Words of causes are not here: sentences and titles come from ``gangdash.reasons``. A family is a colour token of the
stylesheet; the icon is a symbol of ``static/icons.svg``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gangdash.engine.verdict import Certainty, Match, ReasonCode, Verdict, Who
from gangdash.reasons import REGISTRY, Reason
from gangdash.reasons.identifiers import MEANINGS
from gangdash.reasons.labels import VERDICT_LABELS


@dataclass(frozen=True, slots=True)
class Mark:
    """``family`` colours it, ``icon`` draws it, ``word`` says it."""

    family: str
    icon: str
    word: str


_ICONS: Mapping[str, str] = {
    Verdict.NO_FIT: "nofit",
    Verdict.NODE: "node",
    Verdict.POLICY: "policy",
    Verdict.CONFIG: "config",
    Verdict.GATED: "gated",
    Verdict.STUCK: "stuck",
    Verdict.PARTIAL: "partial",
    Verdict.EVICTED: "evicted",
    Verdict.VIOLATED: "violated",
    Verdict.NO_VERDICT: "none",
    Verdict.STARTING: "starting",
    Verdict.WILL_START: "start",
    Verdict.HEALTHY: "ok",
}
VERDICTS: Mapping[str, Mark] = {
    verdict: Mark(label.family, _ICONS[verdict], label.word) for verdict, label in VERDICT_LABELS.items()
}
"""In the order of charts: what stops a gang for longest first, what clears itself last."""

NOT_DIAGNOSED = Mark("none", "clock", "Not diagnosed yet")

WHO: Mapping[str, Mark] = {
    Who.CLUSTER_ADMIN: Mark("", "cluster_admin", "Cluster admin"),
    Who.QUEUE_ADMIN: Mark("", "queue_admin", "Queue admin"),
    Who.OWNER: Mark("", "owner", "Owner"),
    Who.PLATFORM: Mark("", "platform", "Platform"),
    Who.WAIT: Mark("", "wait", "Wait"),
    Who.NOBODY: Mark("", "nobody", "Nobody"),
}

_CODES = frozenset(ReasonCode)

STALE = "stale"
"""Laid over a verdict by the pages when the data is older than three polls; never by the engine."""
STALE_MEANS = "three polls were missed; new verdicts are withheld"

CERTAINTY: Mapping[str, Mark] = {
    Certainty.PROVED: Mark("", "ok", "Proved"),
    Certainty.DERIVED: Mark("un", "report", "Derived"),
    Certainty.UNPROVEN: Mark("un", "wait", "Unproven"),
    Certainty.NO_VERDICT: Mark("un", "none", "No verdict"),
    STALE: Mark("late", "clock", "Stale"),
}

MATCHES: Mapping[str, Mark] = {
    Match.AGREE: Mark("", "check", "Agrees"),
    Match.LESS_SPECIFIC: Mark("", "less", "Less specific"),
    Match.DISAGREE: Mark("bad", "x", "Disagrees"),
    Match.SILENT: Mark("", "dash", "Silent"),
    Match.STALE: Mark("", "clock", "Stale condition"),
}


def certainty_means(certainty: str) -> str:
    """Say what a degree of certainty rests on, in the registry's words."""
    return STALE_MEANS if certainty == STALE else MEANINGS["Certainty"][certainty]


def verdict_mark(verdict: str) -> Mark:
    """Return the mark of a verdict; an empty one means that no analysis has seen the gang yet."""
    return VERDICTS[verdict] if verdict else NOT_DIAGNOSED


def who_mark(who: str) -> Mark:
    return WHO[who or Who.NOBODY]


def reason_of(code: str) -> Reason | None:
    """Return the registry's entry; None for no code, and for one that this version no longer knows."""
    return REGISTRY[ReasonCode(code)] if code in _CODES else None
