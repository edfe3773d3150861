"""Puts words to one engine explanation: facts in, document two out. Adds nothing that the engine did not find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gangdash import __version__
from gangdash.documents.model import (
    BindingEntry,
    ChangeValue,
    ExplanationDocument,
    FixEntry,
    GangEntry,
    HolderEntry,
    MembersEntry,
    NodeEntry,
    Number,
    OtherCause,
    SchedulerEntry,
    WaitingEntry,
)
from gangdash.documents.times import stamp
from gangdash.engine.model.cluster import ClusterSnapshot
from gangdash.engine.verdict import Amount, Constraint, Explanation, FactValue, Finding, Fix, Holder, Waiting
from gangdash.reasons import REGISTRY, fix_sentence, match_words, sentence


def whole(value: Number) -> Number:
    """Return an int where the amount is whole, so that 16.0 GPUs print as 16."""
    return int(value) if float(value).is_integer() else value


def explanation_document(item: Explanation, snapshot: ClusterSnapshot, digest: str) -> ExplanationDocument:
    """Return document two for one gang."""
    finding = item.finding
    waiting = finding.waiting or Waiting()
    words = item.scheduler
    return ExplanationDocument(
        gang=GangEntry(item.gang.namespace, item.gang.name, item.gang.uid, item.gang.kind, item.gang.owner or None),
        verdict=finding.verdict,
        code=finding.code,
        who=finding.who or REGISTRY[finding.code].who,
        certainty=item.certainty,
        sentence=sentence(finding),
        shard=item.shard,
        stage=finding.stage or None,
        waiting_since=stamp(item.waiting_since),
        binding=[_constraint(entry) for entry in finding.binding],
        slack=[_constraint(entry) for entry in finding.slack],
        members=MembersEntry(item.members.needed, item.members.fit, item.members.unfit, item.members.not_evaluated),
        nodes=[NodeEntry(group.reason, group.count, list(group.examples)) for group in finding.nodes],
        holders=[_holder(holder) for holder in finding.holders],
        fixes=[_fix(fix) for fix in item.fixes],
        fixes_refused=item.fixes_refused,
        waiting=WaitingEntry(helps=waiting.helps, until=stamp(waiting.until), on=list(waiting.on)),
        also=_also(item.also),
        scheduler=SchedulerEntry(
            text=words.text if words else None,
            at=stamp(words.at) if words else None,
            match=match_words(finding, item.also, words),
        ),
        as_of=stamp(snapshot.as_of) or "",
        digest=digest,
        engine=__version__,
        not_read=list(item.not_read),
        not_modelled=list(item.not_modelled),
        fixes_untried=item.fixes_untried,
    )


def _constraint(entry: Constraint) -> BindingEntry:
    return BindingEntry(
        id=entry.id,
        scope=entry.scope,
        need=_amount(entry.need),
        have=None if entry.have is None else _amount(entry.have),
        unit=entry.unit,
        source=entry.source,
    )


def _amount(value: Number | str) -> Number | str:
    return value if isinstance(value, str) else whole(value)


def _holder(holder: Holder) -> HolderEntry:
    return HolderEntry(gang=holder.gang, gpus=whole(holder.gpus), evictable=holder.evictable)


def _fix(fix: Fix) -> FixEntry:
    return FixEntry(
        change={"kind": fix.kind.value, **_change(fix.change)},
        sentence=fix_sentence(fix),
        verified=fix.verified,
        starts=list(fix.starts),
        moves=list(fix.moves),
        delays=list(fix.delays),
        sets_back=list(fix.sets_back),
        evicts=list(fix.evicts),
        who=fix.who,
        cost=fix.cost,
    )


def _change(change: Mapping[str, FactValue]) -> dict[str, ChangeValue]:
    return {key: _plain(value) for key, value in change.items()}


def _plain(value: FactValue) -> ChangeValue:
    if isinstance(value, Amount):
        return whole(value.value)
    return list(value) if isinstance(value, tuple) else value


def _also(findings: Sequence[Finding]) -> list[OtherCause]:
    return [OtherCause(finding.verdict, finding.code, sentence(finding)) for finding in findings]
