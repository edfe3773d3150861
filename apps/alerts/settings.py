"""A rule as it is set for one installation: plain data that evaluation and look-back share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from apps.alerts.machine import Timing
from apps.alerts.rules import CUSTOM_NEEDS, RULES, SILENT_WHEN_BLIND
from apps.alerts.rules.base import Finding, Source
from apps.alerts.rules.custom import GangCondition, custom_find
from apps.alerts.rules.facts import Facts, Scope


@dataclass(frozen=True, slots=True)
class RuleSetting:
    """One rule with its numbers. ``condition`` is set for rules that people made and None for those of the list."""

    key: str
    for_seconds: int
    keep_seconds: int
    scope: Scope = field(default_factory=Scope)
    values: Mapping[str, float] = field(default_factory=dict)
    condition: GangCondition | None = None

    @property
    def timing(self) -> Timing:
        return Timing(timedelta(seconds=self.for_seconds), timedelta(seconds=self.keep_seconds))

    @property
    def needs(self) -> tuple[Source, ...]:
        return CUSTOM_NEEDS if self.condition is not None else RULES[self.key].needs

    @property
    def helps(self) -> tuple[Source, ...]:
        return () if self.condition is not None else RULES[self.key].helps

    @property
    def longest_window(self) -> timedelta:
        """Return how far back the rule looks from each moment."""
        values = self.values if self.condition is not None else RULES[self.key].defaults() | dict(self.values)
        windows = (value for name, value in values.items() if name.endswith("_seconds"))
        return timedelta(seconds=max(windows, default=0.0))

    @property
    def is_silent_when_blind(self) -> bool:
        return self.condition is not None or self.key in SILENT_WHEN_BLIND

    def is_about(self, cluster: str) -> bool:
        return not self.scope.clusters or cluster in self.scope.clusters

    def find(self, facts: Facts) -> list[Finding]:
        """Return what the rule finds within its scope."""
        if not self.is_about(facts.cluster):
            return []
        inside = facts.within(self.scope)
        if self.condition is not None:
            return custom_find(inside, self.condition)
        rule = RULES[self.key]
        found = rule.find(inside, rule.defaults() | dict(self.values))
        return [item for item in found if item.gangs or self.scope.has_queue(item.queue)]
