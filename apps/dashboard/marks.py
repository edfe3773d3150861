"""Icon, word and colour family of each closed set: a verdict, who acts, how sure, whether the scheduler agrees.

Words of causes are not here: sentences and titles come from ``gangdash.reasons``. A family is a colour token of the
stylesheet; the icon is a symbol of ``static/icons.svg``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gangdash.engine.verdict import Certainty, Match, Verdict, Who


@dataclass(frozen=True, slots=True)
class Mark:
    """``family`` colours it, ``icon`` draws it, ``word`` says it."""

    family: str
    icon: str
    word: str


VERDICTS: Mapping[str, Mark] = {
    Verdict.NO_FIT: Mark("nofit", "nofit", "No fit"),
    Verdict.NODE: Mark("node", "node", "Node state"),
    Verdict.POLICY: Mark("policy", "policy", "Policy"),
    Verdict.CONFIG: Mark("config", "config", "Config"),
    Verdict.GATED: Mark("gated", "gated", "Gated"),
    Verdict.STUCK: Mark("bad", "stuck", "Stuck"),
    Verdict.PARTIAL: Mark("bad", "partial", "Partial"),
    Verdict.EVICTED: Mark("bad", "evicted", "Evicted"),
    Verdict.VIOLATED: Mark("bad", "violated", "Violated"),
    Verdict.NO_VERDICT: Mark("none", "none", "No verdict"),
    Verdict.STARTING: Mark("start", "starting", "Starting"),
    Verdict.WILL_START: Mark("start", "start", "Will start"),
    Verdict.HEALTHY: Mark("ok", "ok", "Healthy"),
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

STALE = "stale"
"""Laid over a verdict by the pages when the data is older than three polls; never by the engine."""

CERTAINTY: Mapping[str, Mark] = {
    Certainty.PROVED: Mark("", "ok", "Proved"),
    Certainty.DERIVED: Mark("un", "report", "Derived"),
    Certainty.UNPROVEN: Mark("un", "wait", "Unproven"),
    Certainty.NO_VERDICT: Mark("un", "none", "No verdict"),
    STALE: Mark("late", "clock", "Stale"),
}

CERTAINTY_MEANS: Mapping[str, str] = {
    Certainty.PROVED: "replay and, for never, an exact search agree",
    Certainty.DERIVED: "from the objects' own state, no replay needed",
    Certainty.UNPROVEN: "the search ended before it was sure",
    Certainty.NO_VERDICT: "something it rests on could not be read",
    STALE: "three polls missed; new verdicts are withheld",
}

MATCHES: Mapping[str, Mark] = {
    Match.AGREE: Mark("", "check", "Agrees"),
    Match.LESS_SPECIFIC: Mark("", "less", "Less specific"),
    Match.DISAGREE: Mark("bad", "x", "Disagrees"),
    Match.SILENT: Mark("", "dash", "Silent"),
    Match.STALE: Mark("", "clock", "Stale condition"),
}

MATCH_MEANS: Mapping[str, str] = {
    Match.AGREE: "The scheduler names the same cause.",
    Match.LESS_SPECIFIC: "Same cause; the scheduler says it in less detail.",
    Match.DISAGREE: "The scheduler names another cause. Compare both before acting.",
    Match.SILENT: "The scheduler has written nothing about this gang.",
    Match.STALE: "The condition is older than the change that made it untrue.",
}


def verdict_mark(verdict: str) -> Mark:
    """Return the mark of a verdict; an empty one means that no analysis has seen the gang yet."""
    return VERDICTS[verdict] if verdict else NOT_DIAGNOSED


def who_mark(who: str) -> Mark:
    return WHO[who or Who.NOBODY]
