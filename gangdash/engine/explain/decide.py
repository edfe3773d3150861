"""The one decision: which cause comes first. Everything else that was found goes to ``also``.

The order is the contract's ("Choosing the verdict"); each step asks one module. Cheap questions about objects come
before replays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gangdash.engine.chain.stages import stage_of
from gangdash.engine.explain import (
    binding,
    capacity,
    config,
    defects,
    evicted,
    gates,
    incomplete,
    labels,
    membership,
    overdue,
    placeable,
    policy,
    references,
    refused,
    siblings,
    slack,
    standing,
    starting,
    switched,
    topology,
    unread,
    violated,
)
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.room import SEARCH_STEPS, Room
from gangdash.engine.explain.times import waiting_since
from gangdash.engine.explain.words import scheduler_words
from gangdash.engine.plugins import NUMA
from gangdash.engine.verdict import (
    Certainty,
    Explanation,
    Finding,
    GangRef,
    Members,
    ReasonCode,
    SchedulerWords,
    Verdict,
)

MAX_ALSO = 4
_NO_CAUSE = frozenset({Verdict.HEALTHY, Verdict.WILL_START, Verdict.NO_VERDICT})
"""Verdicts that would not stop a gang once its first cause is gone."""


def explain_gang(gang: Gang) -> Explanation:
    """Return why the gang waits, or how it stands if it does not."""
    findings = list(unread.pods(gang)) or list(_distinct(_waiting(gang) if gang.waits else _standing(gang)))
    if gang.waits:
        findings += references.priority_class(gang)
    return compose(gang, findings)


def _waiting(gang: Gang) -> Iterator[Finding]:
    """Yield causes in the order of decision; the first one is the verdict."""
    yield from unread.basics(gang)
    yield from unread.other_moment(gang)
    yield from config.handling(gang)
    if gang.shard is None:
        return
    before = list(_before_scheduling(gang))
    yield from before
    yield from evicted.evicted(gang)
    if gang.binding:
        yield from binding.bind_trouble(gang)
        if not gang.pending:
            yield placeable.under_way(gang)
            return
    room = capacity.room_of(gang)
    if placeable.placed_by_replay(gang) and not capacity.is_split(gang, room):
        told = list(placeable.placeable(gang))
        yield from told
        if told and told[0].code is ReasonCode.PLACEABLE_NOT_PLACED:
            yield from defects.defects(gang)
        return
    if room is not None:
        yield from labels.topology_labels(gang, room)
    yield from incomplete.not_enforced(gang, room)
    yield from _unplaced(gang, room, is_tried=not before)


def _before_scheduling(gang: Gang) -> Iterator[Finding]:
    """Yield what keeps the scheduler from trying the gang at all."""
    yield from config.queue(gang)
    yield from config.subgroups(gang)
    yield from membership.causes(gang)
    yield from gates.gates(gang)
    yield from _short(gang)
    yield from unread.placement(gang)
    yield from references.references(gang)
    if gang.context.snapshot.was_read("Topology"):
        yield from topology.topology(gang)


def _unplaced(gang: Gang, room: Room | None, *, is_tried: bool) -> Iterator[Finding]:
    """Yield why the replay does not place a gang; rules are tried only where nothing else keeps it from being tried."""
    if room is not None:
        if is_tried:
            yield from switched.switched(gang)
            yield from policy.policy(gang, room)
        yield from capacity.capacity(gang, room)
        yield from policy.limits_beside(gang)
    yield _no_answer(gang, room)


def _no_answer(gang: Gang, room: Room | None) -> Finding:
    """Return why no cause was found: our search ended first, or a part is not replayed."""
    if room is not None and room.fits() is None:
        return Finding(ReasonCode.BUDGET_EXHAUSTED, facts={"steps": SEARCH_STEPS})
    parts = gang.result.not_modelled if gang.result is not None else ()
    return Finding(ReasonCode.NOT_MODELLED, facts={"parts": parts or ("pods beyond the gang's minimum",)})


def _short(gang: Gang) -> Iterator[Finding]:
    """Yield what a gang with too few pods is, where no object says why they are missing."""
    if not membership.is_short(gang):
        return
    yield from refused.refused(gang)
    yield from evicted.evicted(gang)
    yield from incomplete.below_minimum(gang)
    yield from unread.owner(gang)
    yield membership.missing(gang)


def _standing(gang: Gang) -> Iterator[Finding]:
    if not gang.is_satisfied and len(gang.alive) + len(gang.finished) < gang.needed:
        yield from evicted.evicted(gang)
    yield from violated.violated(gang)
    yield from standing.ignored_settings(gang)
    yield from incomplete.below_minimum(gang)
    yield from siblings.sibling_waits(gang)
    yield from starting.starting(gang)
    yield standing.healthy(gang)


def _distinct(findings: Iterable[Finding]) -> Iterator[Finding]:
    seen: set[ReasonCode] = set()
    for finding in findings:
        if finding.code not in seen:
            seen.add(finding.code)
            yield finding


def compose(gang: Gang, findings: list[Finding]) -> Explanation:
    """Put the first finding in front and the rest behind it."""
    first = _with_margins(gang, findings[0])
    also = [finding for finding in findings[1:] if finding.verdict not in _NO_CAUSE][:MAX_ALSO]
    if not first.stage:
        first = replace(first, stage=stage_of(first.code, first.verdict))
    return Explanation(
        gang=GangRef(gang.meta.namespace, gang.meta.name, gang.meta.uid, "PodGroup", gang.owner_ref),
        finding=first,
        shard=gang.shard.name if gang.shard is not None else "",
        certainty=_certainty(gang, first),
        waiting_since=waiting_since(gang) if gang.waits else None,
        members=first.members or _members(gang),
        fixes=first.fixes,
        also=tuple(also),
        scheduler=_words(gang, first),
        not_read=unread.unread_kinds(gang),
        not_modelled=_not_modelled(gang),
    )


_WEIGHED = frozenset({Verdict.NO_FIT, Verdict.POLICY, Verdict.NODE, Verdict.WILL_START, Verdict.STUCK})
"""Verdicts that weigh numbers: what holds beside the cause belongs to the answer."""


def _with_margins(gang: Gang, first: Finding) -> Finding:
    """Return the finding with what binds and what holds kept apart, and with the margins of what holds."""
    held = first.slack
    if gang.waits and first.verdict in _WEIGHED:
        held = (*held, *slack.margins(gang, capacity.room_of(gang)))
    bound, met = slack.split(first.binding, held)
    return replace(first, binding=tuple(bound), slack=tuple(met))


def _certainty(gang: Gang, first: Finding) -> Certainty:
    """Return how sure the verdict is: a replay that leaves out a part that matters proves nothing."""
    if first.verdict is Verdict.NO_VERDICT:
        return Certainty.NO_VERDICT
    cut_short = gang.result is not None and bool(gang.result.budget_hit)
    if first.certainty is Certainty.PROVED and (cut_short or _not_modelled(gang)):
        return Certainty.UNPROVEN
    return first.certainty


def _not_modelled(gang: Gang) -> tuple[str, ...]:
    """Return the parts that the replay leaves out and that nothing here makes up for."""
    parts = gang.result.not_modelled if gang.result is not None else ()
    known = gang.context.snapshot.was_read("NodeResourceTopology")
    return tuple(part for part in parts if not (known and part == NUMA))


def _words(gang: Gang, first: Finding) -> SchedulerWords | None:
    """Return the cluster's words; words from before the gang became placeable are outdated by that."""
    words = scheduler_words(gang)
    if words is None or words.at is None or not placeable.placed_by_replay(gang):
        return words
    since = overdue.placeable_since(gang)
    if first.verdict in {Verdict.WILL_START, Verdict.STUCK} and words.at < since and words.outdated_by is None:
        return replace(words, outdated_by=since)
    return words


def _members(gang: Gang) -> Members:
    """Return how the needed members stand by the replay: those placed fit, the rest is as far as it was tried."""
    result = gang.result
    needed = max(gang.needed, 0)
    placed = min(len(gang.placed), needed)
    if not gang.waits:
        return Members(needed, placed, needed - placed, 0)
    if placeable.placed_by_replay(gang):
        return Members(needed, needed, 0, 0)
    if result is None or result.fit is None:
        return Members(needed, placed, 0, needed - placed)
    fit = min(placed + result.fit, needed)
    return Members(needed, fit, needed - fit, 0)
