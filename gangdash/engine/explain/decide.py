"""The one decision: which cause comes first. Everything else that was found goes to ``also``.

The order is the contract's ("Choosing the verdict"); each step asks one module. Cheap questions about objects come
before replays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from gangdash.engine.explain import config, gates, membership
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.stages import stage_of
from gangdash.engine.verdict import Certainty, Explanation, Finding, GangRef, ReasonCode

MAX_ALSO = 4
Question = Callable[[Gang], Iterable[Finding]]


def explain_gang(gang: Gang) -> Explanation:
    """Return why the gang waits, or how it stands if it does not."""
    findings = list(_distinct(_waiting(gang) if gang.waits else _standing(gang)))
    return compose(gang, findings)


def _waiting(gang: Gang) -> Iterator[Finding]:
    yield from config.handling(gang)
    if gang.shard is None:
        return
    yield from config.queue(gang)
    yield from config.subgroups(gang)
    yield from membership.causes(gang)
    yield from gates.gates(gang)
    if membership.is_short(gang):
        yield membership.missing(gang)
    yield from config.topology(gang)
    yield Finding(ReasonCode.NOT_MODELLED, facts={"parts": ("capacity",)})


def _standing(gang: Gang) -> Iterator[Finding]:
    yield Finding(ReasonCode.RUNNING, facts={"placed": len(gang.placed), "needed": gang.needed})


def _distinct(findings: Iterable[Finding]) -> Iterator[Finding]:
    seen: set[ReasonCode] = set()
    for finding in findings:
        if finding.code not in seen:
            seen.add(finding.code)
            yield finding


def compose(gang: Gang, findings: list[Finding]) -> Explanation:
    """Put the first finding in front and the rest behind it."""
    first, also = findings[0], findings[1 : 1 + MAX_ALSO]
    if not first.stage:
        first = replace(first, stage=stage_of(first.code, first.verdict))
    return Explanation(
        gang=GangRef(gang.meta.namespace, gang.meta.name, gang.meta.uid, "PodGroup", gang.owner_ref),
        finding=first,
        shard=gang.shard.name if gang.shard is not None else "",
        certainty=first.certainty if first.verdict != "NO_VERDICT" else Certainty.NO_VERDICT,
        fixes=first.fixes,
        also=tuple(also),
    )
