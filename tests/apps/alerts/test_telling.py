"""Who is told what and when: routes, mutes, updates, the end, acknowledgements, escalation, names that stay inside."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.models import AuditEntry, User
from apps.alerts.models import Alert, AlertRule, Mute, Route
from apps.alerts.services.acknowledging import alert_acknowledge
from apps.alerts.services.muting import MuteInput, mute_create, mute_end
from apps.delivery.messages import Message, decode
from apps.delivery.models import Channel, Delivery
from apps.errors import ApplicationError
from apps.inventory.models import Queue
from tests.apps.alerts.conftest import Store, told

pytestmark = pytest.mark.django_db
Only = Callable[..., AlertRule]


def messages(channel: Channel) -> list[Message]:
    return [decode(row.message) for row in Delivery.objects.filter(channel=channel).order_by("pk")]


def kinds(channel: Channel) -> list[str]:
    return [kind for kind, _ in told(channel)]


@pytest.fixture
def firing(store: Store, only: Only, channel: Channel) -> Alert:
    """Return an alert that fires since minute 1."""
    only("never_fits", keep_seconds=0)
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    store.look(1)
    return Alert.objects.get()


def mute(store: Store, alice: User, kind: str, value: str, minutes: float = 60) -> Mute:
    ends = store.now + timedelta(minutes=minutes)
    wanted = MuteInput(kind, value, store.cluster, "maintenance", ends)
    return mute_create(values=wanted, actor=alice, now=store.now)


# Routes


@pytest.mark.parametrize(
    "limits, leads",
    [
        ({}, True),
        ({"severities": ["ticket"]}, True),
        ({"severities": ["page"]}, False),
        ({"rules": ["never_fits"]}, True),
        ({"rules": ["blind"]}, False),
        ({"clusters": ["east"]}, True),
        ({"clusters": ["west"]}, False),
        ({"namespaces": ["team-a", "x"]}, True),
        ({"namespaces": ["team-b"]}, False),
        ({"queues": ["q"]}, True),
        ({"queues": ["r"]}, False),
        ({"severities": ["ticket"], "queues": ["r"]}, False),
        ({"is_enabled": False}, False),
    ],
)
def test_a_route_takes_alerts_that_meet_all_of_it(store: Store, channel: Channel, limits: Any, leads: bool) -> None:
    Route.objects.update(**limits)
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    store.look(1)
    assert bool(told(channel)) is leads


def test_two_routes_to_one_channel_tell_it_once(store: Store, channel: Channel) -> None:
    Route.objects.create(name="again", channel=channel)
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    store.look(1)
    assert kinds(channel) == ["alert"]


def test_a_route_that_is_made_later_is_told_of_what_fires(store: Store, firing: Alert) -> None:
    late = Channel.objects.create(name="late", kind="webhook", host="late.example")
    Route.objects.create(name="late", channel=late)
    store.look(2)
    store.look(3)
    assert kinds(late) == ["alert"]


def test_without_a_route_nobody_is_told_and_nothing_breaks(store: Store) -> None:
    gang = store.gang("a")
    store.says(gang, "NODE_TOO_SMALL")
    store.look(1)
    store.says(gang, "RUNNING")
    store.look(20)
    store.look(25)
    assert [alert.state for alert in store.alerts()] == ["resolved"]
    assert not Delivery.objects.exists()


# Names that stay inside


def test_a_channel_of_some_namespaces_reads_no_name_of_others(store: Store, only: Only, channel: Channel) -> None:
    only("never_fits")
    Channel.objects.filter(pk=channel.pk).update(namespaces=["team-a"])
    store.says(store.gang("team-a/mine"), "NODE_TOO_SMALL", sentence="Held by team-b/secret and team-a/mine.")
    store.minute = 0.5
    store.says(store.gang("team-b/secret"), "NODE_TOO_SMALL")
    store.look(1)
    (message,) = messages(channel)
    text = Delivery.objects.get().message
    assert "secret" not in text
    assert message.text.startswith("Held by something in another namespace and team-a/mine.")
    assert [line.name for line in message.lines] == ["team-a/mine", "1 gang of another namespace"]
    assert message.title == "2 gangs wait for 16 GPUs"


def test_a_channel_is_not_told_of_what_is_only_about_others(store: Store, only: Only, channel: Channel) -> None:
    only("never_fits")
    Channel.objects.filter(pk=channel.pk).update(namespaces=["team-z"])
    store.says(store.gang("team-b/secret"), "NODE_TOO_SMALL")
    store.look(1)
    assert told(channel) == []


def test_a_channel_of_another_cluster_is_told_nothing(store: Store, channel: Channel) -> None:
    Channel.objects.filter(pk=channel.pk).update(clusters=["west"])
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    store.look(1)
    assert told(channel) == []


def test_a_flapping_gang_of_another_namespace_is_not_named_in_title_or_links(
    store: Store, only: Only, channel: Channel
) -> None:
    only("flapping")
    Channel.objects.filter(pk=channel.pk).update(namespaces=["team-a"])
    store.says(store.gang("team-b/secret"), "BIND_LOOP")
    store.look(1)
    assert told(channel) == []


# Updates and the end


def test_a_material_change_is_an_update_at_most_every_quarter_of_an_hour(
    store: Store, firing: Alert, channel: Channel
) -> None:
    for n in range(3):
        store.minute = 2 + n
        store.says(store.gang(f"more-{n}"), "NODE_TOO_SMALL")
        store.look()
    assert kinds(channel) == ["alert"]
    store.look(16)
    store.look(17)
    assert kinds(channel) == ["alert", "update"]
    update = messages(channel)[1]
    assert update.title == "12:16, 4 gangs wait for 32 GPUs"
    assert update.text == "1 gang before, 4 now."
    assert Delivery.objects.order_by("pk")[1].thread == firing.thread


def test_a_gang_that_started_is_told_while_others_wait(store: Store, firing: Alert, channel: Channel) -> None:
    second = store.gang("b")
    store.says(second, "NODE_TOO_SMALL")
    store.look(20)
    store.minute = 30
    store.says(second, "RUNNING")
    store.look(40)
    assert messages(channel)[-1].text == "team-a/b started. 2 gangs before, 1 now."


def test_one_of_forty_is_no_material_change(store: Store, only: Only, channel: Channel) -> None:
    only("never_fits")
    for n in range(8):
        store.says(store.gang(f"g{n}"), "NODE_TOO_SMALL")
    store.look(1)
    store.says(store.gang("one-more"), "NODE_TOO_SMALL")
    store.look(60)
    assert kinds(channel) == ["alert"]


def test_a_higher_severity_is_told_at_once_and_reaches_who_takes_pages(
    store: Store, firing: Alert, channel: Channel
) -> None:
    pager = Channel.objects.create(name="pager", kind="webhook", host="pager.example")
    Route.objects.create(name="pages", channel=pager, severities=["page"])
    store.look(2)
    assert told(pager) == []
    AlertRule.objects.filter(key="never_fits").update(severity="page")
    store.look(3)
    assert kinds(channel) == ["alert", "update"]
    assert messages(channel)[1].text == "Severity is now page."
    assert kinds(pager) == ["alert"]


def test_the_end_is_told_in_the_thread_with_what_ended_it(store: Store, firing: Alert, channel: Channel) -> None:
    Queue.objects.create(cluster=store.cluster, name="q")
    gang = firing.members.get().gang
    store.minute = 65
    store.says(gang, "RUNNING")
    store.look()
    message = messages(channel)[1]
    assert (kinds(channel)[1], message.title) == ("resolved", "Resolved after 64 min.")
    assert message.text == "team-a/a started."
    assert Delivery.objects.order_by("pk")[1].thread == firing.thread


# Mutes


@pytest.mark.parametrize(
    "what",
    [("signature", "NO_FIT|NODE_TOO_SMALL|Node/all"), ("gang", "team-a/a"), ("queue", "q"), ("cluster", "")],
)
def test_what_is_muted_fires_is_shown_and_is_told_when_the_mute_ends(
    store: Store, only: Only, channel: Channel, alice: User, what: tuple[str, str]
) -> None:
    only("never_fits")
    mute(store, alice, *what)
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    store.look(1)
    (alert,) = store.alerts()
    assert (alert.state, alert.is_muted, told(channel)) == ("firing", True, [])
    store.look(59)
    assert told(channel) == []
    store.look(60)
    assert Alert.objects.get().is_muted is False
    assert kinds(channel) == ["alert"]


@pytest.mark.parametrize("what", [("signature", "x"), ("gang", "team-a/b"), ("queue", "r")])
def test_a_mute_of_something_else_mutes_nothing(
    store: Store, only: Only, channel: Channel, alice: User, what: tuple[str, str]
) -> None:
    only("never_fits")
    mute(store, alice, *what)
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    store.look(1)
    assert kinds(channel) == ["alert"]


def test_an_alert_is_muted_only_if_all_its_gangs_are(store: Store, only: Only, channel: Channel, alice: User) -> None:
    only("never_fits")
    mute(store, alice, "gang", "team-a/a")
    for name in ("a", "b"):
        store.says(store.gang(name, queue=name), "NODE_TOO_SMALL")
    store.look(1)
    assert kinds(channel) == ["alert"]
    mute(store, alice, "queue", "b")
    store.look(2)
    assert Alert.objects.get().is_muted


def test_a_mute_of_one_cluster_leaves_others_alone(store: Store, channel: Channel, alice: User) -> None:
    west = Store("west")
    mute(store, alice, "cluster", "")
    for place in (store, west):
        place.says(place.gang("a"), "NODE_TOO_SMALL")
        place.look(1)
    assert [alert.is_muted for alert in (*store.alerts(), *west.alerts())] == [True, False]


def test_a_mute_that_is_ended_by_hand_lets_go_at_once(store: Store, channel: Channel, alice: User) -> None:
    found = mute(store, alice, "cluster", "")
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    store.look(1)
    mute_end(mute=found, actor=alice, now=store.now)
    mute_end(mute=found, actor=alice, now=store.now)
    store.look(2)
    assert kinds(channel) == ["alert"]
    assert [entry.action for entry in AuditEntry.objects.all()] == ["mute.end", "mute.create"]


def test_the_end_of_what_was_told_is_told_though_it_is_muted(
    store: Store, firing: Alert, channel: Channel, alice: User
) -> None:
    mute(store, alice, "cluster", "")
    store.says(firing.members.get().gang, "RUNNING")
    store.look(2)
    assert kinds(channel) == ["alert", "resolved"]


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "everything"},
        {"reason": "  "},
        {"reason": "x" * 501},
        {"value": ""},
        {"kind": "cluster", "value": "x"},
        {"kind": "cluster", "value": "", "cluster": None},
        {"minutes": 0},
        {"minutes": 31 * 24 * 60},
    ],
)
def test_a_mute_without_reason_end_or_object_is_refused(store: Store, alice: User, changes: dict[str, Any]) -> None:
    minutes = changes.pop("minutes", 60)
    fields: dict[str, Any] = {"kind": "queue", "value": "q", "cluster": store.cluster, "reason": "why"} | changes
    wanted = MuteInput(**fields, ends_at=store.now + timedelta(minutes=minutes))
    with pytest.raises(ApplicationError):
        mute_create(values=wanted, actor=alice, now=store.now)
    assert not Mute.objects.exists()


# Acknowledging and escalating


@pytest.fixture
def second(channel: Channel) -> Channel:
    """Return a channel that is told of what nobody acknowledges in a quarter of an hour."""
    second = Channel.objects.create(name="boss", kind="webhook", host="boss.example")
    Route.objects.update(escalate_to=second, escalate_after_minutes=15)
    return second


def test_what_nobody_acknowledges_goes_to_the_second_channel_once(
    store: Store, firing: Alert, second: Channel, channel: Channel
) -> None:
    store.look(15.9)
    assert told(second) == []
    store.look(16)
    store.look(40)
    assert kinds(second) == ["alert"]
    assert messages(second)[0].text.startswith("Nobody has acknowledged this for 15 min; ops was told first.")
    store.says(firing.members.get().gang, "RUNNING")
    store.look(41)
    assert (kinds(second), kinds(channel)) == (["alert", "resolved"], ["alert", "resolved"])


def test_an_acknowledged_alert_is_not_escalated_and_says_who(
    store: Store, firing: Alert, second: Channel, channel: Channel, alice: User
) -> None:
    store.minute = 5
    alert_acknowledge(alert=firing, actor=alice, note="draining <b1>", now=store.now)
    store.look(60)
    assert told(second) == []
    message = messages(channel)[1]
    assert (message.title, message.text) == ("Acknowledged by alice.", "draining <b1>")
    assert AuditEntry.objects.get().action == "alert.acknowledge"


def test_the_first_to_acknowledge_counts(firing: Alert, alice: User, bob: User, store: Store) -> None:
    alert_acknowledge(alert=firing, actor=alice, note="", now=store.now)
    with pytest.raises(ApplicationError):
        alert_acknowledge(alert=firing, actor=bob, note="", now=store.now)
    assert Alert.objects.get().acknowledged_name == "alice"


def test_escalation_counts_from_when_it_was_told_not_from_when_it_was_muted(
    store: Store, only: Only, channel: Channel, second: Channel, alice: User
) -> None:
    only("never_fits")
    mute(store, alice, "cluster", "", minutes=60)
    store.says(store.gang("a"), "NODE_TOO_SMALL")
    for minute in (1, 60, 74):
        store.look(minute)
    assert told(second) == []
    store.look(75)
    assert kinds(second) == ["alert"]


def test_a_clock_that_goes_back_does_not_escalate_twice(store: Store, firing: Alert, second: Channel) -> None:
    store.look(20)
    store.look(2)
    store.look(30)
    assert kinds(second) == ["alert"]
