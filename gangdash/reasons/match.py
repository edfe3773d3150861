"""Do the cluster's own words and our finding mean the same?

Works on the upstream texts' patterns of the registry, never on equality of strings: the scheduler's counts and orders
change from cycle to cycle, and its generic texts are true beside almost any cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from gangdash.engine.verdict import Finding, Match, ReasonCode, SchedulerWords, Verdict
from gangdash.reasons.reason import Reason

# Texts that name no cause: they are less specific beside every finding.
_GENERIC = (
    r"^(Unable to schedule pod(group)?\.?|Job is not ready for scheduling\.?.*)$",
    r"^Unable to schedule podgroup: ?(.*Resources were (not )?found for.*)?$",
)


def match_registry(
    registry: Mapping[ReasonCode, Reason], finding: Finding, also: Sequence[Finding], words: SchedulerWords | None
) -> Match:
    """Compare the scheduler's words with the finding and with what would stop the gang next."""
    if words is None or not words.text:
        return Match.SILENT
    if words.outdated_by is not None or finding.verdict is Verdict.HEALTHY:
        return Match.STALE
    said = (words.text, *words.reasons)
    reason = registry[finding.code]
    if _any(reason.upstream, said):
        return Match.AGREE
    if any(_any(registry[other.code].upstream, said) for other in also):
        return Match.LESS_SPECIFIC
    if _any((*reason.hints, *_GENERIC), said):
        return Match.LESS_SPECIFIC
    return Match.DISAGREE


def _any(patterns: Iterable[str], texts: Sequence[str]) -> bool:
    return any(re.search(pattern, text, re.DOTALL) for pattern in patterns for text in texts)
