"""The outbox: once per key, in order, held but never dropped, taken by one sender, and right when the clock is not."""

from __future__ import annotations

import threading
from datetime import datetime, time, timedelta
from itertools import count
from types import SimpleNamespace

import pytest
from celery import current_app
from django.db import connection, transaction
from kombu.exceptions import OperationalError

from apps.accounts.models import User
from apps.delivery import claims, sending, services, tasks, transport
from apps.delivery.carriers import carry
from apps.delivery.channels import channel_pause, channel_retry, channel_test
from apps.delivery.choices import ChannelKind, DeliveryKind, DeliveryState
from apps.delivery.messages import Message, Severity
from apps.delivery.models import Channel, Delivery
from apps.delivery.selectors import held_reason
from apps.delivery.services import deliveries_prune, delivery_resend, enqueue, send_due
from tests.apps.delivery.conftest import NOW, MakeChannel
from tests.apps.delivery.far_side import OK, FarSide, bot_says, cut, says

pytestmark = pytest.mark.django_db
DUE, SENT, STOPPED, CARRIED = DeliveryState.DUE, DeliveryState.SENT, DeliveryState.STOPPED, DeliveryState.CARRIED
YEAR = timedelta(days=365)


def put(
    channel: Channel,
    key: str,
    *,
    kind: DeliveryKind = DeliveryKind.ALERT,
    severity: Severity = Severity.TICKET,
    thread: str = "",
    now: datetime = NOW,
) -> Delivery:
    message = Message(title=f"title of {key}", severity=severity, short=f"short of {key}", cluster="fjord-1")
    return enqueue(channel=channel, kind=kind, key=key, message=message, thread=thread, now=now)


def states(channel: Channel) -> dict[str, str]:
    return dict(channel.deliveries.order_by("pk").values_list("key", "state"))


