"""Every fix that is printed holds when somebody makes the change and runs the whole cycle from the start."""

from __future__ import annotations

from gangdash.engine.explain.context import Context
from gangdash.engine.explain.gang import Gang
from gangdash.engine.explain.violated import violated
from gangdash.engine.verdict import ReasonCode, Verdict
from gangdash.engine.whatif import run_all
from tests.fixes.helpers import all_fixed, changed, effects, standings, told

_WAITING = frozenset(Verdict) - {Verdict.HEALTHY, Verdict.STARTING, Verdict.VIOLATED, Verdict.NO_VERDICT}
_BY_PROCESS = {"restart_component", "recreate_workload", "upgrade"}


def test_every_verified_fix_starts_its_gang_with_the_side_effects_that_it_names() -> None:
    count = 0
    for snapshot, explanations in all_fixed():
        before = standings(run_all(snapshot))
        for item in explanations:
            for fix in item.fixes:
                if not fix.verified or item.finding.verdict in {Verdict.WILL_START, Verdict.VIOLATED}:
                    continue
                if item.finding.code is ReasonCode.NUMA_SPLIT:
                    continue
                if before[item.gang.key][0] == "given":
                    assert fix.kind.value == "wait_for"
                    continue
                after = standings(run_all(changed(snapshot, fix)))
                where = (snapshot.name, item.gang.key, dict(fix.change))
                found = told(before, after)
                assert item.gang.key in found["starts"], where
                assert effects(fix) == found, where
                count += 1
    assert count > 250


def test_a_placed_gang_is_within_the_rules_after_its_fix() -> None:
    count = 0
    for snapshot, explanations in all_fixed():
        for item in explanations:
            if item.finding.verdict is not Verdict.VIOLATED:
                continue
            for fix in item.fixes:
                context = Context(changed(snapshot, fix), ())
                podgroup = context.podgroups.get((item.gang.namespace, item.gang.name))
                broken = {finding.code for finding in violated(Gang(context, podgroup))} if podgroup else set()
                assert item.finding.code not in broken, (snapshot.name, dict(fix.change))
                count += 1
    assert count >= 8


def test_nearly_every_gang_that_waits_knows_what_would_start_it() -> None:
    """Gangs whose trouble is a component that has to be restarted are left to the restart."""
    waiting = [
        item
        for _, explanations in all_fixed()
        for item in explanations
        if item.finding.verdict in _WAITING and item.gang.kind == "PodGroup"
    ]
    answered = [
        item for item in waiting if any(fix.verified or fix.kind in {"wait_for", *_BY_PROCESS} for fix in item.fixes)
    ]
    assert len(answered) / len(waiting) > 0.93
    assert len(waiting) > 200


def test_only_what_no_replay_can_show_is_unproved() -> None:
    for _, explanations in all_fixed():
        for item in explanations:
            for fix in item.fixes:
                if fix.kind.value in _BY_PROCESS:
                    assert not fix.verified


def test_fixes_come_cheapest_first_and_one_of_a_kind() -> None:
    for snapshot, explanations in all_fixed():
        for item in explanations:
            proved = [fix for fix in item.fixes if fix.verified]
            costs = [fix.cost for fix in proved]
            assert costs == sorted(costs), (snapshot.name, item.gang.key)
            assert len({fix.kind for fix in proved}) == len(proved), (snapshot.name, item.gang.key)
            assert len(item.fixes) <= 5
