"""Each rule of the list: what it finds and since when, what it leaves alone, and what bounds it."""

from __future__ import annotations

import pytest

from apps.alerts.rules import RULES
from apps.alerts.rules.facts import Baseline, Promise, Scope, Seen, Topic, queue_of, queue_value
from apps.alerts.settings import RuleSetting
from apps.delivery.messages import Severity
from apps.workloads.objectives import QueueShares, Start
from tests.apps.alerts.pasts import Past, at, since


def test_the_list_has_the_thirteen_rules_by_number() -> None:
    assert [rule.number for rule in RULES.values()] == list(range(1, 14))
    assert all(param.least <= param.default <= param.most for rule in RULES.values() for param in rule.params)


# 1 Fits and does not start


def test_gangs_that_fit_and_do_not_start_are_one_finding_for_each_cause() -> None:
    past = Past()
    for name, minute in (("a", 3), ("b", 1)):
        past.says(past.gang(name), "PLACEABLE_NOT_PLACED", minute, subject="Deployment/kai/scheduler")
    past.says(past.gang("c"), "GREEDY_MISS", 2, subject="Node/n1")
    past.says(past.gang("d"), "GPUS_BUSY", 0)
    past.says(past.gang("e"), "SCHEDULER_DOWN", 0)
    found = past.found("head_fits", 10)
    assert [(item.signature, since(item), item.gangs, item.gpus) for item in found] == [
        ("STUCK|PLACEABLE_NOT_PLACED|Deployment/kai/scheduler", 1, (2, 1), 16),
        ("STUCK|GREEDY_MISS|Node/n1", 2, (3,), 8),
    ]
    assert found[0].title == "2 gangs wait for 16 GPUs"


def test_what_opens_later_is_not_known_yet() -> None:
    past = Past()
    past.says(past.gang("a"), "PLACEABLE_NOT_PLACED", 5)
    assert past.found("head_fits", 4.9) == []
    assert len(past.found("head_fits", 5)) == 1


# 2 Never fits


@pytest.mark.parametrize("code", ["NODE_TOO_SMALL", "CLUSTER_TOO_SMALL", "DOMAIN_TOO_SMALL"])
def test_what_not_even_an_empty_cluster_could_hold_never_fits(code: str) -> None:
    past = Past()
    past.says(past.gang("a"), code, 0)
    assert [item.code for item in past.found("never_fits", 1)] == [code]


@pytest.mark.parametrize("limit, is_found", [(7.0, True), (8.0, False), (-1.0, False), (None, False), (0.0, True)])
def test_a_gang_larger_than_its_queues_limit_never_fits(limit: float | None, is_found: bool) -> None:
    past = Past()
    past.queue("q", limit=limit)
    past.says(past.gang("a", gpus=8), "QUEUE_LIMIT", 0)
    assert bool(past.found("never_fits", 1)) is is_found


# 3 The objective


def start(gang: int, minute: float, *, bound: float | None = None, gpus: float = 8) -> Start:
    return Start(gang, "q", gpus, at(minute), None if bound is None else at(bound), None, None, None)


def promised(past: Past, starts: list[Start]) -> None:
    shares = QueueShares([(at(-1e5), {"q": (0.0, None)})], {"q": -1})
    past.promises = [Promise("east", "", 0.95, 64, 600, starts, shares)]


def test_a_budget_that_burns_fast_pages_and_names_who_still_waits() -> None:
    past = Past()
    waiting = past.gang("a")
    past.says(waiting, "GPUS_BUSY", 0)
    promised(past, [start(waiting, 0), start(2, 1, bound=30), start(3, 2, bound=40), start(4, 3, bound=4)])
    (found,) = past.found("slo_burn", 60)
    assert (found.severity, found.gangs, since(found)) == (Severity.PAGE, (1,), 10)
    assert "3 of 4 starts of the last 2 h took longer than 10 min; 95.00% are promised" in found.text


