"""How every face names a verdict, and which family of colours it has; the tokens of a family are the face's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gangdash.engine.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Label:
    word: str
    family: str


VERDICT_LABELS: Mapping[str, Label] = {
    Verdict.NO_FIT: Label("No fit", "nofit"),
    Verdict.NODE: Label("Node state", "node"),
    Verdict.POLICY: Label("Policy", "policy"),
    Verdict.CONFIG: Label("Config", "config"),
    Verdict.GATED: Label("Gated", "gated"),
    Verdict.STUCK: Label("Stuck", "bad"),
    Verdict.PARTIAL: Label("Partial", "bad"),
    Verdict.EVICTED: Label("Evicted", "bad"),
    Verdict.VIOLATED: Label("Violated", "bad"),
    Verdict.NO_VERDICT: Label("No verdict", "none"),
    Verdict.STARTING: Label("Starting", "start"),
    Verdict.WILL_START: Label("Will start", "start"),
    Verdict.HEALTHY: Label("Healthy", "ok"),
}
"""In the order of charts on pages: what stops a gang for longest first, what clears itself last."""
