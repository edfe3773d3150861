"""What binds is minimal: lifting all of it starts the gang, lifting all but one does not. By brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given, settings

from gangdash.engine.explain.capacity import busy_lifts, room_of, state_lifts
from gangdash.engine.explain.caps import violations
from gangdash.engine.explain.context import Context
from gangdash.engine.explain.gang import Gang, gangs_of
from gangdash.engine.explain.lifts import Rule
from gangdash.engine.explain.placeable import placed_by_replay
from gangdash.engine.explain.room import CHECK_REASONS, DOMAIN, Lift, reason_lift
from gangdash.engine.explain.trial import Trials
from gangdash.engine.model.cycle import GangOutcome
from gangdash.engine.whatif import run_all
from tests.engine.builders import Cluster
from tests.engine.worlds import clusters, contended

_MOST = 6
_RULES = (Rule.LIMIT, Rule.QUOTA, Rule.ORDER, Rule.DELAY, Rule.MIN_RUNTIME, Rule.SHARE)


def unplaced(cluster: Cluster) -> Iterator[Gang]:
    """Yield the gangs that the scheduler tries and does not place."""
    snapshot = cluster.snapshot()
    for gang in gangs_of(Context(snapshot, run_all(snapshot))):
        job, result = gang.job, gang.result
        # Pods that are bound and moved on in the same cycle are placed too.
        is_moved = result is not None and result.outcome is GangOutcome.MOVED
        if job is not None and job.pending and job.is_ready and not placed_by_replay(gang) and not is_moved:
            yield gang


def rules_of(gang: Gang) -> list[Rule]:
    """Return the rules that can be in the way: caps only where the step would pass one."""
    broken = violations(gang)
    caps = {Rule.LIMIT if item.is_limit else Rule.QUOTA for item in broken}
    return [rule for rule in _RULES if rule in caps or rule not in {Rule.LIMIT, Rule.QUOTA}]


def rules_are_minimal(gang: Gang) -> None:
    trials, rules = Trials(gang), rules_of(gang)
    smallest = trials.smallest(rules)
    if smallest is None:
        assert not trials.starts(*rules)
        return
    assert trials.starts(*smallest), smallest
    for rule in smallest:
        assert not trials.starts(*(smallest - {rule})), (smallest, rule)


@given(cluster=clusters())
@settings(max_examples=30, deadline=None)
def test_no_queue_rule_that_binds_is_idle(cluster: Cluster) -> None:
    for gang in unplaced(cluster):
        rules_are_minimal(gang)


@given(cluster=contended())
@settings(max_examples=30, deadline=None)
def test_no_queue_rule_that_binds_is_idle_where_gangs_contend(cluster: Cluster) -> None:
    for gang in unplaced(cluster):
        rules_are_minimal(gang)


@given(cluster=clusters())
@settings(max_examples=40, deadline=None)
def test_no_smaller_set_of_obstacles_than_the_one_told_makes_room(cluster: Cluster) -> None:
    for gang in unplaced(cluster):
        room = room_of(gang)
        if room is None:
            continue
        checks = [reason_lift(reason) for reason in CHECK_REASONS if reason in room.present]
        lifts: list[Lift] = [*([DOMAIN] if room.level else []), *busy_lifts(room), *checks, *state_lifts(room)][:_MOST]
        smallest = room.smallest(lifts)
        enough = [
            set(chosen)
            for size in range(len(lifts) + 1)
            for chosen in itertools.combinations(lifts, size)
            if room.fits(frozenset(chosen))
        ]
        if smallest is None:
            assert not enough
        else:
            assert len(smallest) == max(min(map(len, enough)), min(1, len(smallest)))
            assert all(not room.fits(smallest - {lift}) for lift in smallest) or room.fits()
