"""What would start each waiting gang, proved: candidates from facts, kept where the re-run cycle starts the gang.

``with_fixes`` is the entry; it adds fixes to explanations and decides nothing else. Each fix is one whole cycle with
the change beside the whole cycle without it. The work is bounded by counts of operations, so the answer never depends
on a clock; what was not run is not claimed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from gangdash.engine.explain.context import Context
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.placeable import placed_by_replay
from gangdash.engine.fixes import told
from gangdash.engine.fixes.boundary import safely
from gangdash.engine.fixes.candidate import Candidate
from gangdash.engine.fixes.choose import MOST_FIXES, Found, Steps, each, search, search_large
from gangdash.engine.fixes.next_case import case_of
from gangdash.engine.fixes.outcome import check_of
from gangdash.engine.fixes.reruns import Reruns
from gangdash.engine.fixes.rounds import Plan, Watch, search_all
from gangdash.engine.verdict import Explanation, Fix, FixKind, Verdict
from gangdash.engine.whatif import Cycles

_SETTLED = frozenset({Verdict.HEALTHY, Verdict.STARTING, Verdict.NO_VERDICT})
_LARGE = 256
"""Nodes beyond which re-runs are scarce, so that changes which serve many gangs come first."""


@dataclass(frozen=True, slots=True)
class _Sought:
    """A gang whose fixes are looked for; ``unproved`` are fixes that findings name and no replay can show.

    ``later`` are such fixes of what would stop the gang next: it needs them too, and they are told where nothing that
    was re-run is enough without them.
    """

    item: Explanation
    gang: Gang
    told: list[Candidate] = field(default_factory=list)
    unproved: list[Fix] = field(default_factory=list)
    later: list[Fix] = field(default_factory=list)

    def steps(self, found: Found, *, is_large: bool) -> Steps:
        case = case_of(self.gang, self.item)
        if case is None:
            return each(found, self.told)
        return search_large(found, case, self.told) if is_large else search(found, case, self.told)

    def plan(self, *, is_large: bool) -> Plan:
        found = Found(self.gang.podgroup.key)
        check = check_of(self.gang, self.item.finding)
        return Plan(found, partial(self.steps, found, is_large=is_large), check, is_waiting=self.gang.waits)


def with_fixes(
    context: Context, cycles: Cycles, explanations: Iterable[Explanation], watch: Watch | None = None
) -> list[Explanation]:
    """Return the explanations with the fixes that hold; ``watch`` is told whenever work for another gang begins."""
    answers = list(explanations)
    sought: list[tuple[int, _Sought]] = []
    for index, item in enumerate(answers):
        found = safely(item.gang.key, partial(_opened, context, item), item)
        if isinstance(found, _Sought):
            sought.append((index, found))
        else:
            answers[index] = found
    is_large = len(context.snapshot.nodes) > _LARGE
    plans = [one.plan(is_large=is_large) for _, one in sought]
    search_all(plans, Reruns(context.snapshot, cycles), is_large=is_large, watch=watch or (lambda *_: None))
    for (index, one), plan in zip(sought, plans, strict=True):
        answers[index] = _closed(one, plan)
    return answers


def _opened(context: Context, item: Explanation) -> Explanation | _Sought:
    """Return the gang ready to be searched for, or the explanation where there is nothing to look for."""
    podgroup = context.podgroups.get((item.gang.namespace, item.gang.name))
    if podgroup is None or item.gang.kind != "PodGroup" or item.finding.verdict in _SETTLED:
        return item
    gang = Gang(context, podgroup)
    named = item.fixes or told.awaited(gang, item)
    is_checked = check_of(gang, item.finding) is not None
    if placed_by_replay(gang) and not is_checked:
        return replace(item, fixes=tuple(_waited(gang, fix) for fix in named))
    if not gang.waits and not is_checked:
        return replace(item, fixes=tuple(named))
    made = _Sought(item, gang)
    for fix in named:
        candidates = told.candidates(gang, fix)
        made.told.extend(candidates)
        if not candidates:
            made.unproved.append(fix)
    if not gang.is_ready:
        further = (fix for finding in item.also for fix in finding.fixes)
        made.later.extend(fix for fix in further if not told.candidates(gang, fix))
    return made


def _waited(gang: Gang, fix: Fix) -> Fix:
    """Return a wait for what the cycle as it is brings: the replay has shown that the gang starts."""
    if fix.kind is not FixKind.WAIT_FOR:
        return fix
    return replace(fix, verified=True, starts=(gang.podgroup.key,))


def _closed(item: _Sought, plan: Plan) -> Explanation:
    unproved = item.unproved or ([] if plan.found.fixes else item.later)
    every = sorted((*plan.found.fixes, *unproved), key=lambda fix: (not fix.verified, fix.cost))
    return replace(
        item.item, fixes=tuple(every[:MOST_FIXES]), fixes_refused=plan.found.refused, fixes_untried=plan.untried
    )