def test_a_slow_leak_is_a_ticket() -> None:
    past = Past()
    starts = [start(n, -600 + n, bound=-599 + n) for n in range(12)] + [start(n, -300, bound=-200) for n in range(3)]
    promised(past, sorted(starts, key=lambda row: row.eligible_at))
    (found,) = past.found("slo_burn", 0)
    assert found.severity is Severity.TICKET


def test_starts_in_time_and_single_misses_burn_nothing() -> None:
    past = Past()
    promised(past, [start(1, 0, bound=9), start(2, 1), start(3, 2, bound=50)])
    assert past.found("slo_burn", 5) == []
    assert past.found("slo_burn", 60) == []
    assert len(past.found("slo_burn", 60, missed=2)) == 1


# 4 Stuck in a stage


def test_a_binding_that_takes_three_times_the_usual_pages_and_names_the_binder() -> None:
    past = Past()
    past.baselines = {"bind": Baseline(200, 50)}
    gang = past.gang("a")
    past.says(gang, "FITS_NOW", 0)
    past.steps(gang, created=0, decided=1)
    assert past.found("stuck_stage", 10.9) == []
    (found,) = past.found("stuck_stage", 11)
    assert (found.severity, since(found)) == (Severity.PAGE, 11)
    assert "the binder" in found.text


def test_a_stage_without_enough_runs_is_measured_against_a_limit_of_its_own() -> None:
    past = Past()
    past.baselines = {"gates": Baseline(10, 19)}
    gang = past.gang("a")
    past.says(gang, "SCHEDULING_GATE", 0)
    past.steps(gang, created=0, gated=0)
    assert past.found("stuck_stage", 29) == []
    (found,) = past.found("stuck_stage", 30)
    assert found.severity is None
    assert "Grove operator" in found.text


def test_waiting_for_capacity_or_for_a_base_gang_is_no_stuck_stage() -> None:
    past = Past()
    busy, base = past.gang("a"), past.gang("b")
    past.says(busy, "GPUS_BUSY", 0)
    past.steps(busy, created=0)
    past.says(base, "WAITS_FOR_BASE_GANG", 0)
    past.steps(base, created=0, gated=0)
    assert past.found("stuck_stage", 10_000) == []


def test_codes_that_prove_a_standstill_need_no_measure() -> None:
    for code, words in (("BIND_FAILING", "the binder"), ("SCHEDULER_DOWN", "the scheduler")):
        past = Past()
        past.says(past.gang("a"), code, 5)
        (found,) = past.found("stuck_stage", 5)
        assert (found.severity, since(found)) == (Severity.PAGE, 5)
        assert found.text.startswith("Nothing moves in the stage")
        assert words in found.text


def test_usual_times_come_from_the_runs_of_the_days_before() -> None:
    past = Past()
    for n in range(100):
        gang = past.gang(f"old-{n}")
        past.steps(gang, created=-2000, decided=-1990, bound=-1990 + (n + 1) / 60, ready=-1900)
    past.steps(past.gang("today"), created=0, decided=1, bound=1000)
    facts = past.facts(60)
    assert (facts.baselines["bind"].seconds, facts.baselines["bind"].runs) == (100, 100)
    assert facts.baselines["decision"].seconds == 600


# 5 Silent wait


def test_gangs_without_a_word_from_the_scheduler_are_one_finding() -> None:
    past = Past()
    for name, code in (("a", "GPUS_BUSY"), ("b", "FITS_NOW"), ("c", "SCHEDULING_GATE")):
        gang = past.gang(name)
        past.says(gang, code, 0)
        past.sees(Topic.STANCE, f"uid-{gang}", "silent", 1)
    past.says(past.gang("d"), "GPUS_BUSY", 0)
    (found,) = past.found("silent_wait", 10)
    assert (found.gangs, since(found), found.who) == ((1, 2), 1, "platform")
    assert "is not known to be down" in found.text


