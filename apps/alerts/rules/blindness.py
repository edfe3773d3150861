"""The rule about gangdash itself: is what it says of a cluster still to be trusted.

While a cluster is blind the rules that rest on its verdicts keep still: what they would say is about the past. A
kind that no verdict needs, or a clock that differs, is told and silences nothing.
"""

from __future__ import annotations

from datetime import datetime

from apps.alerts.rules.base import Finding, Values
from apps.alerts.rules.facts import Facts, Seen, Topic
from apps.delivery.messages import Severity
from gangdash.engine.verdict import Verdict, Who

POLL = "poll"
ANALYSIS = "analysis"
SKEW = "skew"
KIND = "kind:"
"""Before the name of a kind that verdicts rest on."""
OPTIONAL = "optional:"
_SILENCING = (POLL, ANALYSIS, KIND)


def is_silencing(subject: str) -> bool:
    """Tell whether verdicts are not to be trusted while this is so."""
    return subject.startswith(_SILENCING)


def blind_since(facts: Facts) -> datetime | None:
    """Return since when verdicts are not to be trusted, None where they are."""
    return min((row.opened for row in facts.about(Topic.BLIND).values() if is_silencing(row.subject)), default=None)


def blind(facts: Facts, _values: Values) -> list[Finding]:
    """Find what keeps gangdash from seeing the cluster as it is."""
    return [_finding(facts, row) for row in facts.about(Topic.BLIND).values()]


def _finding(facts: Facts, row: Seen) -> Finding:
    silences = is_silencing(row.subject)
    return Finding(
        signature=f"BLIND||{row.subject}",
        since=row.opened,
        title=_title(facts.cluster, row.subject),
        text=f"{row.value}. {SILENCED if silences else 'No rule is silenced by it.'}",
        verdict=Verdict.NO_VERDICT,
        subject=row.subject,
        who=Who.PLATFORM,
        severity=None if silences else Severity.TICKET,
    )


SILENCED = "Rules 1 to 10 and custom rules are silent for this cluster meanwhile; alerts that fire stay as they are."


def _title(cluster: str, subject: str) -> str:
    if subject == POLL:
        return f"{cluster} cannot be read"
    if subject == ANALYSIS:
        return f"The newest reading of {cluster} could not be analysed"
    if subject == SKEW:
        return f"The clock of {cluster} differs"
    return f"{subject.partition(':')[2]} of {cluster} cannot be read"
