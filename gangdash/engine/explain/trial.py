"""Does the scheduler itself start a gang once queue-side rules are taken away, and which of them have to go?

A trial runs the shard's actions on the session as it opened. Victim search and priorities are the scheduler's own;
taking away the order means that no other gang's waiting pods are tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.lifts import Rule, Rules, lifts_of
from gangdash.engine.explain.turns import turns_of
from gangdash.engine.sandbox import Attempt, attempt

_WHOLE_UP_TO = 256
"""Nodes up to which a trial among all gangs is a whole cycle; beyond it the gang is tried at its turn only."""
_CAPS = frozenset({Rule.LIMIT, Rule.QUOTA})


class Trials:
    """The trials of one gang; each set of rules is run once."""

    def __init__(self, gang: Gang) -> None:
        self.gang = gang
        self._done: dict[Rules, Attempt] = {}

    def result(self, lifted: Iterable[Rule]) -> Attempt:
        """Return what becomes of the gang with these rules lifted."""
        rules = frozenset(lifted)
        if rules not in self._done:
            self._done[rules] = self._run(rules)
        return self._done[rules]

    def starts(self, *lifted: Rule) -> bool:
        return self.result(lifted).starts

    def smallest(self, lifts: Sequence[Rule]) -> Rules | None:
        """Return a minimal set of the rules whose lifting starts the gang; None when lifting all does not.

        The gang waits in the cycle as it is. Limits and quotas, which the scheduler names first, are preferred.
        A trial with the gang alone is cheap and more generous, so it comes before one among all gangs.
        """
        if not self.starts(Rule.ORDER, *lifts):
            return None
        others = [rule for rule in lifts if rule is not Rule.ORDER]
        for rules in _subsets([rule for rule in others if rule in _CAPS]):
            if rules and self._suffices(rules):
                return frozenset(rules)
        # A quota that is passed stays passed: what counts against it is never evicted.
        sets = (rules for rules in _subsets(others) if Rule.QUOTA in rules or Rule.QUOTA not in others)
        chosen = next(rules for rules in sets if self.starts(Rule.ORDER, *rules))
        if chosen and self._suffices(chosen):
            return self._reduced(frozenset(chosen))
        return frozenset({Rule.ORDER, *chosen})

    def _suffices(self, rules: Sequence[Rule]) -> bool:
        return self.starts(Rule.ORDER, *rules) and self.starts(*rules)

    def _reduced(self, rules: Rules) -> Rules:
        """Drop rules that turn out not to matter while the other gangs are there too.

        With the gang alone none of them could go, so this seldom changes anything; at scale it costs more than the
        rest of the explanation.
        """
        if self._is_large:
            return rules
        for rule in sorted(rules):
            if len(rules) > 1 and self.starts(*(rules - {rule})):
                return self._reduced(rules - {rule})
        return rules

    @property
    def _is_large(self) -> bool:
        shard = self.gang.shard
        return shard is not None and len(self.gang.context.session(shard).nodes) > _WHOLE_UP_TO

    def _run(self, rules: Rules) -> Attempt:
        shard, job = self.gang.shard, self.gang.job
        if shard is None or job is None:
            return Attempt()
        session = self.gang.context.session(shard)
        if Rule.ORDER not in rules and self._is_large:
            return turns_of(session).result(job, rules)
        return attempt(session, job, alone=Rule.ORDER in rules, lifts=lifts_of(rules))


def _subsets(rules: Sequence[Rule]) -> Iterator[tuple[Rule, ...]]:
    for size in range(len(rules) + 1):
        yield from itertools.combinations(rules, size)
