"""Whose change is re-run next: the searches of all gangs take turns at one budget of re-runs.

Waiting gangs come before placed ones. Every gang gets its first before one gets its second; then a gang without a fix
comes before one that has one. A re-run tells of every gang what it does to it, so each search that asks for the same
change hears of it at no cost. On a large cluster what most of them ask for comes first. What the budget left out is
counted, so that no gang seems to have been searched to the end that was not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from gangdash.engine.fixes.boundary import safely
from gangdash.engine.fixes.candidate import Candidate
from gangdash.engine.fixes.choose import Found, Steps, Tried
from gangdash.engine.fixes.outcome import Check
from gangdash.engine.fixes.reruns import Key, Rerun, Reruns, key_of

MOST_RUNS = 14
"""Re-runs that are made for one gang; those made for others do not count."""

Watch = Callable[[str, str], None]
"""Told of ``guess`` or ``rerun`` and the key of a gang whenever such work for it begins."""


class Plan:
    """One gang's search under way; ``ask`` holds what it would like re-run next, in its order."""

    def __init__(self, found: Found, steps: Callable[[], Steps], check: Check | None, *, is_waiting: bool) -> None:
        self.found = found
        self.check = check
        self.is_waiting = is_waiting
        self.ask: dict[Key, Candidate] = {}
        self.heard = 0
        self.runs = 0
        self._cut = 0
        self._begin = steps
        self._steps: Steps | None = None

    @property
    def is_open(self) -> bool:
        return bool(self.ask) and self.runs < MOST_RUNS

    @property
    def is_without(self) -> bool:
        return not self.found.fixes

    @property
    def untried(self) -> int:
        """Changes that are known to the search and whose re-run did not come about or did not end."""
        return len(self.ask) + self._cut

    def start(self) -> None:
        """Work out what the gang asks for first."""
        self._offer(safely(self.found.key, self._first, ()))

    def tell(self, key: Key, rerun: Rerun) -> None:
        """Go on with what came of a change that it asked for."""
        self.heard += 1
        self._cut += rerun.is_cut
        tried = Tried(self.ask[key], rerun.effect, self._is_helped(rerun))
        self._offer(safely(self.found.key, partial(self._next, tried), ()))

    def _is_helped(self, rerun: Rerun) -> bool:
        if self.check is not None:
            return rerun.checks.get(self.found.key, False)
        return rerun.effect is not None and self.found.key in rerun.effect.starts

    def is_answered(self, rerun: Rerun) -> bool:
        """Whether the re-run says what this gang asks: its own check is made only where it asked for it."""
        return self.check is None or rerun.effect is None or self.found.key in rerun.checks

    def _first(self) -> Sequence[Candidate]:
        self._steps = self._begin()
        return next(self._steps, ())

    def _next(self, tried: Tried) -> Sequence[Candidate]:
        assert self._steps is not None
        try:
            return self._steps.send(tried)
        except StopIteration:
            return ()

    def _offer(self, candidates: Sequence[Candidate]) -> None:
        self.ask = {}
        for candidate in candidates:
            self.ask.setdefault(key_of(candidate.all_changes), candidate)


def search_all(plans: Sequence[Plan], reruns: Reruns, *, is_large: bool, watch: Watch) -> None:
    """Let all searches go on until they end or the budget does."""
    for plan in plans:
        watch("guess", plan.found.key)
        plan.start()
    while reruns.left > 0 and (open_ := [plan for plan in plans if plan.is_open]):
        plan, key = _most_wanted(open_) if is_large else _next_in_turn(open_)
        watch("rerun", plan.found.key)
        plan.runs += 1
        checks = {other.found.key: other.check for other in open_ if other.check is not None and key in other.ask}
        safely(plan.found.key, partial(reruns.run, plan.ask[key].all_changes, checks), None)
        for other in open_:
            _tell_known(other, reruns, is_large=is_large)


def _next_in_turn(open_: Sequence[Plan]) -> tuple[Plan, Key]:
    plan = min(open_, key=lambda plan: (not plan.is_waiting, plan.heard > 0, not plan.is_without, plan.heard))
    return plan, next(iter(plan.ask))


def _most_wanted(open_: Sequence[Plan]) -> tuple[Plan, Key]:
    """Return what most gangs ask for; of several such changes the one whose gang comes first in turn."""
    wanted = Counter(key for plan in open_ for key in plan.ask)
    keys = {plan: max(plan.ask, key=lambda key: wanted[key]) for plan in open_}

    def turn(plan: Plan) -> tuple[bool | int, ...]:
        return (not plan.is_waiting, plan.heard > 0, -wanted[keys[plan]], not plan.is_without, plan.heard)

    plan = min(open_, key=turn)
    return plan, keys[plan]


def _tell_known(plan: Plan, reruns: Reruns, *, is_large: bool) -> None:
    """Tell a search what is known already of what it asks for.

    Where re-runs are not scarce, an unknown change of the same kind that it likes better is waited for.
    """
    while (told := _known(plan, reruns, is_large=is_large)) is not None:
        plan.tell(*told)


def _known(plan: Plan, reruns: Reruns, *, is_large: bool) -> tuple[Key, Rerun] | None:
    better = set()
    for key, candidate in plan.ask.items():
        rerun = reruns.get(key)
        if rerun is not None and plan.is_answered(rerun) and (is_large or candidate.kind not in better):
            return key, rerun
        better.add(candidate.kind)
    return None
