"""Who is served next, what one re-run tells to many, and what is said of the re-runs that did not come about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from gangdash.engine.changes import Change
from gangdash.engine.fixes import reruns as budget
from gangdash.engine.fixes.candidate import Candidate
from gangdash.engine.fixes.choose import Found, Steps, each
from gangdash.engine.fixes.outcome import Check
from gangdash.engine.fixes.reruns import Key, Rerun, Reruns, key_of
from gangdash.engine.fixes.rounds import MOST_RUNS, Plan, search_all
from gangdash.engine.verdict import FixKind
from gangdash.engine.whatif import Effect, run_all
from tests.engine.builders import Cluster


def uncordon(node: str) -> Candidate:
    return Candidate(FixKind.UNCORDON, (Change(FixKind.UNCORDON, node),))


class Recorded(Reruns):
    """Re-runs whose answers are given: ``starts`` by the node that is uncordoned; each costs one."""

    def __init__(self, left: int, starts: Mapping[str, tuple[str, ...]], cut: Sequence[str] = ()) -> None:
        snapshot = Cluster().snapshot()
        super().__init__(snapshot, run_all(snapshot))
        self.left = left
        self.asked: list[str] = []
        self._starts = starts
        self._cut = cut

    def _run(self, changes: Sequence[Change], checks: Mapping[str, Check]) -> Rerun:
        self.left -= 1
        node = changes[0].object
        self.asked.append(node)
        if node in self._cut:
            return Rerun(is_cut=True)
        return Rerun(Effect(starts=self._starts.get(node, ())))


def plan(gang: str, *nodes: str, is_waiting: bool = True) -> Plan:
    found = Found(gang)

    def steps() -> Steps:
        yield from each(found, [uncordon(node) for node in nodes])

    return Plan(found, steps, None, is_waiting=is_waiting)


def searched(
    plans: Sequence[Plan], left: int, starts: Mapping[str, tuple[str, ...]], *, is_large: bool = False
) -> list[str]:
    runs = Recorded(left, starts)
    search_all(plans, runs, is_large=is_large, watch=lambda *_: None)
    return runs.asked


def test_every_gang_hears_of_one_rerun_before_any_hears_of_two() -> None:
    plans = [plan("a", "a1", "a2", "a3"), plan("b", "b1", "b2"), plan("c", "c1")]
    assert searched(plans, 4, {}) == ["a1", "b1", "c1", "a2"]


def test_a_gang_without_a_fix_comes_before_one_that_has_one() -> None:
    found = Found("a")

    def steps() -> Steps:
        yield from each(found, [uncordon("a1")])
        yield from each(found, [Candidate(FixKind.CORDON, (Change(FixKind.CORDON, "a2"),))])

    plans = [Plan(found, steps, None, is_waiting=True), plan("b", "b1", "b2", "b3")]
    assert searched(plans, 9, {"a1": ("a",)}) == ["a1", "b1", "b2", "b3", "a2"]


def test_waiting_gangs_come_before_placed_ones() -> None:
    plans = [plan("placed", "p1", is_waiting=False), plan("a", "a1", "a2")]
    assert searched(plans, 9, {}) == ["a1", "a2", "p1"]


def test_one_rerun_answers_all_gangs_that_ask_for_the_same_change() -> None:
    plans = [plan("a", "n"), plan("b", "n"), plan("c", "n", "c1")]
    assert searched(plans, 9, {"n": ("a", "b")}) == ["n", "c1"]
    assert [len(item.found.fixes) for item in plans] == [1, 1, 0]
    assert [item.found.refused for item in plans] == [0, 0, 2]


def test_on_a_large_cluster_what_most_ask_for_comes_first() -> None:
    plans = [plan("a", "a1", "n"), plan("b", "b1", "n"), plan("c", "c1")]
    assert searched(plans, 2, {}, is_large=True) == ["n", "c1"]


def test_what_the_budget_left_out_is_counted_and_not_called_refused() -> None:
    plans = [plan("a", "a1", "a2", "a3"), plan("b", "b1")]
    searched(plans, 1, {})
    assert [(item.found.refused, item.untried) for item in plans] == [(1, 2), (0, 1)]


def test_a_rerun_that_was_broken_off_is_untried_too() -> None:
    plans = [plan("a", "a1", "a2")]
    runs = Recorded(9, {"a2": ("a",)}, cut=["a1"])
    search_all(plans, runs, is_large=False, watch=lambda *_: None)
    assert (len(plans[0].found.fixes), plans[0].found.refused, plans[0].untried) == (1, 0, 1)


def test_one_gang_cannot_use_up_the_reruns_of_all() -> None:
    plans = [plan("a", *(f"a{index}" for index in range(40)))]
    assert len(searched(plans, 100, {})) == MOST_RUNS
    assert plans[0].untried == 40 - MOST_RUNS


def test_a_change_of_the_kind_that_is_liked_better_is_tried_before_one_that_is_known() -> None:
    plans = [plan("a", "n"), plan("b", "cheap", "n")]
    searched(plans, 9, {"n": ("a", "b"), "cheap": ("b",)})
    assert plans[1].found.fixes[0].change["object"] == "cheap"


def test_a_fault_in_one_search_costs_no_other_gang_its_fixes() -> None:
    found = Found("a")

    def steps() -> Steps:
        yield (uncordon("a1"),)
        raise ZeroDivisionError

    plans = [Plan(found, steps, None, is_waiting=True), plan("b", "b1")]
    searched(plans, 9, {"b1": ("b",)})
    assert [len(item.found.fixes) for item in plans] == [0, 1]


def test_waiting_for_an_end_and_stopping_are_one_change() -> None:
    stop = Change(FixKind.EVICT_GANG, "team/x", {"ends": "true"})
    wait = Change(FixKind.WAIT_FOR, "PodGroup/team/x", {"state": "ended"})
    assert key_of((stop,)) == key_of((wait,))


# The budget


def contended() -> Cluster:
    cluster = Cluster()
    cluster.queue("other", 0)
    cluster.queue("q", 8)
    for index in range(4):
        cluster.node(f"n{index}", 2)
        cluster.gang(f"run-{index}", 1, 2, queue="other", on=[f"n{index}"])
    cluster.gang("g", 5, 2)
    return cluster


def test_work_is_counted_and_the_same_each_time() -> None:
    snapshot = contended().snapshot()
    spent = []
    for _ in range(2):
        runs = Reruns(snapshot, run_all(snapshot))
        before = runs.left
        runs.run((Change(FixKind.SHRINK_GANG, "team/g", {"pods": "3"}),), {})
        spent.append(before - runs.left)
    assert spent[0] == spent[1] > 4 * (len(snapshot.nodes) + len(snapshot.pods) - 2)


def test_a_cycle_that_costs_more_than_its_part_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = contended().snapshot()
    shrunk = (Change(FixKind.SHRINK_GANG, "team/g", {"pods": "3"}),)
    assert Reruns(snapshot, run_all(snapshot)).run(shrunk, {}).effect is not None
    monkeypatch.setattr(budget, "WORK", 20)
    monkeypatch.setattr(budget, "WORK_PER_NODE", 0)
    cut = Reruns(snapshot, run_all(snapshot)).run(shrunk, {})
    assert cut.is_cut
    assert cut.effect is None


def test_a_change_that_cannot_be_made_costs_nothing_and_says_nothing() -> None:
    snapshot = contended().snapshot()
    runs = Reruns(snapshot, run_all(snapshot))
    before = runs.left
    assert runs.run((Change(FixKind.UNCORDON, "no-such-node"),), {}) == Rerun()
    assert runs.left == before


def test_a_larger_cluster_may_cost_more() -> None:
    small, large = Cluster(), Cluster()
    for index in range(9):
        large.node(f"n{index}")
    lefts = [Reruns(snapshot, ()).left for snapshot in (small.snapshot(), large.snapshot())]
    assert lefts[0] < lefts[1]


def test_keys_are_equal_for_equal_changes_only() -> None:
    one = Change(FixKind.RAISE_LIMIT, "q", {"gpu": "1", "cpu": "2"})
    same = Change(FixKind.RAISE_LIMIT, "q", {"cpu": "2", "gpu": "1"})
    other = Change(FixKind.RAISE_QUOTA, "q", {"gpu": "1", "cpu": "2"})
    keys: list[Key] = [key_of((change,)) for change in (one, same, other)]
    assert keys[0] == keys[1] != keys[2]