def test_silence_counts_from_when_the_gates_were_off() -> None:
    past = Past()
    gang = past.gang("a")
    past.says(gang, "SCHEDULING_GATE", 0, 8)
    past.says(gang, "GPUS_BUSY", 8)
    past.sees(Topic.STANCE, "uid-1", "silent", 1)
    (found,) = past.found("silent_wait", 10)
    assert since(found) == 8


def test_a_scheduler_that_is_down_is_named() -> None:
    past = Past()
    past.says(past.gang("a"), "GPUS_BUSY", 0)
    past.sees(Topic.STANCE, "uid-1", "silent", 0)
    past.state("Deployment", "kai/kai-scheduler-default", "down", 2)
    (found,) = past.found("silent_wait", 3)
    assert found.subject == "Deployment/kai/kai-scheduler-default"
    past.state("Deployment", "kai/kai-scheduler-default", "ready", 4)
    (found,) = past.found("silent_wait", 5)
    assert found.subject == ""


# 6 Flapping


def test_four_returns_to_a_reason_within_half_an_hour_are_flapping() -> None:
    past = Past()
    gang = past.gang("a")
    for n in range(6):
        past.says(gang, ("GPUS_BUSY", "QUEUE_LIMIT")[n % 2], n * 5, (n + 1) * 5 if n < 5 else None)
    assert past.found("flapping", 24) == []
    (found,) = past.found("flapping", 25)
    assert (found.signature, since(found)) == ("FLAPPING||team-a/a", 25)
    assert past.found("flapping", 36) == []


def test_progress_through_many_reasons_is_no_flapping() -> None:
    past = Past()
    gang = past.gang("a")
    for n, code in enumerate(["MEMBERS_MISSING", "SCHEDULING_GATE", "QUEUE_LIMIT", "GPUS_BUSY", "FITS_NOW", "RUNNING"]):
        past.says(gang, code, n, n + 1)
    past.says(gang, "COMPLETED", 6)
    assert past.found("flapping", 7) == []


def test_three_evictions_of_one_lineage_within_two_hours_are_flapping() -> None:
    past = Past()
    old, new = past.gang("a-1", lineage="x"), past.gang("a-2", lineage="x")
    past.steps(old, created=0, evictions=[10, 40], ended=50)
    past.steps(new, created=50, evictions=[70])
    past.says(new, "GPUS_BUSY", 71)
    assert past.found("flapping", 69.9) == []
    (found,) = past.found("flapping", 75)
    assert (found.gangs, since(found)) == ((new,), 70)
    assert past.found("flapping", 131) == []


def test_a_binding_loop_is_flapping() -> None:
    past = Past()
    past.says(past.gang("a"), "BIND_LOOP", 3)
    (found,) = past.found("flapping", 4)
    assert since(found) == 3


# 7 Fragmentation


def test_free_gpus_in_the_wrong_places_are_fragmentation() -> None:
    past = Past()
    past.capacity(-10, free=20)
    past.capacity(5, free=52)
    first, second = past.gang("old", gpus=48), past.gang("young", gpus=90)
    past.says(first, "DOMAIN_BUSY", 0)
    past.says(second, "DOMAIN_BUSY", 1)
    assert past.found("fragmentation", 4) == []
    (found,) = past.found("fragmentation", 6)
    assert (found.gangs, since(found)) == ((first, second), 5)
    assert "52 GPUs are free and team-a/old asks for 48" in found.text


def test_unknown_capacity_is_no_fragmentation() -> None:
    past = Past()
    past.says(past.gang("a"), "FRAGMENTED", 0)
    assert past.found("fragmentation", 5) == []


# 8 Starvation


def starving(past: Past, *, quota: float | None = 16, held: float | None = 4, sibling: float = 12) -> None:
    past.queue("poor", parent="root", quota=quota)
    past.queue("rich", parent="root", quota=8)
    past.capacity(0, queues={"poor": held, "rich": sibling})


