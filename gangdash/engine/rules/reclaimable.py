"""May a gang take resources back from other queues, and from which?

Fair share and quota at every level of the queue tree: who may reclaim, which gangs may be victims, and
whether the queues stay within their shares after a scenario. Mirrors pkg/scheduler/plugins/proportion/
reclaimable and proportion.go (KAI d5bc503a). Each list is walked in a defined order, where the scheduler
walks maps.
"""

from __future__ import annotations

from collections.abc import Sequence

from gangdash.engine.rules.queue_order import allocatable_share, less_equal
from gangdash.engine.rules.reclaim_limit import ReclaimLimit, levels, minus, plus, saturation
from gangdash.engine.rules.scenario import Demand, LossLimit, Scenario, Victim, demand_of, involved_in
from gangdash.engine.session import ACTIVE_ALLOCATED, UNLIMITED, Amounts, JobState, QueueState, Session, TaskState
from gangdash.engine.statement.queue import QueueMemo

_RESOURCES = range(3)
Loss = tuple[Amounts, frozenset[int]]
"""What one batch of victim pods gives up, and the resources involved."""


def install(session: Session) -> None:
    rules = Reclaimable(session)
    hooks = session.hooks
    hooks.can_reclaim.append(rules.may_reclaim)
    hooks.reclaim_victims.append(rules.is_candidate)
    hooks.reclaim_scenarios.append(rules.accepts)
    hooks.reclaim_limits.append(rules.loss_limit)
    hooks.solution_start.append(rules.remember_queues)


class Reclaimable:
    def __init__(self, session: Session) -> None:
        plugin = session.config.plugin("proportion")
        self._session = session
        self._multiplier = _multiplier(plugin.arguments.get("relcaimerSaturationMultiplier", "") if plugin else "")
        self._moved_count = not session.params.allow_consolidating_reclaim
        self._before: dict[str, QueueMemo] = {}

    def remember_queues(self) -> None:
        """Keep what queues hold before a search: its scenarios are judged against that."""
        self._before = {name: queue.save() for name, queue in self._session.queues.items()}

    def _held(self, queue: QueueState) -> Amounts:
        return self._before[queue.name].allocated

    # Before the search

    def may_reclaim(self, job: JobState) -> bool:
        """Whether the gang's own queue stays within its fair share, and within its quota if it is not preemptible."""
        queue = self._session.queues[job.queue]
        demand = demand_of(self._session, job).amounts
        if not less_equal(plus(queue.allocated, demand), queue.fair_share):
            return False
        return job.is_preemptible or less_equal(plus(queue.allocated_non_preemptible, demand), queue.deserved)

    def is_candidate(self, job: JobState, victim: JobState) -> bool:
        """Whether any rule could let the gang take from the victim's queue."""
        own, other = self._session.queues.get(job.queue), self._session.queues.get(victim.queue)
        if own is None or other is None:
            return True
        mine, theirs = levels(own, other)
        demand = demand_of(self._session, job)
        if not less_equal(plus(mine.allocated, demand.amounts), mine.deserved):
            return not less_equal(theirs.allocated, allocatable_share(theirs))
        return _may_be_over_quota(theirs, demand)

    def loss_limit(self, job: JobState, demand: Demand) -> LossLimit:
        return ReclaimLimit(
            self._session.queues, self._before, self._multiplier, self._session.queues[job.queue], demand
        )

    # A scenario

    def accepts(self, scenario: Scenario) -> bool:
        """Whether every victim's queue may be taken from, and saturation stays in order at every level."""
        losses = self._losses(scenario.victims)
        own = self._session.queues[scenario.job.queue]
        left = self._take(own, scenario.demand, losses)
        return left is not None and self._is_balanced(scenario, own, left, losses)

    def _losses(self, victims: Sequence[Victim]) -> dict[str, list[Loss]]:
        """Return per leaf queue the batches that would be lost: surplus pods one by one, then the rest together."""
        losses: dict[str, list[Loss]] = {}
        for victim in victims:
            surplus, core = split_victim(victim)
            batches = [*([task] for task in surplus), core]
            lost = [loss for batch in batches if (loss := self._loss(batch)) is not None]
            if lost:
                losses.setdefault(victim.job.queue, []).extend(lost)
        return losses

    def _loss(self, tasks: Sequence[TaskState]) -> Loss | None:
        gone = [t for t in tasks if self._moved_count or not t.status & ACTIVE_ALLOCATED]
        if not gone:
            return None
        total = gone[0].accepted_amounts
        for task in gone[1:]:
            total = plus(total, task.accepted_amounts)
        return total, involved_in(task.accepted for task in gone)

    def _take(self, own: QueueState, demand: Demand, losses: dict[str, list[Loss]]) -> dict[str, Amounts] | None:
        """Return what queues are left with after the losses, None when one of them may not be taken from.

        Asked before each batch: the last one may bring a queue below its share.
        """
        left: dict[str, Amounts] = {}
        for name, batches in losses.items():
            leaf = self._session.queues[name]
            mine, theirs = levels(own, leaf)
            for amounts, _ in batches:
                remaining = left.get(theirs.name, self._held(theirs))
                if not self._may_take(mine, theirs, demand, remaining):
                    return None
                for queue in leaf.ancestors:
                    left[queue.name] = minus(left.get(queue.name, self._held(queue)), amounts)
        return left

    def _may_take(self, mine: QueueState, theirs: QueueState, demand: Demand, remaining: Amounts) -> bool:
        if not less_equal(remaining, allocatable_share(theirs)):
            return True
        within_quota = less_equal(plus(self._held(mine), demand.amounts), mine.deserved)
        return within_quota and not less_equal(remaining, theirs.deserved)

    def _is_balanced(
        self, scenario: Scenario, own: QueueState, left: dict[str, Amounts], losses: dict[str, list[Loss]]
    ) -> bool:
        involved = _involved_by_queue(self._session, losses)
        demand = scenario.demand
        for queue in own.ancestors:
            held = plus(left.get(queue.name, self._held(queue)), demand.amounts)
            for name, remaining in left.items():
                sibling = self._session.queues[name]
                if sibling.parent != queue.parent or sibling.name == queue.name:
                    continue
                resources = involved.get(name, frozenset()) | demand.involved
                if not self._stays_below(resources, held, queue, remaining, sibling):
                    return False
            if not scenario.job.is_preemptible:
                fixed = plus(self._before[queue.name].allocated_non_preemptible, demand.amounts)
                if not less_equal(fixed, queue.deserved):
                    return False
        return True

    def _stays_below(
        self, resources: frozenset[int], held: Amounts, queue: QueueState, remaining: Amounts, sibling: QueueState
    ) -> bool:
        for index in resources:
            mine, theirs = queue.fair_share[index], sibling.fair_share[index]
            ratio = saturation(held[index], mine)
            if ratio > 1 and theirs > 0 and ratio * self._multiplier >= saturation(remaining[index], theirs):
                return False
        return True


