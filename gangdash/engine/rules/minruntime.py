"""Which running gangs are too young to be evicted?

Protected while less than the minimum run time has passed since the gang's last start. An elastic gang is
not protected as a whole: it may lose pods above its minimum, which the scenario validators check. Mirrors
pkg/scheduler/plugins/minruntime (KAI d5bc503a).
"""

from __future__ import annotations

import re
from collections import Counter

from gangdash.engine.rules.scenario import Scenario, Victim
from gangdash.engine.session import JobState, QueueState, Session

_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def install(session: Session) -> None:
    rules = MinRuntime(session)
    hooks = session.hooks
    hooks.reclaim_victims.append(rules.allows_reclaim)
    hooks.preempt_victims.append(rules.allows_preempt)
    hooks.reclaim_scenarios.append(rules.accepts_reclaim)
    hooks.preempt_scenarios.append(rules.accepts_preempt)


def duration_seconds(text: str) -> float | None:
    """Return the seconds of a duration such as ``1h30m``; None where it is not one or is negative."""
    if text == "0":
        return 0.0
    parts = _DURATION_PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


class MinRuntime:
    def __init__(self, session: Session) -> None:
        plugin = session.config.plugin("minruntime")
        arguments = plugin.arguments if plugin is not None else {}
        self._session = session
        self._reclaim_default = duration_seconds(arguments.get("defaultReclaimMinRuntime", "")) or 0.0
        self._preempt_default = duration_seconds(arguments.get("defaultPreemptMinRuntime", "")) or 0.0
        self._by_victim_queue = arguments.get("reclaimResolveMethod") == "queue"
        self._reclaim_cache: dict[tuple[str, str], float] = {}

    # Minimums

    def preempt_minimum(self, victim: JobState) -> float:
        """Return seconds: the first value from the victim's queue upward, else the shard's."""
        queue = self._session.queues.get(victim.queue)
        for member in queue.ancestors if queue is not None else ():
            if member.queue.preempt_min_runtime is not None:
                return member.queue.preempt_min_runtime
        return self._preempt_default

    def reclaim_minimum(self, job: JobState, victim: JobState) -> float:
        key = (job.queue, victim.queue)
        if key not in self._reclaim_cache:
            self._reclaim_cache[key] = self._resolve_reclaim(job, victim)
        return self._reclaim_cache[key]

    def _resolve_reclaim(self, job: JobState, victim: JobState) -> float:
        own, other = self._session.queues.get(job.queue), self._session.queues.get(victim.queue)
        if own is None or other is None:
            return self._reclaim_default
        for member in other.ancestors if self._by_victim_queue else _asked(own, other):
            if member.queue.reclaim_min_runtime is not None:
                return member.queue.reclaim_min_runtime
        return self._reclaim_default

    # Protection

    def protected_until_reclaim(self, job: JobState, victim: JobState) -> float | None:
        """Return the end of the victim's protection, None when it has no known start."""
        return None if victim.last_start is None else victim.last_start + self.reclaim_minimum(job, victim)

    def protected_until_preempt(self, victim: JobState) -> float | None:
        return None if victim.last_start is None else victim.last_start + self.preempt_minimum(victim)

    def _is_before(self, end: float | None) -> bool:
        return end is not None and self._session.as_of < end

    def allows_reclaim(self, job: JobState, victim: JobState) -> bool:
        return victim.is_elastic or not self._is_before(self.protected_until_reclaim(job, victim))

    def allows_preempt(self, job: JobState, victim: JobState) -> bool:
        return victim.is_elastic or not self._is_before(self.protected_until_preempt(victim))

    def accepts_reclaim(self, scenario: Scenario) -> bool:
        return all(
            keeps_minimum(v)
            for v in scenario.victims
            if v.job.is_elastic and self._is_before(self.protected_until_reclaim(scenario.job, v.job))
        )

    def accepts_preempt(self, scenario: Scenario) -> bool:
        return all(
            keeps_minimum(v)
            for v in scenario.victims
            if v.job.is_elastic and self._is_before(self.protected_until_preempt(v.job))
        )


def keeps_minimum(victim: Victim) -> bool:
    """Whether every pod set keeps its minimum without the victim pods, those being released still counted as there."""
    losses = Counter(task.sub_group for task in victim.tasks)
    for name, lost in losses.items():
        pod_set = victim.job.pod_sets[name]
        if pod_set.min_available > pod_set.active_used - lost:
            return False
    return True


def _asked(own: QueueState, other: QueueState) -> list[QueueState]:
    """Return the victim's queues that have a say: from just below the common ancestor up to the top.

    Queues of different top-level queues: only the victim's top-level queue.
    """
    mine = [q.name for q in reversed(own.ancestors)]
    theirs = list(reversed(other.ancestors))
    if mine[0] != theirs[0].name:
        return [theirs[0]]
    common = 0
    for index, (left, right) in enumerate(zip(mine, theirs, strict=False)):
        if left != right.name:
            break
        common = index
    start = min(common + 1, len(theirs) - 1)
    return list(reversed(theirs[: start + 1]))
