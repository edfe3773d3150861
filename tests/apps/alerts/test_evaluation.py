"""Live evaluation over a real store: one alert for each cause, from its beginning to its end, and what it survives."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from apps.alerts.models import Alert, AlertClock, AlertGang, AlertRule, Observation
from apps.alerts.services import evaluation
from apps.alerts.services.evaluation import alerts_evaluate, cluster_abandon
from apps.clusters.models import Cluster, KindFreshness
from apps.delivery.models import Channel, Delivery
from apps.diagnosis.models import Snapshot
from apps.inventory.models import Queue, StateChange
from apps.workloads.models import Attempt, Gang
from tests.apps.alerts.conftest import Store, told

pytestmark = pytest.mark.django_db
Only = Callable[..., AlertRule]


def states(store: Store) -> list[tuple[str, str]]:
    return [(alert.rule.key, alert.state) for alert in store.alerts()]


def test_an_alert_waits_fires_is_kept_and_ends(store: Store, only: Only) -> None:
    only("head_fits", for_seconds=120, keep_seconds=300)
    gang = store.gang("a")
    store.says(gang, "PLACEABLE_NOT_PLACED")
    store.look(1)
    assert states(store) == [("head_fits", "pending")]
    store.look(2)
    (alert,) = store.alerts()
    assert (alert.state, alert.fired_at, alert.gang_count, alert.gpus) == ("firing", store.now, 1, 8)
    store.minute = 3
    store.says(gang, "RUNNING")
    store.look(4)
    assert states(store) == [("head_fits", "firing")]
    store.look(9)
    (alert,) = store.alerts()
    assert (alert.state, alert.resolved_at) == ("resolved", store.now)
    assert alert.resolution.startswith("team-a/a started")


def test_what_goes_before_its_time_leaves_nothing(store: Store, only: Only) -> None:
    only("head_fits")
    gang = store.gang("a")
    store.says(gang, "PLACEABLE_NOT_PLACED")
    store.look(1)
    store.says(gang, "RUNNING")
    store.look(1.5)
    assert store.alerts() == []


def test_forty_gangs_of_one_cause_are_one_alert_and_one_message(store: Store, only: Only, channel: Channel) -> None:
    only("never_fits")
    for n in range(40):
        store.says(store.gang(f"g{n}"), "DOMAIN_TOO_SMALL", subject="Topology/t")
    store.says(store.gang("other"), "DOMAIN_TOO_SMALL", subject="Topology/u")
    store.look(1)
    assert [(alert.gang_count, alert.members.count()) for alert in store.alerts()] == [(40, 40), (1, 1)]
    assert Delivery.objects.count() == 2


def test_looking_again_changes_nothing(store: Store, only: Only, channel: Channel) -> None:
    only("never_fits")
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    store.look(1)
    before = list(Alert.objects.values())
    for minute in (2, 3, 3):
        store.look(minute)
    assert list(Alert.objects.values()) == before
    assert Delivery.objects.count() == 1


def test_a_switched_off_rule_ends_its_alerts_and_says_so(store: Store, only: Only, channel: Channel) -> None:
    only("never_fits")
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    store.look(1)
    only("head_fits")
    store.look(2)
    (alert,) = store.alerts()
    assert (alert.state, alert.resolution) == ("resolved", evaluation.SWITCHED_OFF)
    assert [kind for kind, _ in told(channel)] == ["alert", "resolved"]


def test_a_scope_keeps_a_rule_away_from_other_clusters(store: Store, only: Only) -> None:
    only("never_fits", clusters=["west"])
    west = Store("west")
    for place in (store, west):
        place.says(place.gang("a"), "NODE_TOO_SMALL")
        place.look(1)
    assert [alert.cluster.name for alert in Alert.objects.all()] == ["west"]


def test_two_rules_about_one_cause_share_a_thread_and_tell_it_once(store: Store, channel: Channel) -> None:
    AlertRule.objects.create(
        key="custom-all", title="Everything", condition={}, severity="ticket", for_seconds=0, keep_seconds=0
    )
    gang = store.gang("a")
    store.says(gang, "NODE_TOO_SMALL")
    store.look(1)
    assert states(store) == [("never_fits", "firing"), ("custom-all", "firing")]
    assert len({alert.thread for alert in store.alerts()}) == 1
    assert [kind for kind, _ in told(channel)] == ["alert"]
    store.minute = 2
    store.says(gang, "RUNNING")
    store.look(3)
    assert states(store) == [("never_fits", "firing"), ("custom-all", "resolved")]
    assert [kind for kind, _ in told(channel)] == ["alert"]
    store.look(8)
    assert [kind for kind, _ in told(channel)] == ["alert", "resolved"]


def test_a_cause_that_comes_again_is_a_new_alert_with_a_thread_of_its_own(
    store: Store, only: Only, channel: Channel
) -> None:
    only("never_fits", keep_seconds=0)
    gang = store.gang("a")
    for minute in (1, 3):
        store.minute = minute
        store.says(gang, "NODE_TOO_SMALL")
        store.look()
        store.minute = minute + 1
        store.says(gang, "RUNNING")
        store.look()
    assert [alert.state for alert in store.alerts()] == ["resolved", "resolved"]
    assert len({alert.thread for alert in store.alerts()}) == 2
    assert [kind for kind, _ in told(channel)] == ["alert", "resolved", "alert", "resolved"]


def test_a_gang_that_flaps_is_one_alert_until_it_was_calm_for_a_quarter_of_an_hour(store: Store, only: Only) -> None:
    only("flapping")
    gang = store.gang("a")
    for minute in range(0, 30, 5):
        store.minute = minute
        store.says(gang, ("GPUS_BUSY", "QUEUE_LIMIT")[minute // 5 % 2])
        store.look()
    assert [alert.fired_at for alert in store.alerts()] == [store.now]
    for minute in range(30, 51):
        store.look(minute)
    assert states(store) == [("flapping", "resolved")]


# What is kept because nobody else does


def test_stances_queues_and_blindness_are_kept_with_their_times(store: Store) -> None:
    queue = Queue.objects.create(cluster=store.cluster, name="q", gpu_quota=8, gpu_limit=-1)
    gang = store.gang("a")
    silent = {"text": None, "at": None, "match": "silent"}
    store.says(gang, "GPUS_BUSY", scheduler=silent)
    store.look(1)
    store.look(2)
    store.minute = 3
    store.says(gang, "GPUS_BUSY")
    Queue.objects.filter(pk=queue.pk).update(gpu_limit=16)
    store.look()
    rows = Observation.objects.order_by("opened_at", "topic")
    assert [(row.topic, row.subject, row.value, row.closed_at is None) for row in rows] == [
        ("queue", "q", "|8|-1", False),
        ("stance", gang.uid, "silent", False),
        ("queue", "q", "|8|16", True),
    ]


def test_a_silent_scheduler_is_told_after_five_minutes(store: Store, only: Only) -> None:
    only("silent_wait")
    store.says(store.gang("a"), "GPUS_BUSY", scheduler={"text": None, "at": None, "match": "silent"})
    store.look(0)
    store.look(4.9)
    assert states(store) == [("silent_wait", "pending")]
    store.look(5)
    assert states(store) == [("silent_wait", "firing")]


# Blind


def test_a_blind_cluster_pages_and_everything_else_keeps_still(store: Store, channel: Channel) -> None:
    first = store.gang("a")
    store.says(first, "NODE_TOO_SMALL")
    store.look(1)
    store.minute = 2
    store.says(store.gang("b"), "NODE_TOO_SMALL", subject="Node/b")
    store.says(first, "RUNNING")
    store.look(30, is_read=False)
    assert states(store) == [("never_fits", "firing"), ("blind", "firing")]
    assert AlertClock.objects.get().blind_since == store.now
    assert "Rules 1 to 10 and custom rules are silent" in Alert.objects.get(rule__key="blind").text
    store.look(31)
    assert AlertClock.objects.get().blind_since is None
    assert states(store) == [("never_fits", "firing"), ("blind", "firing"), ("never_fits", "firing")]
    store.look(40)
    assert states(store) == [("never_fits", "resolved"), ("blind", "resolved"), ("never_fits", "firing")]
    assert Alert.objects.get(rule__key="blind").resolution == "It is read and analysed again."


@pytest.mark.parametrize(
    "reason, required, was_read, subject",
    [
        ("403", False, False, "optional:X"),
        ("timed out", False, True, "optional:X"),
        ("not served: 404", False, False, ""),
        ("not served: 404", False, True, "optional:X"),
        ("not served: 404", True, False, "kind:X"),
    ],
)
def test_a_kind_that_is_not_served_is_a_fact_unless_it_is_needed_or_was_there(
    store: Store, reason: str, required: bool, was_read: bool, subject: str
) -> None:
    KindFreshness.objects.create(
        cluster=store.cluster, kind="X", reason=reason, is_required=required, checked_at=store.now,
        read_at=store.now if was_read else None,
    )  # fmt: skip
    store.look(1)
    assert [alert.subject for alert in store.alerts("blind")] == ([subject] if subject else [])


def test_a_kind_that_no_verdict_needs_silences_nothing(store: Store) -> None:
    KindFreshness.objects.create(cluster=store.cluster, kind="Event", reason="403", checked_at=store.now)
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    store.look(1)
    assert states(store) == [("never_fits", "firing"), ("blind", "firing")]
    assert Alert.objects.get(rule__key="blind").severity == "ticket"


@pytest.mark.parametrize("fault", ["kind", "analysis"])
def test_what_verdicts_rest_on_silences(store: Store, fault: str) -> None:
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    if fault == "kind":
        KindFreshness.objects.create(
            cluster=store.cluster, kind="Pod", is_required=True, reason="403", checked_at=store.now
        )
    else:
        moment = store.now + timedelta(seconds=30)
        Snapshot.objects.create(cluster=store.cluster, as_of=moment, engine="1", started_at=moment, outcome="failed")
    store.look(1)
    assert states(store) == [("blind", "firing")]


@pytest.mark.parametrize(
    "outcome, attempts, is_blind",
    [("running", 1, False), ("running", 2, True), ("failed", 1, True), ("superseded", 1, False), ("done", 3, False)],
)
def test_an_analysis_that_is_repeated_still_counts_as_failed(
    store: Store, outcome: str, attempts: int, is_blind: bool
) -> None:
    store.says(store.gang("a"), "RUNNING")
    moment = store.now + timedelta(seconds=30)
    Snapshot.objects.create(
        cluster=store.cluster, as_of=moment, engine="1", started_at=moment, outcome=outcome, attempts=attempts
    )
    store.look(1)
    assert [alert.subject for alert in store.alerts("blind")] == (["analysis"] if is_blind else [])


def test_a_clock_that_differs_is_told(store: Store) -> None:
    Cluster.objects.update(skew_seconds=-45.0)
    store.look(1)
    (alert,) = store.alerts()
    assert (alert.severity, "behind" in alert.text) == ("ticket", True)


def test_a_cluster_that_is_no_longer_read_ends_its_alerts(store: Store, channel: Channel) -> None:
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    store.look(1)
    store.minute = 2
    assert cluster_abandon(cluster=store.cluster, now=store.now) == 1
    assert cluster_abandon(cluster=store.cluster, now=store.now) == 0
    assert [alert.resolution for alert in store.alerts()] == [evaluation.NOT_READ_ANY_MORE]
    assert [kind for kind, _ in told(channel)] == ["alert", "resolved"]


# Endings


def test_the_end_says_who_let_go_what_was_raised_and_what_came_back(store: Store, only: Only) -> None:
    only("never_fits", keep_seconds=0)
    Queue.objects.create(cluster=store.cluster, name="q", gpu_limit=4)
    holder, gang = store.gang("team-b/holder"), store.gang("a")
    holders = [{"gang": "team-b/holder", "gpus": 4, "evictable": "yes"}]
    store.says(gang, "QUEUE_LIMIT", holders=holders)
    store.look(1)
    store.minute = 2
    store.gone(holder)
    Queue.objects.update(gpu_limit=16)
    StateChange.objects.create(
        cluster=store.cluster, kind="Node", subject="n7", at=store.now, state="ready", was="cordoned"
    )
    store.says(gang, "RUNNING")
    Attempt.objects.create(cluster=store.cluster, gang=gang, lineage="x", seen_at=store.now, bound_at=store.now)
    store.look(3)
    (alert,) = store.alerts()
    assert alert.resolution == (
        "team-a/a started at 12:02:00 UTC. Since it fired: team-b/holder let go of its GPUs; "
        "the limit of queue q went from 4 to 16; n7 came back."
    )


@pytest.mark.parametrize("then, words", [("GPUS_BUSY", "team-a/a is now NO_FIT GPUS_BUSY"), ("", "team-a/a is gone")])
def test_the_end_says_where_a_gang_is_that_did_not_start(store: Store, only: Only, then: str, words: str) -> None:
    only("never_fits", keep_seconds=0)
    gang = store.gang("a")
    store.says(gang, "NODE_TOO_SMALL")
    store.look(1)
    store.minute = 2
    if then:
        store.says(gang, then)
    else:
        store.gone(gang)
    store.look()
    (alert,) = store.alerts()
    assert alert.resolution.startswith(words)


# Two at once, killed, a clock that jumps


def test_of_two_looks_at_once_one_counts(store: Store, channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    load = evaluation.facts_now
    other: list[Any] = []

    def slow(**given: Any) -> Any:
        facts = load(**given)
        monkeypatch.setattr(evaluation, "facts_now", load)
        other.append(alerts_evaluate(cluster=store.cluster, now=store.now))
        return facts

    monkeypatch.setattr(evaluation, "facts_now", slow)
    assert store.look(1) is None
    assert other[0].fired == 1
    assert states(store) == [("never_fits", "firing")]
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize(
    "step", ["_apply", "_members_put", "alerts_tell", "_thread", "cluster_observe", "facts_now", "_take", "_describe"]
)
def test_a_look_that_is_killed_anywhere_leaves_all_or_nothing(
    store: Store, channel: Channel, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    class Killed(BaseException):
        pass

    real = getattr(evaluation, step)

    def die_after(*given: Any, **named: Any) -> Any:
        real(*given, **named)
        raise Killed

    store.says(store.gang("a"), "NODE_TOO_SMALL")
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, step, die_after)
        with pytest.raises(Killed):
            store.look(1)
    assert (Alert.objects.count(), AlertGang.objects.count(), Delivery.objects.count()) == (0, 0, 0)
    store.look(1.5)
    assert (Alert.objects.count(), AlertGang.objects.count(), Delivery.objects.count()) == (1, 1, 1)


def test_an_end_that_is_killed_is_told_by_the_next_look(
    store: Store, only: Only, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    only("never_fits", keep_seconds=0)
    gang = store.gang("a")
    store.says(gang, "NODE_TOO_SMALL")
    store.look(1)
    store.minute = 2
    store.says(gang, "RUNNING")

    def die(**given: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "alerts_tell", die)
        with pytest.raises(KeyboardInterrupt):
            store.look()
    assert states(store) == [("never_fits", "firing")]
    store.look(3)
    assert [kind for kind, _ in told(channel)] == ["alert", "resolved"]


def test_a_clock_that_goes_back_ends_nothing_and_tells_nothing_twice(store: Store, channel: Channel) -> None:
    store.minute = 600
    gang = store.gang("a")
    store.says(gang, "NODE_TOO_SMALL")
    store.look(601)
    for minute in (1, 2, 20):
        store.look(minute)
    assert states(store) == [("never_fits", "firing")]
    assert [kind for kind, _ in told(channel)] == ["alert"]
    assert Gang.objects.get().gone_at is None


def test_a_clock_that_leaps_forward_loses_nothing(store: Store, channel: Channel) -> None:
    gang = store.gang("a")
    store.says(gang, "PLACEABLE_NOT_PLACED")
    store.look(1)
    store.look(60 * 24 * 365)
    assert ("head_fits", "firing") in states(store)
    assert [kind for kind, _ in told(channel)] == ["alert"]