def test_a_queue_below_what_it_deserves_beside_one_above_starves() -> None:
    past = Past()
    starving(past)
    gang = past.gang("a", queue="poor")
    past.says(gang, "FAIR_SHARE_REACHED", 2)
    (found,) = past.found("starvation", 30)
    assert (found.signature, since(found), found.gangs) == ("STARVATION||Queue/poor", 2, (gang,))
    assert found.text == "poor holds 4 of the 16 GPUs it deserves; rich holds 12 and deserves 8."


@pytest.mark.parametrize(
    "amounts",
    [{"held": 16}, {"held": None}, {"quota": -1}, {"quota": None}, {"sibling": 8}],
    ids=["has its share", "share unknown", "no promise", "nothing deserved", "nobody borrows"],
)
def test_a_queue_without_a_claim_or_without_a_borrower_does_not_starve(amounts: dict[str, float | None]) -> None:
    past = Past()
    starving(past, **amounts)  # type: ignore[arg-type]
    past.says(past.gang("a", queue="poor"), "FAIR_SHARE_REACHED", 2)
    assert past.found("starvation", 30) == []


def test_work_that_the_scheduler_does_not_have_is_no_demand() -> None:
    past = Past()
    starving(past)
    past.says(past.gang("a", queue="poor"), "SCHEDULING_GATE", 2)
    assert past.found("starvation", 30) == []


# 9 Capacity lost


def test_more_than_a_twentieth_of_the_gpus_gone_is_a_loss_with_the_gangs_that_no_longer_fit() -> None:
    past = Past()
    past.capacity(0, gpus=100)
    past.capacity(5, gpus=100, lost=6)
    old, new = past.gang("old"), past.gang("new")
    past.says(old, "CLUSTER_TOO_SMALL", 1)
    past.says(new, "CLUSTER_TOO_SMALL", 6)
    (found,) = past.found("capacity_loss", 10)
    assert (found.signature, since(found), found.gangs) == ("CAPACITY_LOSS||", 5, (new,))
    assert found.title == "6 GPUs of east went away"
    assert found.text == "94 of 100 GPUs can be used. 1 gang can never fit since then."


def test_a_small_loss_and_an_old_one_are_none() -> None:
    past = Past()
    past.capacity(0, gpus=100)
    past.capacity(5, gpus=100, lost=5)
    assert past.found("capacity_loss", 10) == []
    past.capacity(15, gpus=50)
    assert len(past.found("capacity_loss", 20)) == 1
    assert past.found("capacity_loss", 15 + 24 * 60 + 1) == []


def test_a_domain_without_any_usable_gpu_is_a_loss() -> None:
    past = Past()
    past.capacity(0, gpus=1000, domains={"t|a": [8, 8, 0], "t|b": [8, 0, 0]})
    past.capacity(5, gpus=1000, domains={"t|a": [8, 0, 8]})
    found = past.found("capacity_loss", 6)
    assert [item.title for item in found] == ["Domain a has no usable GPU left", "Domain b has no usable GPU left"]


def test_domains_with_the_longest_paths_stay_apart() -> None:
    past = Past()
    paths = [f"t|{'x' * 1000}/{name}" for name in "ab"]
    past.capacity(0, gpus=1000, domains={path: [8, 8, 0] for path in paths})
    past.capacity(5, gpus=1000)
    signatures = {item.signature for item in past.found("capacity_loss", 6)}
    assert len(signatures) == 2
    assert all(len(signature) <= 700 for signature in signatures)


# 10 Limit wall


def test_a_queue_at_its_limit_for_most_of_the_day_with_gpus_free_hits_a_wall() -> None:
    past = Past()
    past.queue("q", limit=8)
    past.capacity(-30 * 60, free=4, queues={"q": 0})
    past.capacity(-15 * 60, free=4, queues={"q": 8})
    (found,) = past.found("limit_wall", 0)
    assert (found.subject, since(found)) == ("Queue/q", -15 * 60)
    assert "62%" in found.text or "63%" in found.text
    assert past.found("limit_wall", -60) == []


