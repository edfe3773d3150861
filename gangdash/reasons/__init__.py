"""Every word that a verdict is told in: one registry entry per code, sentences from facts, the match of upstream texts.

Facts come from the engine, words from here, so that page, API, command line, message and report say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangdash.engine.verdict import Finding, Match, ReasonCode, SchedulerWords
from gangdash.reasons import capacity, config, handover, placed, policy, stuck
from gangdash.reasons.fixes import fix_sentence
from gangdash.reasons.match import match_registry
from gangdash.reasons.reason import Reason
from gangdash.reasons.wording import compose

_BY_CODE = {
    reason.code: reason for module in (capacity, policy, config, handover, placed, stuck) for reason in module.REASONS
}

REGISTRY: Mapping[ReasonCode, Reason] = {code: _BY_CODE[code] for code in ReasonCode}
"""All codes in the order of the verdicts; a code without an entry stops the import."""


def sentence(finding: Finding) -> str:
    """Return the one sentence of a finding."""
    return compose(REGISTRY[finding.code].template(finding.form), finding.facts)


def match_words(finding: Finding, also: Sequence[Finding], words: SchedulerWords | None) -> Match:
    """Say whether the cluster's own words on a gang mean the same as our finding."""
    return match_registry(REGISTRY, finding, also, words)


__all__ = ["REGISTRY", "Reason", "fix_sentence", "match_words", "sentence"]