def test_the_same_key_is_one_duty(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel()
    assert put(channel, "a") == put(channel, "a", now=NOW + timedelta(hours=1))
    assert send_due(now=NOW) == 1
    assert put(channel, "a").state == SENT
    assert send_due(now=NOW) == 0
    assert len(side.requests) == 1


def test_keys_of_any_length_stay_apart(make_channel: MakeChannel) -> None:
    channel = make_channel()
    assert put(channel, "k" * 900 + "a") != put(channel, "k" * 900 + "b")
    assert put(channel, "k" * 900 + "a").key.startswith("kkk")


def test_a_change_that_is_undone_takes_its_message_along(make_channel: MakeChannel) -> None:
    channel = make_channel()

    def change() -> None:
        with transaction.atomic():
            put(channel, "a")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        change()
    assert not Delivery.objects.exists()


def test_messages_go_in_the_order_they_were_taken_on(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel()
    for key in "abc":
        put(channel, key)
    send_due(now=NOW)
    assert [request.content["text"].split()[-1] for request in side.requests] == ["a", "b", "c"]


def test_a_run_ends_at_the_first_failure_and_the_rest_is_not_tried(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel()
    side.will(says(500))
    put(channel, "a")
    put(channel, "b")
    send_due(now=NOW)
    assert len(side.requests) == 1


def test_a_message_that_fails_does_not_keep_the_others_back(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel()
    side.will(says(500), OK)
    put(channel, "a")
    put(channel, "b")
    send_due(now=NOW)
    assert send_due(now=NOW + timedelta(seconds=1)) == 1
    assert states(channel) == {"a": DUE, "b": SENT}


def test_a_channel_that_fails_does_not_keep_the_others_back(make_channel: MakeChannel, side: FarSide) -> None:
    put(make_channel(name="broken", url="http://127.0.0.1:1/"), "a")
    put(make_channel(name="sound"), "a")
    assert send_due(now=NOW) == 1


def test_a_stopped_channel_keeps_its_messages_until_an_admin_acts(
    make_channel: MakeChannel, side: FarSide, alice: User
) -> None:
    channel = make_channel()
    side.will(says(404, "no_service"), OK)
    for key in "ab":
        put(channel, key)
    send_due(now=NOW)
    assert states(channel) == {"a": STOPPED, "b": DUE}
    assert send_due(now=NOW + YEAR) == 0
    channel.refresh_from_db()
    assert channel.last_error == "answered 404: no_service"
    assert channel_retry(channel=channel, actor=alice) == 2
    assert send_due(now=NOW + timedelta(minutes=1)) == 2


def test_a_test_goes_through_everything_and_ends_a_stop(make_channel: MakeChannel, side: FarSide, alice: User) -> None:
    channel = make_channel(quiet_days=tuple(range(7)), quiet_from=time(0), quiet_to=time(0))
    Channel.objects.update(stopped_at=NOW, is_enabled=False, wait_since=NOW, wait_until=NOW + YEAR)
    put(channel, "a")
    channel_test(channel=channel, actor=alice, now=NOW)
    assert send_due(now=NOW) == 1
    assert "This is a test" in side.requests[0].body.decode()
    channel.refresh_from_db()
    assert (channel.stopped_at, channel.is_enabled, channel.last_success_at is not None) == (None, False, True)


def test_a_paused_channel_holds_and_goes_on_where_it_was(make_channel: MakeChannel, alice: User) -> None:
    channel = make_channel()
    channel_pause(channel=channel, is_paused=True, actor=alice)
    row = put(channel, "a")
    assert send_due(now=NOW) == 0
    row.channel.refresh_from_db()
    assert held_reason(row, now=NOW) == "the channel is paused"
    channel_pause(channel=channel, is_paused=False, actor=alice)
    assert send_due(now=NOW) == 1


def test_quiet_hours_hold_what_is_not_urgent_and_drop_nothing(make_channel: MakeChannel) -> None:
    channel = make_channel(quiet_days=(0,), quiet_from=time(8), quiet_to=time(10), quiet_zone="UTC")
    ticket, page = put(channel, "ticket"), put(channel, "page", severity=Severity.PAGE)
    assert send_due(now=NOW) == 1
    assert states(channel) == {"ticket": DUE, "page": SENT}
    assert held_reason(ticket, now=NOW) == "quiet hours until 10:00 UTC"
    assert held_reason(page, now=NOW) == ""
    assert send_due(now=NOW + timedelta(hours=1)) == 1


def test_quiet_hours_may_hold_pages_too(make_channel: MakeChannel) -> None:
    channel = make_channel(quiet_days=(0,), quiet_from=time(8), quiet_to=time(10), quiet_pages_pass=False)
    put(channel, "page", severity=Severity.PAGE)
    assert send_due(now=NOW) == 0
    assert send_due(now=NOW + timedelta(hours=1)) == 1


def test_a_follow_up_waits_for_its_first_message(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel()
    side.will(says(500), OK)
    put(channel, "first")
    put(channel, "next", kind=DeliveryKind.RESOLVED, thread="first")
    send_due(now=NOW)
    assert send_due(now=NOW + timedelta(seconds=1)) == 0
    assert send_due(now=NOW + timedelta(minutes=1)) == 2
    assert len(side.requests) == 3


def test_a_page_does_not_wait_for_a_first_message_that_quiet_hours_hold(make_channel: MakeChannel) -> None:
    channel = make_channel(quiet_days=(0,), quiet_from=time(8), quiet_to=time(10))
    put(channel, "first")
    put(channel, "worse", kind=DeliveryKind.UPDATE, thread="first", severity=Severity.PAGE)
    assert send_due(now=NOW) == 1
    assert states(channel) == {"first": DUE, "worse": SENT}


def test_an_incoming_webhook_names_the_first_message(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel()
    put(channel, "first")
    put(channel, "next", kind=DeliveryKind.RESOLVED, thread="first")
    send_due(now=NOW)
    text = side.requests[1].body.decode()
    assert "Follows the message of 30 Nov 09:00 UTC: fjord-1: title of first" in text
    assert "thread_ts" not in text


def test_a_bot_threads_and_tells_the_end_to_all(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel(ChannelKind.SLACK_BOT)
    side.will(bot_says(ts="17.5"), bot_says(ts="17.6"))
    put(channel, "first")
    put(channel, "next", kind=DeliveryKind.UPDATE, thread="first")
    put(channel, "end", kind=DeliveryKind.RESOLVED, thread="first")
    send_due(now=NOW)
    first, update, end = (request.content for request in side.requests)
    assert (first["channel"], "thread_ts" in first) == ("C012345", False)
    assert (update["thread_ts"], update["reply_broadcast"]) == ("17.5", False)
    assert (end["thread_ts"], end["reply_broadcast"]) == ("17.5", True)
    assert side.requests[0].path == "/api/chat.postMessage"
    assert side.requests[0].headers["authorization"] == "Bearer xoxb-1-secret-token"
    assert "Follows" not in side.requests[1].body.decode()


def test_five_alerts_are_five_messages_and_six_are_one(make_channel: MakeChannel, side: FarSide) -> None:
    five, six = make_channel(name="five"), make_channel(name="six")
    for at in range(6):
        put(six, f"k{at}")
        if at < 5:
            put(five, f"k{at}")
    assert send_due(now=NOW) == 6
    assert set(states(five).values()) == {SENT}
    digest = six.deliveries.get(kind=DeliveryKind.DIGEST)
    assert six.deliveries.filter(state=CARRIED, carried_by=digest).count() == 6
    content = side.requests[-1].content
    assert content["blocks"][0]["text"]["text"] == "fjord-1: 6 new causes in 10 minutes"
    assert all(f"short of k{at}" in content["blocks"][1]["text"]["text"] for at in range(6))


def test_a_stream_of_alerts_becomes_digests_and_each_alert_is_told_once(
    make_channel: MakeChannel, side: FarSide
) -> None:
    channel = make_channel()
    for minute in range(40):
        moment = NOW + timedelta(minutes=minute)
        put(channel, f"k{minute}", now=moment)
        send_due(now=moment)
    send_due(now=NOW + timedelta(minutes=60))
    told = "".join(request.body.decode() for request in side.requests)
    assert all(f" k{minute} " in told or f" k{minute}\\" in told or f' k{minute}"' in told for minute in range(40))
    assert DUE not in states(channel).values()
    assert len(side.requests) < 30
    kinds = list(channel.deliveries.filter(state=SENT).order_by("sent_at").values_list("kind", flat=True))
    assert kinds[:5] == ["alert"] * 5
    assert "digest" in kinds


def test_a_page_does_not_wait_for_a_digest(make_channel: MakeChannel) -> None:
    channel = make_channel()
    for at in range(8):
        put(channel, f"k{at}")
    send_due(now=NOW)
    put(channel, "more", now=NOW + timedelta(minutes=1))
    assert send_due(now=NOW + timedelta(minutes=1)) == 1
    for at in range(6):
        put(channel, f"m{at}", now=NOW + timedelta(minutes=2))
    put(channel, "page", severity=Severity.PAGE, now=NOW + timedelta(minutes=2))
    send_due(now=NOW + timedelta(minutes=2))
    assert states(channel)["page"] == CARRIED
    assert DUE not in states(channel).values()


def test_without_a_threshold_there_is_no_digest(make_channel: MakeChannel) -> None:
    channel = make_channel(digest_after=None)
    for at in range(9):
        put(channel, f"k{at}")
    assert send_due(now=NOW) == 9


def test_a_webhooks_digest_holds_each_message_whole(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel(ChannelKind.WEBHOOK)
    for at in range(6):
        put(channel, f"k{at}")
    send_due(now=NOW)
    parts = side.requests[0].content["parts"]
    assert [(part["key"], part["title"]) for part in parts] == [(f"k{at}", f"title of k{at}") for at in range(6)]


def test_what_follows_a_carried_alert_goes_under_the_digest(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel(ChannelKind.SLACK_BOT)
    side.will(bot_says(ts="9.9"))
    for at in range(6):
        put(channel, f"k{at}")
    put(channel, "end", kind=DeliveryKind.RESOLVED, thread="k3")
    send_due(now=NOW)
    assert side.requests[-1].content["thread_ts"] == "9.9"


def test_what_follows_a_carried_alert_names_the_alert_not_the_digest(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel()
    for at in range(6):
        put(channel, f"k{at}")
    put(channel, "end", kind=DeliveryKind.RESOLVED, thread="k3")
    send_due(now=NOW)
    assert "Follows the message of 30 Nov 09:00 UTC: fjord-1: title of k3" in side.requests[-1].body.decode()


def test_a_late_message_says_so(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel()
    put(channel, "a")
    send_due(now=NOW + timedelta(minutes=6))
    assert "Delivered 6 min late." in side.requests[0].body.decode()


@pytest.mark.parametrize("jump", [-YEAR, -timedelta(hours=2), timedelta(hours=2), YEAR])
def test_a_clock_that_jumps_loses_nothing(make_channel: MakeChannel, side: FarSide, jump: timedelta) -> None:
    channel = make_channel(ChannelKind.WEBHOOK)
    side.will(says(429, Retry_After="3600"), OK)
    put(channel, "before")
    send_due(now=NOW)
    put(channel, "after", now=NOW + jump)
    sent = send_due(now=NOW + jump + timedelta(seconds=5))
    assert sent == 2
    assert set(states(channel).values()) == {SENT}


def test_alerts_that_wait_for_company_do_not_wait_for_a_clock_that_went_back(make_channel: MakeChannel) -> None:
    channel = make_channel()
    for at in range(7):
        put(channel, f"k{at}")
    send_due(now=NOW)
    for at in range(7):
        put(channel, f"m{at}", now=NOW + timedelta(seconds=30))
    assert send_due(now=NOW + timedelta(seconds=30)) == 0
    assert send_due(now=NOW - YEAR) >= 1
    assert DUE not in states(channel).values()


def test_a_live_claim_is_left_alone_however_far_the_clock_jumps(make_channel: MakeChannel, side: FarSide) -> None:
    row = put(make_channel(), "a")
    assert claims.claim(row, now=NOW)
    for jump in (timedelta(0), YEAR, -YEAR):
        assert send_due(now=NOW + jump) == 0
    assert not side.requests


def test_a_claim_that_outlives_every_sender_is_freed_and_may_repeat(
    make_channel: MakeChannel, side: FarSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = put(make_channel(), "a")
    claims.claim(row, now=NOW)
    moments = iter([100.0, 100.0 + claims.HOLD_SECONDS - 1, 100.0 + claims.HOLD_SECONDS + 1])
    monkeypatch.setattr(claims, "time", SimpleNamespace(monotonic=lambda: next(moments, 1000.0)))
    assert [send_due(now=NOW), send_due(now=NOW), send_due(now=NOW)] == [0, 0, 0]
    row.refresh_from_db()
    assert (row.claim, row.may_repeat) == ("", True)
    assert send_due(now=NOW + timedelta(minutes=1)) == 1
    assert "May be repeated" in side.requests[0].body.decode()


def test_of_two_claims_one_holds(make_channel: MakeChannel) -> None:
    row = put(make_channel(), "a")
    assert bool(claims.claim(row, now=NOW)) is True
    assert claims.claim(row, now=NOW) == ""


def test_a_slow_sender_settles_its_row_unless_somebody_else_has_it(
    make_channel: MakeChannel, side: FarSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = put(make_channel(), "a")

    def slow(*args: object, **fields: object) -> object:
        outcome = carry(*args, **fields)  # type: ignore[arg-type]
        Delivery.objects.update(claim="", may_repeat=True)
        return outcome

    monkeypatch.setattr(sending, "carry", slow)
    send_due(now=NOW)
    row.refresh_from_db()
    assert row.state == SENT


@pytest.mark.django_db(transaction=True)
def test_two_senders_at_once_send_once(make_channel: MakeChannel, side: FarSide) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("threads need a database that they share; the processes of test_killed cover this one")
    channel = make_channel()
    for key in "abcde":
        put(channel, key)
    threads = [threading.Thread(target=send_due, kwargs={"now": NOW}) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(side.requests) == 5


def test_a_lost_broker_loses_nothing(
    make_channel: MakeChannel,
    side: FarSide,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: object,
) -> None:
    def gone(*_args: object, **_fields: object) -> None:
        raise OperationalError("no broker")

    monkeypatch.setattr(current_app, "send_task", gone)
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        put(make_channel(), "a")
    assert Delivery.objects.get().state == DUE
    tasks.send_due()
    assert Delivery.objects.get().state == SENT
    assert len(side.requests) == 1


def test_a_commit_asks_for_sending(
    make_channel: MakeChannel, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: object
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, **_fields: asked.append(name))
    channel = make_channel()
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[operator]
        put(channel, "a")
        put(channel, "a")
    assert asked == [services.SEND_TASK]


def test_the_task_survives_what_breaks_inside(
    make_channel: MakeChannel, monkeypatch: pytest.MonkeyPatch, side: FarSide
) -> None:
    put(make_channel(), "a")

    def broken(*_args: object, **_fields: object) -> object:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(sending, "carry", broken)
    tasks.send_due()
    row = Delivery.objects.get()
    assert (row.state, bool(row.claim)) == (DUE, True)


def test_resending_by_hand(make_channel: MakeChannel, side: FarSide, alice: User) -> None:
    channel = make_channel(ChannelKind.WEBHOOK)
    side.will(says(400), OK)
    row = put(channel, "a")
    send_due(now=NOW)
    row.refresh_from_db()
    assert row.state == STOPPED
    delivery_resend(delivery=row, actor=alice)
    assert send_due(now=NOW) == 1
    row.refresh_from_db()
    delivery_resend(delivery=row, actor=alice)
    assert send_due(now=NOW) == 1
    assert [request.headers["x-gangdash-may-repeat"] for request in side.requests] == ["false", "false", "true"]
    assert len({request.headers["idempotency-key"] for request in side.requests}) == 1


def test_old_settled_rows_go_and_due_ones_stay(make_channel: MakeChannel) -> None:
    channel = make_channel()
    put(channel, "a")
    send_due(now=NOW)
    put(channel, "b")
    assert deliveries_prune(before=NOW) == 0
    assert deliveries_prune(before=NOW + YEAR) == 1
    assert states(channel) == {"b": DUE}


def test_a_run_begins_nothing_after_its_time(
    make_channel: MakeChannel, side: FarSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = make_channel(digest_after=None)
    for key in "abc":
        put(channel, key)
    ticks = count(0.0, sending.RUN_SECONDS / 4)
    monkeypatch.setattr(sending, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    assert send_due(now=NOW) == 1
    assert states(channel) == {"a": SENT, "b": DUE, "c": DUE}


def test_a_channel_that_is_cut_keeps_its_order(make_channel: MakeChannel, side: FarSide) -> None:
    channel = make_channel(ChannelKind.WEBHOOK, digest_after=None)
    side.will(cut, OK)
    for key in "ab":
        put(channel, key)
    send_due(now=NOW)
    send_due(now=NOW + timedelta(minutes=1))
    assert [request.content["key"] for request in side.requests] == ["a", "a", "b"]


def test_a_channels_task_is_killed_before_its_claims_are_freed(
    make_channel: MakeChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(make_channel(), "a")
    asked: list[dict[str, float]] = []
    monkeypatch.setattr(tasks.send_channel, "apply_async", lambda **fields: asked.append(fields))
    tasks.send_due()
    assert asked[0]["soft_time_limit"] < asked[0]["time_limit"] < claims.HOLD_SECONDS
    assert asked[0]["soft_time_limit"] > sending.RUN_SECONDS + transport.CONNECT_SECONDS * 2 + transport.TOTAL_SECONDS


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return the steady clock by which claims are judged, to be set."""
    clock = SimpleNamespace(at=0.0)
    monkeypatch.setattr(claims, "time", SimpleNamespace(monotonic=lambda: clock.at))
    return clock


def notice_death(steady: SimpleNamespace, now: datetime) -> None:
    """Look at the claims twice, longer apart than any sender lives."""
    send_due(now=now)
    steady.at += claims.HOLD_SECONDS
    send_due(now=now)


def test_a_row_taken_after_the_clock_went_back_is_not_forgotten(
    make_channel: MakeChannel, side: FarSide, steady: SimpleNamespace
) -> None:
    row = put(make_channel(), "a")
    side.will(says(500), OK)
    send_due(now=NOW + YEAR)
    row.refresh_from_db()
    assert claims.claim(row, now=NOW)
    notice_death(steady, NOW + timedelta(minutes=1))
    assert send_due(now=NOW + timedelta(minutes=5)) == 1


def test_a_row_freed_while_the_clock_was_ahead_is_not_forgotten(
    make_channel: MakeChannel, side: FarSide, steady: SimpleNamespace
) -> None:
    row = put(make_channel(), "a")
    assert claims.claim(row, now=NOW)
    notice_death(steady, NOW + YEAR)
    assert send_due(now=NOW + timedelta(minutes=5)) == 1