def test_a_full_cluster_is_no_wall() -> None:
    past = Past()
    past.queue("q", limit=8)
    past.capacity(-30 * 60, free=0, queues={"q": 8})
    assert past.found("limit_wall", 0) == []


# 11 Disagreement


def test_more_than_one_verdict_of_a_hundred_against_the_scheduler_is_a_disagreement() -> None:
    past = Past()
    for n in range(150):
        past.says(past.gang(f"g{n}"), "RUNNING" if n > 2 else "GPUS_BUSY", 0)
    past.sees(Topic.STANCE, "uid-1", "disagree", 1)
    assert past.found("disagreement", 5) == []
    past.sees(Topic.STANCE, "uid-2", "disagree", 3)
    (found,) = past.found("disagreement", 5)
    assert (found.gangs, since(found)) == ((1, 2), 3)
    assert found.title == "2 verdicts of 150 contradict the scheduler"


# 12 Blind


def test_what_cannot_be_read_is_told_and_only_what_verdicts_need_silences() -> None:
    past = Past()
    past.sees(Topic.BLIND, "poll", "No reading for more than 5 polls: unreachable", 0)
    past.sees(Topic.BLIND, "kind:Pod", "Pod is not read: 403", 1)
    past.sees(Topic.BLIND, "optional:Event", "Event is not read: 403", 1)
    past.sees(Topic.BLIND, "skew", "Its clock differs", 1, 4)
    found = {item.subject: item for item in past.found("blind", 5)}
    assert set(found) == {"poll", "kind:Pod", "optional:Event"}
    assert "Rules 1 to 10" in found["poll"].text
    assert found["poll"].title == "east cannot be read"
    assert found["optional:Event"].severity is Severity.TICKET
    assert "No rule is silenced" in found["optional:Event"].text


# 13 Stale condition


def test_a_gang_that_runs_against_its_own_status_is_told() -> None:
    past = Past()
    past.says(past.gang("a"), "STATUS_STALE", 0, state="tells")
    (found,) = past.found("stale_condition", 1)
    assert found.title == "1 gang with something to tell"


def test_a_queue_is_read_as_it_was_written_whatever_its_parent_is_called() -> None:
    for parent in ("", "root", "a|b||c"):
        for number in (None, -1.0, 0.5, 64.0):
            value = queue_value(parent=parent, quota=number, limit=number)
            found = queue_of(Seen("queue", "q", value, at(0), None))
            assert (found.parent, found.quota, found.limit) == (parent, number, number)


# Scope


def test_a_scope_takes_gangs_by_namespace_and_queue_and_clusters_by_name() -> None:
    past = Past()
    for name, queue in (("team-a/a", "q"), ("team-b/b", "q"), ("team-a/c", "r")):
        past.says(past.gang(name, queue=queue), "NODE_TOO_SMALL", 0)
    facts = past.facts(1)

    def found(**scope: frozenset[str]) -> list[int]:
        setting = RuleSetting("never_fits", 0, 0, scope=Scope(**scope))
        return sorted(gang for item in setting.find(facts) for gang in item.gangs)

    assert found() == [1, 2, 3]
    assert found(namespaces=frozenset({"team-a"})) == [1, 3]
    assert found(namespaces=frozenset({"team-a"}), queues=frozenset({"q"})) == [1]
    assert found(clusters=frozenset({"west"})) == []


def test_a_scope_of_queues_takes_findings_about_queues() -> None:
    past = Past()
    for name in ("q", "r"):
        past.queue(name, limit=8)
    past.capacity(-30 * 60, free=4, queues={"q": 8, "r": 8})
    setting = RuleSetting("limit_wall", 0, 0, scope=Scope(queues=frozenset({"r"})))
    assert [item.queue for item in setting.find(past.facts(0))] == ["r"]