def split_victim(victim: Victim) -> tuple[list[TaskState], list[TaskState]]:
    """Return the victim pods beyond each pod set's minimum, and the others, in the order given."""
    by_set: dict[str, list[TaskState]] = {}
    for task in victim.tasks:
        by_set.setdefault(task.sub_group, []).append(task)
    surplus: list[TaskState] = []
    core: list[TaskState] = []
    for name, tasks in by_set.items():
        minimum = victim.job.pod_sets[name].min_available
        core.extend(tasks[:minimum])
        surplus.extend(tasks[minimum:])
    return surplus, core


def _may_be_over_quota(queue: QueueState, demand: Demand) -> bool:
    """Whether a queue is above quota in a requested resource, or below it in none of them."""
    is_below = False
    for index in _RESOURCES:
        if demand.amounts[index] <= 0 or queue.deserved[index] == UNLIMITED:
            continue
        if queue.allocated[index] > queue.deserved[index]:
            return True
        is_below = is_below or queue.allocated[index] < queue.deserved[index]
    return not is_below


def _involved_by_queue(session: Session, losses: dict[str, list[Loss]]) -> dict[str, frozenset[int]]:
    involved: dict[str, frozenset[int]] = {}
    for name, batches in losses.items():
        resources = frozenset[int]().union(*(loss[1] for loss in batches))
        for queue in session.queues[name].ancestors:
            involved[queue.name] = involved.get(queue.name, frozenset()) | resources
    return involved


def _multiplier(text: str) -> float:
    """Return the saturation multiplier, at least 1; a text that is no number counts as 1."""
    try:
        return max(float(text), 1.0) if text else 1.0
    except ValueError:
        return 1.0
